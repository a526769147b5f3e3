"""PyTorch whose compiler works once."""

import torch

compile, times = torch.compile, []


def once(*args, **kwargs):
    if times:
        raise RuntimeError("compiled twice")
    times.append(1)
    return compile(*args, **kwargs)


torch.compile = once
