"""References for rewritten.py."""
import math

import torch
import torch.nn.functional as F


def rms(x, w, eps=1e-06):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def lse(x):
    return torch.logsumexp(x, -1)


def huber(x, y):
    return F.smooth_l1_loss(x, y, reduction='none')


def attn(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def cumsum(x):
    return torch.cumsum(x, -1)


def scatter(x, i, V):
    return torch.zeros(V, x.shape[-1], dtype=x.dtype).index_add(0, i, x)


def topv(x):
    return x.max(-1)


def var(x):
    return x.var(-1)


def gelu(x):
    return F.gelu(x)


def ln(x):
    return F.layer_norm(x, x.shape[-1:])


def inst(x):
    return (x - x.mean((-1,), keepdim=True)) / torch.sqrt(x.var((-1,), unbiased=False, keepdim=True) + 1e-05)
