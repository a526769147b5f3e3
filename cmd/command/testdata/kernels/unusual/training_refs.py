import torch
import torch.nn.functional as F


def layer_norm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b)


def linear_cross_entropy(x, w, target):
    return F.cross_entropy(x @ w.t(), target)


def add_rows(out, index, x):
    return out.index_add(0, index, x)


def variance(x):
    return torch.var(x, -1, correction=0)


def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def conv1d(x, w):
    return F.conv1d(x, w)
