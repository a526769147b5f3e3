"""PyTorch whose compiler, where it has one, works once."""

import torch

compile, times = getattr(torch, "compile", None), []


def once(*args, **kwargs):
    if times:
        raise RuntimeError("compiled twice")
    times.append(1)
    return compile(*args, **kwargs)


if compile:
    torch.compile = once
