"""Layers and losses by other formulas than PyTorch's, as people rewrite them by hand."""
import math

import torch
import torch.nn.functional as F


def upsample(x): return _up(x, False)
def upsample_corners(x): return _up(x, True)


def _weights(n, dtype, corners):
    out = torch.arange(2 * n, dtype=dtype)
    at = out * (n - 1) / (2 * n - 1) if corners else ((out + 0.5) / 2 - 0.5).clamp(min=0)
    lo = at.floor().long()
    hi = (lo + 1).clamp(max=n - 1)
    return lo, hi, at - lo


def _up(x, corners):
    lo, hi, f = _weights(x.shape[-2], x.dtype, corners)
    f = f[:, None]
    x = x[..., lo, :] * (1 - f) + x[..., hi, :] * f
    lo, hi, f = _weights(x.shape[-1], x.dtype, corners)
    return x[..., lo] * (1 - f) + x[..., hi] * f


def cosine(x, y):
    return (x * y).sum(-1) / (x.norm(dim=-1).clamp(min=1e-8) * y.norm(dim=-1).clamp(min=1e-8))


def cosine_no_eps(x, y):
    return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))


def huber(x, y):
    d = (x - y).abs()
    q = d.clamp(max=0.5)
    return (0.5 * q * q + 0.5 * (d - q)).mean()


def huber_smooth_l1(x, y):
    d = (x - y).abs()
    q = d.clamp(max=0.5)
    return ((0.5 * q * q + 0.5 * (d - q)) / 0.5).mean()


def blend(x, y, m): return x + m * (y - x)
def blend_swapped(x, y, m): return y + m * (x - y)
def group_dequant(w, s): return w.to(s.dtype) * s.repeat_interleave(8, 1)
def group_dequant_tiled(w, s): return w.to(s.dtype) * s.repeat(1, 8)


def router(x, w):
    v, i = torch.topk(F.linear(x, w).float(), 2, -1)
    return torch.softmax(v, -1), i


def router_unnormalised(x, w):
    p = torch.softmax(F.linear(x, w).float(), -1)
    return torch.topk(p, 2, -1)


def wkv(w, u, k, v):
    num = torch.zeros_like(k[:, 0])
    den, top = torch.zeros_like(num), torch.full_like(num, -1e38)
    out = []
    for t in range(k.shape[1]):
        p = torch.maximum(top, u + k[:, t])
        a, b = torch.exp(top - p), torch.exp(u + k[:, t] - p)
        out.append((a * num + b * v[:, t]) / (a * den + b))
        p = torch.maximum(top + w, k[:, t])
        a, b = torch.exp(top + w - p), torch.exp(k[:, t] - p)
        num, den, top = a * num + b * v[:, t], a * den + b, p
    return torch.stack(out, 1)


def wkv_unscaled(w, u, k, v):
    num = torch.zeros_like(k[:, 0])
    den = torch.zeros_like(num)
    out = []
    for t in range(k.shape[1]):
        b = torch.exp(u + k[:, t])
        out.append((num + b * v[:, t]) / (den + b))
        num = torch.exp(w) * num + torch.exp(k[:, t]) * v[:, t]
        den = torch.exp(w) * den + torch.exp(k[:, t])
    return torch.stack(out, 1)


class _GroupNormSilu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        n, c = x.shape[:2]
        g = x.reshape(n, 4, -1)
        mean = g.mean(-1, keepdim=True)
        rstd = ((g - mean) ** 2).mean(-1, keepdim=True).add(1e-5).rsqrt()
        xh = ((g - mean) * rstd).reshape(x.shape)
        shape = (1, c) + (1,) * (x.dim() - 2)
        z = xh * w.view(shape) + b.view(shape)
        s = torch.sigmoid(z)
        ctx.save_for_backward(xh, rstd, w, z, s)
        return z * s

    @staticmethod
    def backward(ctx, g):
        xh, rstd, w, z, s = ctx.saved_tensors
        n, c = xh.shape[:2]
        shape = (1, c) + (1,) * (xh.dim() - 2)
        g = g * (s + z * s * (1 - s))
        dims = [i for i in range(xh.dim()) if i != 1]
        gw, gb = (g * xh).sum(dims), g.sum(dims)
        h = (g * w.view(shape)).reshape(n, 4, -1)
        v = xh.reshape(n, 4, -1)
        gx = rstd * (h - h.mean(-1, keepdim=True) - v * (h * v).mean(-1, keepdim=True))
        return gx.reshape(xh.shape), gw, gb


class _Stale(_GroupNormSilu):
    @staticmethod
    def backward(ctx, g):
        xh, rstd, w, z, s = ctx.saved_tensors
        return _GroupNormSilu.backward(ctx, g)[0], (g * xh).sum([i for i in range(xh.dim()) if i != 1]), _GroupNormSilu.backward(ctx, g)[2]


