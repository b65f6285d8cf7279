"""Measures weights on the held-out photographs and on given pictures, beside bicubic.

evaluate.py WEIGHTS.f32 [--low DIR] [--other DIR] [PICTURE]...

Bicubic is OpenCV's INTER_CUBIC (a = -0.75), the pictures are reduced as those for training. With
--low, writes what the networks are given as DIR/NAME.png; with --other, compares with what another
program made of it, in files of the same names.
"""

import argparse
import os

import numpy as np
import torch
import torch.nn.functional as functional
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
    return to_picture(functional.interpolate(to_tensor(low), scale_factor=scale, mode="bicubic"))


@torch.no_grad()
def upscale(tensors, low, scale):
    return to_picture(network.run_plain(tensors, to_tensor(low), scale))


def read_picture(path, scale, damaged=False):
    """(name, high, low)"""
    high, low = data.pair(Image.open(path).convert("RGB"), scale)
    name = os.path.splitext(os.path.basename(path))[0]
    return name, high, data.Damage.held_out(low) if damaged else low


def held_out_psnr(tensors, pictures, scale):
    return float(np.mean([metrics.compare(upscale(tensors, low, scale), high, scale, metrics.psnr)
                          for _, high, low in pictures]))


def measure(pictures, enlarge, scale):
    """PSNR and SSIM of enlarge(name, low), a row for each picture."""
    return np.array([metrics.compare(enlarge(name, low), high, scale)
                     for name, high, low in pictures])


def show(names, results):
    """Prints a row for each name; results are (title, PSNR and SSIM), bicubic first, and for those
    after the second also what share of their gain the second has."""
    (_, base), (_, ours), *others = results
    titles = ["picture"] + [t for title, _ in results for t in (title + " PSNR", "SSIM")] + ["gain"]
    titles += [t for title, _ in others for t in (title + " gain", "share")]
    print("| %s |\n|%s" % (" | ".join(titles), "---|" * len(titles)))
    for i, name in enumerate(names):
        gain = ours[i, 0] - base[i, 0]
        cells = [name] + [c for _, r in results for c in ("%.2f" % r[i, 0], "%.4f" % r[i, 1])]
        cells.append("%+.2f" % gain)
        for _, other in others:
            theirs = other[i, 0] - base[i, 0]
            cells += ["%+.2f" % theirs, "%.0f%%" % (100 * gain / theirs)]
        print("| %s |" % " | ".join(cells))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", help=".f32 with its .json, or .onnx")
    parser.add_argument("pictures", nargs="*")
    parser.add_argument("--damaged", action="store_true", help="blurred, JPEG quality 75")
    parser.add_argument("--low", metavar="DIR")
    parser.add_argument("--other", metavar="DIR")
    return parser.parse_intermixed_args()


def main():
    args = arguments()
    tensors = export.read_any(args.weights)
    scale = round((tensors[-1].numel() / 3) ** 0.5)
    held_out = data.held_out(scale, args.damaged)
    pictures = held_out + [read_picture(path, scale, args.damaged) for path in args.pictures]
    if args.low:
        os.makedirs(args.low, exist_ok=True)
        for name, _, low in pictures:
            Image.fromarray(low).save(os.path.join(args.low, name + ".png"))

    half = [t.half().float() for t in tensors]
    ways = [("bicubic", lambda name, low: bicubic(low, scale)),
            ("network", lambda name, low: upscale(tensors, low, scale))]
    if args.other:
        ways.append((os.path.basename(args.other), lambda name, low: np.asarray(
            Image.open(os.path.join(args.other, name + ".png")).convert("RGB"))))
    results = [(title, measure(pictures, way, scale)) for title, way in ways]
    rounded = measure(pictures, lambda name, low: upscale(half, low, scale), scale)
    rounding = np.abs(rounded - results[1][1])[:, 0].max()
    n = len(held_out)
    results = [(title, np.insert(r, n, r[:n].mean(axis=0), axis=0)) for title, r in results]
    names = [name for name, _, _ in pictures]
    show(names[:n] + ["mean of held-out"] + names[n:], results)
    print("fp16 weights change PSNR by at most %.4f dB" % rounding)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
