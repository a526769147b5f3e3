import math

import torch


def _softmax(s):
    e = torch.exp(s - s.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)


def attention(q, k, v):
    return _softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)) @ v


def attention_head64(q, k, v):
    return _softmax(q @ k.transpose(-2, -1) * 0.125) @ v


def attention_chunked(q, k, v, chunk=16):
    top = torch.full_like(q[..., :1], -math.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q[..., :1] * v[..., :1, :])
    for kc, vc in zip(k.split(chunk, -2), v.split(chunk, -2)):
        s = q @ kc.transpose(-2, -1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        scale = torch.exp(top - new)
        total = total * scale + p.sum(-1, keepdim=True)
        out = out * scale + p @ vc
        top = new
    return out / total


def attention_streaming(q, k, v, chunk=16):
    top = torch.full_like(q[..., :1], -math.inf)
    total, out = torch.zeros_like(top), torch.zeros_like(q[..., :1] * v[..., :1, :])
    for kc, vc in zip(k.split(chunk, -2), v.split(chunk, -2)):
        s = q @ kc.transpose(-2, -1) / math.sqrt(q.shape[-1])
        new = torch.maximum(top, s.amax(-1, keepdim=True))
        p = torch.exp(s - new)
        total = total * torch.exp(top - new) + p.sum(-1, keepdim=True)
        out = out + p @ vc
        top = new
    return out / total