def group_norm_silu(x, w, b): return _GroupNormSilu.apply(x, w, b)
def group_norm_silu_weight_grad(x, w, b): return _Stale.apply(x, w, b)


def log_cosh(x, y):
    d = (x - y).abs()
    return (d + torch.log1p(torch.exp(-2 * d)) - math.log(2)).mean()


def log_cosh_plain(x, y): return torch.log(torch.cosh(x - y)).mean()
def elu(x): return torch.where(x > 0, x, torch.exp(x.clamp(max=0)) - 1)
def elu_no_clamp(x): return torch.where(x > 0, x, torch.exp(x) - 1)
def elu_slope(x): return torch.where(x > 0, x, 1.01 * torch.exp(x.clamp(max=0)) - 1.01)


def _gru(x, h, wi, wh, bi, bh, early):
    H = h.shape[1]
    gi = F.linear(x, wi, bi)
    i_r, i_z, i_n = gi.split(H, 1)
    if early:
        h_r, h_z = F.linear(h, wh[:2 * H], bh[:2 * H]).split(H, 1)
        r = torch.sigmoid(i_r + h_r)
        h_n = F.linear(r * h, wh[2 * H:], bh[2 * H:])
        n = torch.tanh(i_n + h_n)
    else:
        h_r, h_z, h_n = F.linear(h, wh, bh).split(H, 1)
        r = torch.sigmoid(i_r + h_r)
        n = torch.tanh(i_n + r * h_n)
    z = torch.sigmoid(i_z + h_z)
    return n + z * (h - n)


def gru_cell(x, h, wi, wh, bi, bh): return _gru(x, h, wi, wh, bi, bh, False)
def gru_cell_reset_early(x, h, wi, wh, bi, bh): return _gru(x, h, wi, wh, bi, bh, True)


def lstm_cell(x, h, c, wi, wh):
    i, f, g, o = (torch.cat([x, h], 1) @ torch.cat([wi, wh], 1).t()).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def lstm_cell_gates(x, h, c, wi, wh):
    i, f, o, g = (torch.cat([x, h], 1) @ torch.cat([wi, wh], 1).t()).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def weight_norm_linear(x, v, g): return (x @ v.t()) * (g / v.norm(dim=1, keepdim=True)).t()
def weight_norm_linear_whole(x, v, g): return (x @ v.t()) * (g / v.norm()).t()


def rotary_complex(x, angle):
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def rotary_complex_conjugate(x, angle):
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(z * torch.polar(torch.ones_like(angle), -angle)).flatten(-2)


def response_norm(x):
    s = F.pad((x * x).transpose(1, -1), (2, 2)).unfold(-1, 5, 1).mean(-1).transpose(1, -1)
    return x / (1 + 1e-4 * s) ** 0.75


def response_norm_sum(x):
    s = F.pad((x * x).transpose(1, -1), (2, 2)).unfold(-1, 5, 1).sum(-1).transpose(1, -1)
    return x / (1 + 1e-4 * s) ** 0.75


def contrastive(a, b):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    aa, bb, ab = a @ a.t() / 0.5, b @ b.t() / 0.5, a @ b.t() / 0.5
    eye = torch.eye(len(a), dtype=torch.bool)
    aa, bb = aa.masked_fill(eye, -1e30), bb.masked_fill(eye, -1e30)
    first = torch.logsumexp(torch.cat([aa, ab], 1), 1)
    second = torch.logsumexp(torch.cat([bb, ab.t()], 1), 1)
    return ((first + second) / 2 - ab.diagonal()).mean()


def contrastive_with_self(a, b):
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    aa, bb, ab = a @ a.t() / 0.5, b @ b.t() / 0.5, a @ b.t() / 0.5
    first = torch.logsumexp(torch.cat([aa, ab], 1), 1)
    second = torch.logsumexp(torch.cat([bb, ab.t()], 1), 1)
    return ((first + second) / 2 - ab.diagonal()).mean()


def smooth_ce(x, t):
    lse = torch.logsumexp(x, -1)
    return (lse - 0.9 * x.gather(1, t[:, None])[:, 0] - 0.1 * x.mean(-1)).mean()


def smooth_ce_others(x, t):
    lse = torch.logsumexp(x, -1)
    return (lse - 0.9 * x.gather(1, t[:, None])[:, 0] - 0.1 * (x.sum(-1) - x.gather(1, t[:, None])[:, 0]) / x.shape[1]).mean()


def geglu(x):
    n = x.shape[-1] // 2
    a, b = x[..., :n].float(), x[..., n:].float()
    return (a * 0.5 * b * (1 + torch.erf(b / math.sqrt(2)))).to(x.dtype)


def geglu_swapped(x):
    b, a = x.float().chunk(2, -1)
    return (a * F.gelu(b)).to(x.dtype)
