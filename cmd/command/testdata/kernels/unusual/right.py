"""Right functions in Python of an unusual but honest style."""
import functools
import math
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F

_pool = ThreadPoolExecutor(2)
_scratch = {}
Stats = namedtuple("Stats", "mean var")


def dot_rows_pool(x, y):
    out = torch.empty(x.shape[0], dtype=x.dtype)

    def part(rows):
        out[rows] = (x[rows].double() * y[rows].double()).sum(-1).to(x.dtype)

    half = x.shape[0] // 2
    for f in [_pool.submit(part, slice(0, half)), _pool.submit(part, slice(half, None))]:
        f.result()
    return out


def dot_rows_threads(x, y):
    parts = [None, None]
    half = x.shape[1] // 2

    def part(k, cols):
        parts[k] = (x[:, cols].double() * y[:, cols].double()).sum(-1)

    ts = [threading.Thread(target=part, args=(0, slice(0, half))), threading.Thread(target=part, args=(1, slice(half, None)))]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    return (parts[0] + parts[1]).to(x.dtype)


@functools.lru_cache(maxsize=None)
def _mask(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def causal_attention(q, k, v):
    s = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1])
    s = s.masked_fill(_mask(s.shape[-1]), -math.inf)
    return torch.einsum("...ij,...jd->...id", s.softmax(-1), v)


def softmax_scratch(x):
    key = (x.shape, x.dtype)
    buffer = _scratch.setdefault(key, torch.empty(x.shape, dtype=x.dtype))
    torch.sub(x, x.amax(-1, keepdim=True), out=buffer)
    buffer.exp_()
    return buffer / buffer.sum(-1, keepdim=True)


def batch_stats(x):
    mean = torch.zeros(x.shape[1], dtype=torch.float64)
    m2 = torch.zeros_like(mean)
    for i, row in enumerate(x.double()):
        d = row - mean
        mean += d / (i + 1)
        m2 += d * (row - mean)
    return Stats(mean.to(x.dtype), (m2 / max(len(x), 1)).to(x.dtype))


class _Swiglu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, v):
        a, b = x @ w, x @ v
        s = torch.sigmoid(a)
        ctx.save_for_backward(x, w, v, a, b, s)
        return a * s * b

    @staticmethod
    def backward(ctx, g):
        x, w, v, a, b, s = ctx.saved_tensors
        db = g * a * s
        da = g * b * (s * (1 + a * (1 - s)))
        dx = da @ w.T + db @ v.T if ctx.needs_input_grad[0] else None
        return dx, x.T @ da, x.T @ db


def swiglu(x, w, v):
    return _Swiglu.apply(x, w, v)


def softmax_out(x, *, out=None):
    if out is None:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
    with torch.no_grad():
        out.copy_(torch.exp(x - torch.logsumexp(x, -1, keepdim=True)))
    return out


def rope_complex(x, cos, sin):
    a, b = x.double().chunk(2, -1)
    z = torch.complex(a, b) * torch.complex(cos.double(), sin.double())
    return torch.cat([z.real, z.imag], -1).to(x.dtype)


def scan_doubling(a, b):
    A, B, step = a.clone(), b.clone(), 1
    while step < b.shape[1]:
        B = torch.cat([B[:, :step], A[:, step:] * B[:, :-step] + B[:, step:]], 1)
        A = torch.cat([A[:, :step], A[:, step:] * A[:, :-step]], 1)
        step *= 2
    return B


@torch.jit.script
def mish_scripted(x):
    return x * torch.tanh(torch.logaddexp(x, torch.zeros_like(x)))


def quantize(x):
    a = x.detach().numpy()
    s = np.maximum(np.abs(a).max(-1, keepdims=True), np.float32(1e-8)) / np.float32(127)
    return torch.from_numpy(np.clip(np.rint(a / s), -127, 127).astype(np.int8)), torch.from_numpy(s)


def int_dot_float(a, b):
    return torch.from_numpy(a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)).to(torch.int32)


def pairwise_direct(x, y):
    return torch.stack([(x - row).pow(2).sum(-1).sqrt() for row in y], 1) if len(y) else x.new_zeros(len(x), 0)


def geglu_views(x):
    h = x.shape[-1] // 2
    a, b = x.narrow(-1, 0, h), x.narrow(-1, h, h)
    return b.mul(0.5).mul(torch.erf(b * math.sqrt(0.5)).add_(1)).mul_(a)


def layer_norm_transposed(x, w, b, eps=1e-5):
    t = x.transpose(0, 1).contiguous()
    t = t - t.mean(0)
    t = t * torch.rsqrt((t * t).mean(0) + eps)
    return (t * w[:, None] + b[:, None]).transpose(0, 1)


def embedding_bag_counts(w, i):
    return torch.stack([w[row].double().sum(0) for row in i]).to(w.dtype) if len(i) else w.new_zeros(0, w.shape[1])


def group_norm_chunks(x, w, b):
    outs = [F.layer_norm(c.flatten(1), (c[0].numel(),)).view_as(c) for c in x.chunk(4, 1)]
    return torch.cat(outs, 1) * w[:, None] + b[:, None]


def max_and_lse(x):
    m = x.amax(1)
    return [m, m + torch.log(torch.exp(x - m[:, None]).sum(1))]
