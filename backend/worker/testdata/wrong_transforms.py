"""Faults planted in PyTorch's transforms: gradients doubled, lanes confused."""

import torch

if hasattr(torch, "func"):
    vjp, vmap = torch.func.vjp, torch.func.vmap

    def doubled(*args, **kwargs):
        result, pull, aux = vjp(*args, **kwargs)
        return result, lambda cotangents: tuple(2 * g for g in pull(cotangents)), aux

    def rolled(f, in_dims):
        return lambda *args: [[t.roll(1, 0) for t in part] for part in vmap(f, in_dims=in_dims)(*args)]

    torch.func.vjp, torch.func.vmap = doubled, rolled
