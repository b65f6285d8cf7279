"""Refits the last convolution in closed form.

The output is linear in the last convolution, so its best weights for given features solve a
linear system: weighted least squares over patches of the training set, places with a small error
weighing more, which stands for the L1 loss. Where training is short this removes what the slow
descent leaves behind, visible as a grid of the scale's period in smooth areas. It is also how the
features of one network are put to another use: train.py --start.

refit.py CHECKPOINT.pt OUT.pt [BATCHES]
"""

import os
import sys

import torch
import torch.nn.functional as functional

import data
import evaluate
import network

PATCH, MARGIN, BATCH = 48, 8, 8


def products(a, b):
    """a^T b for tall matrices; as a convolution, which is the faster kernel without a tuned BLAS."""
    return functional.conv2d(b[None, :, :, None], a.T.contiguous()[:, :, None, None])[0, :, :, 0]


@torch.no_grad()
def refit(tensors, pairs, scale, seed, damaged, batches=40):
    """Changes the last convolution in place. `pairs` as for data.Sampler."""
    sampler = data.Sampler(pairs, scale, PATCH, seed, damaged=damaged)
    kernel, bias = tensors[-2], tensors[-1]
    outputs, features = kernel.shape[:2]
    old = torch.cat([kernel.reshape(outputs, -1).T, bias[None]])
    size, inner = old.shape[0], slice(MARGIN, -MARGIN)
    normal = torch.zeros(size, size + outputs, dtype=torch.float64)
    for _ in range(batches):
        high, low = (torch.from_numpy(a) for a in sampler.batch(BATCH))
        x = network.run_body(tensors, low)
        x = functional.unfold(x, 3, padding=1).view(BATCH, -1, PATCH, PATCH)[:, :, inner, inner]
        x = x.permute(0, 2, 3, 1).reshape(-1, size - 1)
        x = torch.cat([x, torch.ones(len(x), 1)], 1)
        y = high - functional.interpolate(low, scale_factor=scale, mode="nearest")
        y = functional.pixel_unshuffle(y, scale)[:, :, inner, inner]
        y = y.permute(0, 2, 3, 1).reshape(-1, outputs)
        error = (y - functional.linear(x, old.T.contiguous())).abs().mean(1, keepdim=True)
        weight = 1 / (error + 0.004)
        normal += products(x * weight, torch.cat([x, y], 1)).double()
    left, right = normal[:, :size], normal[:, size:]
    left = left + torch.eye(size, dtype=torch.float64) * 1e-6 * left.diagonal().mean()
    new = torch.linalg.solve(left, right).float()
    kernel.copy_(new[:-1].T.reshape(kernel.shape))
    bias.copy_(new[-1])


def main():
    source, target = sys.argv[1:3]
    batches = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    state = torch.load(source, map_location="cpu")
    config, damaged = state["network"], state["damaged"]
    net = network.Network(**config)
    net.load_state_dict(state["average"])
    held_out = data.held_out(config["scale"], damaged)
    tensors = [t.detach() for t in net.plain()]
    before = evaluate.held_out_psnr(tensors, held_out, config["scale"])
    pairs = data.training_pairs(config["scale"], os.path.dirname(os.path.abspath(source)))
    refit(tensors, pairs[::3], config["scale"], state["step"], damaged, batches)
    psnr = evaluate.held_out_psnr(tensors, held_out, config["scale"])
    print("held-out %.3f -> %.3f dB" % (before, psnr), flush=True)
    state.update(average=net.state_dict(), weights=net.state_dict(), best=psnr,
                 psnr={"held-out": round(psnr, 3)})
    torch.save(state, target)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
