"""PyTorch whose compiler, where it has one, works once, and of cases together on one program alone."""

import torch

compile, times = getattr(torch, "compile", None), []


def once(*args, **kwargs):
    if times:
        raise RuntimeError("compiled twice")
    times.append(1)
    if len(getattr(args[0], "functions", [0])) != 1:
        raise RuntimeError("a program is compiled twice")
    return compile(*args, **kwargs)


if compile:
    torch.compile = once
