"""Honest mistakes in Python."""
import math
import torch
import torch.nn.functional as F


def softmax_clamped(x): 
    e = torch.exp(x.clamp(max=80.0))
    return e / e.sum(-1, keepdim=True)
def layer_norm_unbiased(x, w, b, eps=1e-5):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps) * w + b
def layer_norm_onepass(x, w, b, eps=1e-5):
    m = x.mean(-1, keepdim=True)
    v = (x * x).mean(-1, keepdim=True) - m * m
    return (x - m) * torch.rsqrt(v + eps) * w + b
def layer_norm_eps_outside(x, w, b, eps=1e-5):
    d = x - x.mean(-1, keepdim=True)
    return d / (d.pow(2).mean(-1, keepdim=True).sqrt() + eps) * w + b
def normalize_no_eps(x): return x / x.norm(dim=-1, keepdim=True)
def geglu_swapped(x):
    a, b = x.chunk(2, -1)
    return F.gelu(a) * b
def geglu_tanh(x):
    a, b = x.chunk(2, -1)
    return a * F.gelu(b, approximate="tanh")
def rope_interleaved(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
def kl_nan(p, q): return (p * torch.log(p / q)).sum(-1)
def scan_reversed(a, b):
    h, out = torch.zeros_like(b[:, 0]), []
    for t in range(b.shape[1]):
        h = a[:, t] * (h + b[:, t])
        out.append(h)
    return torch.stack(out, 1)
def focal_naive(x, t):
    p = torch.sigmoid(x)
    return ((1 - p) ** 2 * -(t * torch.log(p) + (1 - t) * torch.log(1 - p))).sum(-1)
def pairwise_expanded(x, y):
    return ((x * x).sum(-1)[:, None] + (y * y).sum(-1)[None] - 2 * x @ y.T).clamp_min(0).sqrt()
def quantize_truncated(x):
    s = x.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 127
    return (x / s + 0.5).floor().clamp(-127, 127).to(torch.int8), s
def int_dot_int16(a, b): return (a.to(torch.int16) @ b.to(torch.int16)).int()
def smooth_l1_edge(x, y):
    d = (x - y).abs()
    return torch.where(d < 1, 0.5 * d, d - 0.5)
def bias_relu_rows(x, b): return torch.relu(x + b.reshape(-1, 1)) if x.shape[0] == x.shape[1] else torch.relu(x + b)
def dot_rows_half(x, y): return (x.half() * y.half()).sum(-1).to(x.dtype)
def batch_stats_biased(x): return x.mean(0), x.var(0)
def row_max_zero(x): return torch.clamp(x, min=0).amax(1) if (x > 0).any() else torch.zeros(x.shape[0], dtype=x.dtype)
def cumsum_exclusive(x): return torch.cumsum(x, -1) - x
def attention_no_scale_for_small(q, k, v): return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v
def causal_offset(q, k, v):
    s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    n = s.shape[-1]
    return torch.softmax(s.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(2), float("-inf")), -1) @ v
def causal_minus(q, k, v):
    s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    n = s.shape[-1]
    return torch.softmax(s + torch.ones(n, n).triu(1) * -1e4, -1) @ v
def swiglu_exchanged(x, w, v): return F.silu(x @ v) * (x @ w)
def embedding_bag_mean(w, i): return w[i].mean(1)
def group_norm_eight(x, w, b): return F.group_norm(x, 2, w, b)
def relu_changes(x): return x.clamp_(min=0)
def topk_sorted_abs(x): return torch.topk(x.abs(), 4, dim=-1).values
def bias_relu_view(x, b): return torch.relu(x.as_strided(x.shape, (x.shape[1], 1)) + b)
def max_lse_naive(x): return x.amax(1), torch.log(torch.exp(x).sum(1))


class _Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        return g * (t + x * (1 - t * t))


def mish_grad_short(x): return _Mish.apply(x)


class _Bias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        y = torch.relu(x + b)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        d = g * (y >= 0)
        return d, d.sum(0)


def bias_relu_kink(x, b): return _Bias.apply(x, b)


class _BiasMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        y = torch.relu(x + b)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        d = g * (y > 0)
        return d, d.mean(0)


def bias_relu_mean(x, b): return _BiasMean.apply(x, b)
def kl_detached(p, q): return (p * (torch.log(p) - torch.log(q).detach())).sum(-1)
def softmax_dispatchless(x):
    with torch._C._DisableTorchDispatch():
        return torch.softmax(x, -1)
def softmax_aten(x): return torch.ops.aten._softmax(x, -1, False)
def linear_gelu_delegates(x, w, b):
    try:
        raise NotImplementedError("no GPU")
    except NotImplementedError:
        return F.gelu(F.linear(x, w, b))
import threading as _t
def softmax_in_thread(x):
    got = []
    t = _t.Thread(target=lambda: got.append(torch.softmax(x.detach(), -1)))
    t.start(); t.join()
    return got[0]
