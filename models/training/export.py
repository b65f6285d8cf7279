"""Weights as a flat little-endian float32 file, in network order.

kernel [O,I,3,3], bias [O], slope [F] for each convolution with activation; kernel and bias for
the last. A .json of the same name states the shape of the network and how it was measured.

export.py CHECKPOINT.pt OUT.f32
"""

import json
import os
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import torch

import network


def shapes(features, blocks, scale):
    result, inputs = [], 3
    for _ in range(blocks + 1):
        result += [(features, inputs, 3, 3), (features,), (features,)]
        inputs = features
    return result + [(3 * scale * scale, features, 3, 3), (3 * scale * scale,)]


def _replace(path, content):
    with open(path + ".tmp", "wb") as out:
        out.write(content)
    os.replace(path + ".tmp", path)


def write(path, tensors, facts):
    flat = np.concatenate([t.numpy().reshape(-1) for t in tensors]).astype("<f4")
    if not np.isfinite(flat).all():
        raise ValueError("weights are not finite")
    _replace(path, flat.tobytes())
    facts = dict(facts, parameters=int(flat.size))
    _replace(path.replace(".f32", ".json"), (json.dumps(facts, indent=1) + "\n").encode())


def read(path, features, blocks, scale):
    flat, tensors = torch.from_numpy(np.fromfile(path, "<f4").astype(np.float32)), []
    for shape in shapes(features, blocks, scale):
        count = int(np.prod(shape))
        tensors.append(flat[:count].view(shape))
        flat = flat[count:]
    if len(flat):
        raise ValueError("%s holds %d numbers too many" % (path, len(flat)))
    return tensors


def read_onnx(path):
    """The tensors of a model that build-model wrote."""
    arrays = [onnx.numpy_helper.to_array(t).astype(np.float32)
              for t in onnx.load(path).graph.initializer if t.name.startswith("body")]
    # Slopes are F x 1 x 1.
    return [torch.from_numpy(a.reshape(-1) if a.ndim == 3 else a) for a in arrays]


def read_any(path):
    """The tensors of a .f32 with its .json, or of an .onnx."""
    if path.endswith(".onnx"):
        return read_onnx(path)
    with open(path.replace(".f32", ".json"), encoding="utf-8") as file:
        facts = json.load(file)
    return read(path, facts["features"], facts["blocks"], facts["scale"])


def main():
    state = torch.load(sys.argv[1], map_location="cpu")
    config = state["network"]
    net = network.Network(**config)
    net.load_state_dict(state["average"])
    tensors = [t.detach() for t in net.plain()]
    write(sys.argv[2], tensors, dict(config, steps=state["step"], psnr=state["psnr"]))


if __name__ == "__main__":
    main()
