"""Measures weights on the held-out photographs and on given pairs, beside bicubic.

evaluate.py WEIGHTS.f32 [LOW.png HIGH.png]...
"""

import json
import sys

import numpy as np
import torch
from PIL import Image

import data
import export
import metrics
import network


def to_tensor(rgb):
    return torch.from_numpy(rgb.transpose(2, 0, 1).astype(np.float32) / np.float32(255))[None]


def to_picture(tensor):
    return (tensor[0].clamp(0, 1) * 255).round().byte().numpy().transpose(1, 2, 0)


def bicubic(low, scale):
    size = (low.shape[1] * scale, low.shape[0] * scale)
    return np.asarray(Image.fromarray(low).resize(size, Image.BICUBIC))


@torch.no_grad()
def upscale(tensors, low, scale):
    return to_picture(network.run_plain(tensors, to_tensor(low), scale))


def read_pair(low, high, scale):
    low, high = (np.asarray(Image.open(p).convert("RGB")) for p in (low, high))
    return low, high[:low.shape[0] * scale, :low.shape[1] * scale]


def held_out_psnr(tensors, pictures, scale):
    return float(np.mean([metrics.compare(upscale(tensors, low, scale), high, scale)[0]
                          for _, high, low in pictures]))


def table(tensors, scale, pairs=()):
    """Rows (name, bicubic PSNR, SSIM, network PSNR, SSIM); the held-out mean is a row."""
    rows = []
    for name, high, low in data.held_out(scale):
        rows.append((name, *metrics.compare(bicubic(low, scale), high, scale),
                     *metrics.compare(upscale(tensors, low, scale), high, scale)))
    rows.append(("mean of held-out", *np.mean([row[1:] for row in rows], axis=0)))
    for low_path, high_path in pairs:
        low, high = read_pair(low_path, high_path, scale)
        rows.append((low_path.split("/")[-1], *metrics.compare(bicubic(low, scale), high, scale),
                     *metrics.compare(upscale(tensors, low, scale), high, scale)))
    return rows


def show(rows):
    lines = ["| picture | bicubic PSNR | SSIM | network PSNR | SSIM | gain |",
             "|---|---|---|---|---|---|"]
    for name, bp, bs, np_, ns in rows:
        lines.append("| %s | %.2f | %.4f | %.2f | %.4f | %+.2f |" % (name, bp, bs, np_, ns, np_ - bp))
    return "\n".join(lines)


def main():
    path, rest = sys.argv[1], sys.argv[2:]
    with open(path.replace(".f32", ".json"), encoding="utf-8") as file:
        facts = json.load(file)
    tensors = export.read(path, facts["features"], facts["blocks"], facts["scale"])
    pairs = list(zip(rest[0::2], rest[1::2]))
    full = table(tensors, facts["scale"], pairs)
    print(show(full))
    half = table([t.half().float() for t in tensors], facts["scale"], pairs)
    print("fp16 weights change PSNR by at most %.4f dB"
          % max(abs(a[3] - b[3]) for a, b in zip(full, half)))


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
