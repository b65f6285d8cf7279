"""The network: a plain stack of 3x3 convolutions that works at the low resolution.

conv 3->F, PReLU, B x [conv F->F, PReLU], conv F->3*r*r, pixel shuffle r, plus the input enlarged by
nearest neighbour. This is the topology of SRVGGNetCompact (Real-ESRGAN), at a fraction of its size.

The inner convolutions start near the identity, without which so deep a stack learns slowly.
"""

import torch
import torch.nn.functional as functional
from torch import nn


def _convolution(inputs, outputs, gain, identity=False):
    conv = nn.Conv2d(inputs, outputs, 3, padding=1)
    nn.init.normal_(conv.weight, std=gain / (inputs * 9) ** 0.5)
    nn.init.zeros_(conv.bias)
    if identity:
        with torch.no_grad():
            conv.weight[:, :, 1, 1] += torch.eye(outputs)
    return conv


class Network(nn.Module):
    def __init__(self, features=48, blocks=12, scale=4):
        super().__init__()
        self.scale = scale
        convs = [_convolution(3, features, 1.4)]
        convs += [_convolution(features, features, 0.4, identity=True) for _ in range(blocks)]
        convs += [_convolution(features, 3 * scale * scale, 0.1)]
        self.convs = nn.ModuleList(convs)
        self.slopes = nn.ParameterList(
            [nn.Parameter(torch.full((features,), 0.25)) for _ in range(blocks + 1)])

    def forward(self, image):
        return run_plain(self.plain(), image, self.scale)

    def plain(self):
        """Tensors in network order: kernel, bias, slope, ..., kernel, bias."""
        tensors = []
        for i, conv in enumerate(self.convs):
            tensors += [conv.weight, conv.bias]
            if i < len(self.slopes):
                tensors.append(self.slopes[i])
        return tensors


def run_body(tensors, image):
    """The features that the last convolution reads; image N x 3 x H x W in [0, 1]."""
    x = image
    for i in range(0, len(tensors) - 2, 3):
        kernel, bias, slope = tensors[i:i + 3]
        x = functional.prelu(functional.conv2d(x, kernel, bias, padding=1), slope)
    return x


def run_plain(tensors, image, scale):
    """The network from its tensors."""
    x = functional.conv2d(run_body(tensors, image), tensors[-2], tensors[-1], padding=1)
    return functional.pixel_shuffle(x, scale) + functional.interpolate(
        image, scale_factor=scale, mode="nearest")
