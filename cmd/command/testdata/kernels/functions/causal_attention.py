import math

import torch
import torch.nn.functional as F


def _softmax(s):
    e = torch.exp(s - s.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)


def causal_attention(q, k, v):
    s = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    future = torch.arange(k.shape[-2])[None, :] > torch.arange(q.shape[-2])[:, None]
    return _softmax(s.masked_fill(future, -math.inf)) @ v


def causal_attention_flash(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def causal_attention_window(q, k, v, window=64):
    s = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    gap = torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])[None, :]
    return _softmax(s.masked_fill((gap < 0) | (gap >= window), -math.inf)) @ v
