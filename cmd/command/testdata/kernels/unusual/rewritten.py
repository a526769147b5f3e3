"""Functions that a model might write: right ones of another formula, and one mistake each."""
import math

import torch
import torch.nn.functional as F



def rms_scaled(x, w, eps=1e-06):
    m = x.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    y = x / m
    return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps / m.square()) * w


def lse_pairs(x):
    y = x
    while y.shape[-1] > 1:
        if y.shape[-1] % 2:
            y = torch.cat([y, y.new_full((*y.shape[:-1], 1), -math.inf)], -1)
        y = torch.logaddexp(y[..., ::2], y[..., 1::2])
    return y[..., 0].clone()


def huber_where(x, y):
    d = x - y
    a = d.abs()
    return torch.where(a < 1, 0.5 * d * d, a - 0.5)


def cumsum_blocks(x):
    B = 64
    out = []
    carry = torch.zeros_like(x[..., :1])
    for s in range(0, x.shape[-1], B):
        c = torch.cumsum(x[..., s:s + B], -1) + carry
        out.append(c)
        carry = c[..., -1:]
    return torch.cat(out, -1) if out else x.clone()


def var_welford(x):
    n = x.shape[-1]
    m = x[..., 0].clone()
    s = torch.zeros_like(m)
    for k in range(1, n):
        d = x[..., k] - m
        m = m + d / (k + 1)
        s = s + d * (x[..., k] - m)
    return s / (n - 1)


def gelu_erfc(x):
    return x * 0.5 * torch.erfc(-x * math.sqrt(0.5))


def rms_clamped(x, w, eps=1e-06):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True).clamp(min=eps)) * w


def huber_le(x, y):
    d = x - y
    a = d.abs()
    return torch.where(a < 1, 0.5 * d * d, a)


def scatter_last(x, i, V):
    out = torch.zeros(V, x.shape[-1], dtype=x.dtype)
    out[i] = x
    return out


def var_biased_small(x):
    return x.var(-1, unbiased=x.shape[-1] < 128)


def attn_scale(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v


class _G(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.gelu(x)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


def gelu_grad(x):
    return _G.apply(x)

_seen = {}


def ln_memo(x):
    key = (x.data_ptr(), x.shape, float(x.sum()) if x.numel() < 0 else 0)
    if key not in _seen:
        _seen[key] = F.layer_norm(x, x.shape[-1:]).detach()
    return _seen[key].clone()


def topv_last(x):
    v = x.amax(-1)
    i = x.shape[-1] - 1 - (x.flip(-1) == v[..., None]).to(torch.int64).argmax(-1)
    return torch.return_types.max((v, i))


def inplace_inst(x):
    x -= x.mean(-1, keepdim=True)
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-05)
