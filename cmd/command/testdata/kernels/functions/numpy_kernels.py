import numpy as np
import torch


def softplus(input):
    x = input.detach().numpy()
    y = np.logaddexp(x, np.zeros((), x.dtype))
    return torch.from_numpy(np.where(x > 20, x, y).astype(x.dtype))


def sigmoid(input):
    x = input.detach().numpy()
    e = np.exp(-np.abs(x))
    return torch.from_numpy(np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype))


def flip_rows(input):
    return torch.from_numpy(input.detach().numpy()[::-1].copy())


def add_out(out, x, y):
    torch.add(x, y, out=out)


def add_out_once(out, x, y):
    fresh = x + y
    out = fresh
    return out


def cumsum_out(out, x):
    running = np.cumsum(x.detach().numpy(), axis=-1, dtype=np.float64)
    out.copy_(torch.from_numpy(running))


def cumsum_out_first(out, x):
    out[..., :1] = x[..., :1]
    for i in range(1, min(x.shape[-1], 128)):
        out[..., i] = out[..., i - 1] + x[..., i]
