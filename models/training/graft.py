"""Lets the picture itself through to the last convolution.

In each layer the three features that the next layer uses least (in a short training several are all
but dead) become carriers of red, green and blue: each is copied unchanged from its predecessor,
since PReLU leaves positive numbers alone. The last convolution can then undo the steps of the
nearest-neighbour part exactly, also in saturated colours. Run refit.py afterwards, which finds
the carriers' weights.

graft.py CHECKPOINT.pt OUT.pt
"""

import sys

import torch
import torch.nn.functional as functional

import data
import evaluate
import network


@torch.no_grad()
def graft(tensors, image):
    """Changes the tensors in place; `image`, N x 3 x H x W, shows which features matter."""
    x, carriers = image, [0, 1, 2]
    for i in range(0, len(tensors) - 2, 3):
        kernel, bias, slope, following, following_bias = tensors[i:i + 5]
        x = functional.prelu(functional.conv2d(x, kernel, bias, padding=1), slope)
        use = x.std(dim=(0, 2, 3)) * following.pow(2).sum((0, 2, 3)).sqrt()
        chosen = use.argsort()[:3].tolist()
        # What was chosen leaves its mean behind.
        following_bias += following.sum((2, 3))[:, chosen] @ x[:, chosen].mean((0, 2, 3))
        following[:, chosen] = 0
        for carrier, before in zip(chosen, carriers):
            kernel[carrier], bias[carrier] = 0, 0
            kernel[carrier, before, 1, 1] = 1
        x[:, chosen] = image
        carriers = chosen


def main():
    state = torch.load(sys.argv[1], map_location="cpu")
    net = network.Network(**state["network"])
    net.load_state_dict(state["average"])
    held_out = data.held_out(state["network"]["scale"], state["damaged"])
    image = torch.cat([evaluate.to_tensor(low) for _, _, low in held_out])
    graft([t.detach() for t in net.plain()], image)
    state.update(average=net.state_dict(), weights=net.state_dict())
    torch.save(state, sys.argv[2])


if __name__ == "__main__":
    main()
