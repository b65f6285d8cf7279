"""Muon: momentum whose matrices are made orthogonal (Jordan et al. 2024), for the inner kernels.

A kernel is taken as a matrix, outputs x (inputs * 9). All singular values of its momentum are set
to one, so directions that the gradient hardly shows move as far as those that dominate it: the
stack of convolutions learns in a fraction of the steps that Adam takes. Scaled to the root mean
square of Adam's steps, so that both share one learning rate (Liu et al. 2025).
"""

import torch


def orthogonal(matrices):
    """U V^T of batched wide matrices U S V^T, by way of the small Gram matrices."""
    rows = matrices.shape[1]
    matrices = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-20)
    gram = (matrices @ matrices.transpose(1, 2)).double()
    values, vectors = torch.linalg.eigh(gram)
    # What is below a thousandth of the mean is noise, not to be blown up.
    root = values.clamp(min=1e-6 / rows).rsqrt()
    return ((vectors * root[:, None]) @ vectors.transpose(1, 2)).float() @ matrices


class Muon(torch.optim.Optimizer):
    def __init__(self, kernels, rate, momentum=0.95):
        super().__init__(kernels, {"lr": rate, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            kernels, momentum = group["params"], group["momentum"]
            buffers = []
            for kernel in kernels:
                state = self.state[kernel]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(kernel)
                buffers.append(state["momentum"].lerp_(kernel.grad, 1 - momentum))
            ahead = torch.stack([b.lerp(k.grad, 1 - momentum).flatten(1)
                                 for k, b in zip(kernels, buffers)])
            scale = 0.2 * max(ahead.shape[1:]) ** 0.5
            for kernel, change in zip(kernels, orthogonal(ahead)):
                kernel.sub_(change.view_as(kernel), alpha=group["lr"] * scale)
