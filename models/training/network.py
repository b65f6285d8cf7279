"""The network: a plain stack of 3x3 convolutions that works at the low resolution.

conv 3->F, PReLU, B x [conv F->F, PReLU], conv F->3*r*r, pixel shuffle r, plus the input enlarged by
nearest neighbour. This is the topology of SRVGGNetCompact (Real-ESRGAN), at a fraction of its size.

The inner convolutions start near the identity, without which so deep a stack learns slowly.
Computes in bfloat16 under torch.autocast; the slopes stay float32.
"""

import torch
import torch.nn.functional as functional
from torch import nn


class PRelu(torch.autograd.Function):
    """torch.nn.functional.prelu, whose gradient is several times slower: it takes a third of a step
    in PyTorch 1.13."""

    @staticmethod
    def forward(ctx, x, slope):
        slope = slope.to(x.dtype)
        ctx.save_for_backward(x, slope)
        return functional.prelu(x, slope)

    @staticmethod
    def backward(ctx, grad):
        x, slope = ctx.saved_tensors
        positive = torch.ops.aten.threshold_backward(grad, x, 0.0)
        negative = grad - positive
        grad_x = positive.add_(negative * slope[:, None, None])
        return grad_x, negative.mul_(x).sum((0, 2, 3), dtype=torch.float32)


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

    @torch.no_grad()
    def start_from(self, tensors):
        """Takes the tensors (network order) of a network of the same features and depth. If that
        one enlarges more, each output becomes the mean of those that cover the same area. Says
        whether it does."""
        *body, kernel, bias = tensors
        theirs = round((kernel.shape[0] / 3) ** 0.5)
        if theirs != self.scale:
            if theirs % self.scale:
                raise ValueError("x%d cannot start from x%d" % (self.scale, theirs))
            fine = (3, self.scale, theirs // self.scale, self.scale, theirs // self.scale)
            kernel, bias = (t.reshape(*fine, *t.shape[1:]).mean(dim=(2, 4)).flatten(0, 2)
                            for t in (kernel, bias))
        for mine, start in zip(self.plain(), [*body, kernel, bias], strict=True):
            mine.copy_(start)
        return theirs != self.scale

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
        x = PRelu.apply(functional.conv2d(x, kernel, bias, padding=1), slope)
    return x


def run_plain(tensors, image, scale):
    """The network from its tensors."""
    x = functional.conv2d(run_body(tensors, image), tensors[-2], tensors[-1], padding=1)
    return functional.pixel_shuffle(x, scale) + functional.interpolate(
        image, scale_factor=scale, mode="nearest")
