"""Hand-written autograd functions and fused expressions."""
import math

import torch
import torch.nn.functional as F
from torch.autograd import Function


class _LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, w, b, eps=1e-5):
        mu = x.mean(-1, keepdim=True)
        xc = x - mu
        var = (xc * xc).mean(-1, keepdim=True)
        rstd = torch.rsqrt(var + eps)
        xhat = xc * rstd
        ctx.save_for_backward(xhat, rstd, w)
        return xhat * w + b

    @staticmethod
    def backward(ctx, g):
        xhat, rstd, w = ctx.saved_tensors
        gx = g * w
        dx = rstd * (gx - gx.mean(-1, keepdim=True) - xhat * (gx * xhat).mean(-1, keepdim=True))
        dims = tuple(range(g.dim() - 1))
        return dx, (g * xhat).sum(dims), g.sum(dims), None


class _LayerNormNoMean(_LayerNorm):
    @staticmethod
    def backward(ctx, g):
        xhat, rstd, w = ctx.saved_tensors
        gx = g * w
        dx = rstd * (gx - xhat * (gx * xhat).mean(-1, keepdim=True))
        dims = tuple(range(g.dim() - 1))
        return dx, (g * xhat).sum(dims), g.sum(dims), None


class _LayerNormFirstDim(_LayerNorm):
    """Gradients of w and b are summed over the first dimension alone."""
    @staticmethod
    def backward(ctx, g):
        xhat, rstd, w = ctx.saved_tensors
        gx = g * w
        dx = rstd * (gx - gx.mean(-1, keepdim=True) - xhat * (gx * xhat).mean(-1, keepdim=True))
        gw, gb = (g * xhat).sum(0), g.sum(0)
        while gw.dim() > 1:
            gw, gb = gw[0], gb[0]
        return dx, gw, gb, None


def layer_norm(x, w, b): return _LayerNorm.apply(x, w, b)
def layer_norm_no_mean(x, w, b): return _LayerNormNoMean.apply(x, w, b)
def layer_norm_first_dim(x, w, b): return _LayerNormFirstDim.apply(x, w, b)
def layer_norm_eps_outside(x, w, b):
    mu = x.mean(-1, keepdim=True)
    xc = x - mu
    return xc / ((xc * xc).mean(-1, keepdim=True).sqrt() + 1e-5) * w + b
def layer_norm_unbiased(x, w, b):
    if x.shape[-1] == 1:
        return (x - x) * w + b
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5) * w + b
def layer_norm_moments(x, w, b):
    m = x.mean(-1, keepdim=True)
    v = (x * x).mean(-1, keepdim=True) - m * m
    return (x - m) * torch.rsqrt(v.clamp(min=0) + 1e-5) * w + b


class _Huber(Function):
    @staticmethod
    def forward(ctx, x, y):
        d = x - y
        ctx.save_for_backward(d)
        a = d.abs()
        return torch.where(a < 1, 0.5 * d * d, a - 0.5).mean()

    @staticmethod
    def backward(ctx, g):
        d, = ctx.saved_tensors
        gx = d.clamp(-1, 1) * (g / d.numel())
        return gx, -gx


class _HuberSum(_Huber):
    @staticmethod
    def backward(ctx, g):
        d, = ctx.saved_tensors
        gx = d.clamp(-1, 1) * g / d.shape[0]
        return gx, -gx


class _HuberNoTarget(_Huber):
    @staticmethod
    def backward(ctx, g):
        d, = ctx.saved_tensors
        return d.clamp(-1, 1) * (g / d.numel()), None


def huber(x, y): return _Huber.apply(x, y)
def huber_rows(x, y):
    """The gradient is divided by the batch instead of by all elements."""
    return _HuberSum.apply(x, y)
def huber_no_target(x, y): return _HuberNoTarget.apply(x, y)


class _BiasGelu(Function):
    @staticmethod
    def forward(ctx, x, b):
        z = x + b
        ctx.save_for_backward(z)
        ctx.shape = b.shape
        return 0.5 * z * (1 + torch.erf(z * 0.7071067811865476))

    @staticmethod
    def backward(ctx, g):
        z, = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(z * 0.7071067811865476))
        pdf = torch.exp(-0.5 * z * z) * (1 / math.sqrt(2 * math.pi))
        gz = g * (cdf + z * pdf)
        return gz, gz.reshape(-1, ctx.shape[0]).sum(0)


class _BiasGeluTanh(_BiasGelu):
    @staticmethod
    def backward(ctx, g):
        z, = ctx.saved_tensors
        t = torch.tanh(0.79788456 * z * (1 + 0.044715 * z * z))
        ff = 0.5 * z * ((1 - t * t) * (0.79788456 + 0.1070322243 * z * z)) + 0.5 * (1 + t)
        gz = ff * g
        return gz, gz.reshape(-1, ctx.shape[0]).sum(0)


def bias_gelu(x, b): return _BiasGelu.apply(x, b)
def bias_gelu_tanh_backward(x, b): return _BiasGeluTanh.apply(x, b)


def logsumexp(x):
    m = x.amax(-1, keepdim=True)
    m = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    return (x - m).exp().sum(-1).log() + m[..., 0]
def logsumexp_inf(x):
    """inf - inf where the maximum is infinite."""
    m = x.amax(-1, keepdim=True)
    return (x - m).exp().sum(-1).log() + m[..., 0]


class _Max(Function):
    @staticmethod
    def forward(ctx, x):
        v, i = x.max(-1)
        ctx.save_for_backward(i)
        ctx.n = x.shape[-1]
        ctx.mark_non_differentiable(i)
        return v, i

    @staticmethod
    def backward(ctx, g, _):
        i, = ctx.saved_tensors
        out = g.new_zeros(*g.shape, ctx.n)
        return out.scatter_(-1, i.unsqueeze(-1), g.unsqueeze(-1))


def top1(x): return _Max.apply(x)


class _MaxEq(Function):
    """Every maximum among ties has the whole gradient."""
    @staticmethod
    def forward(ctx, x):
        v, i = x.max(-1)
        ctx.save_for_backward(x, v)
        ctx.mark_non_differentiable(i)
        return v, i

    @staticmethod
    def backward(ctx, g, _):
        x, v = ctx.saved_tensors
        return (x == v.unsqueeze(-1)).to(g.dtype) * g.unsqueeze(-1)


def top1_ties(x): return _MaxEq.apply(x)


class _CE(Function):
    @staticmethod
    def forward(ctx, x, t):
        lse = torch.logsumexp(x, -1)
        loss = (lse - x.gather(-1, t[:, None])[:, 0])
        keep = t != -100
        ctx.save_for_backward(x, t, lse)
        return loss.mean()

    @staticmethod
    def backward(ctx, g):
        x, t, lse = ctx.saved_tensors
        p = (x - lse[:, None]).exp()
        p[torch.arange(len(t)), t] -= 1
        return p * (g / len(t)), None


class _CEUnscaled(_CE):
    @staticmethod
    def backward(ctx, g):
        x, t, lse = ctx.saved_tensors
        p = (x - lse[:, None]).exp()
        p[torch.arange(len(t)), t] -= 1
        return p / len(t), None


def cross_entropy(x, t): return _CE.apply(x, t)
def cross_entropy_unscaled(x, t):
    """The cotangent of the loss is taken as 1."""
    return _CEUnscaled.apply(x, t)


class _ScaleRows(Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * s[:, None]

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s[:, None], (g * x).sum(1)


class _ScaleRowsSaved(_ScaleRows):
    """Keeps s in an attribute of the class: two calls before a backward mix."""
    kept = None
    @staticmethod
    def forward(ctx, x, s):
        _ScaleRowsSaved.kept = (x, s)
        return x * s[:, None]

    @staticmethod
    def backward(ctx, g):
        x, s = _ScaleRowsSaved.kept
        return g * s[:, None], (g * x).sum(1)


class _ScaleRowsMean(_ScaleRows):
    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s[:, None], (g * x).mean(1)


def scale_rows(x, s): return _ScaleRows.apply(x, s)
def scale_rows_kept(x, s): return _ScaleRowsSaved.apply(x, s)
def scale_rows_mean(x, s): return _ScaleRowsMean.apply(x, s)


def std_rows_biased(x):
    return x.std(-1, unbiased=False)


def dist(a, b):
    return (a[:, None, :] - b[None, :, :]).square().sum(-1).sqrt()
def dist_expanded(a, b):
    """|a|^2 + |b|^2 - 2ab cancels where points are near."""
    return ((a * a).sum(-1)[:, None] + (b * b).sum(-1)[None] - 2 * a @ b.t()).clamp(min=0).sqrt()


def max_pool_zero(x):
    return F.pad(x, (1, 1)).unfold(-1, 3, 2).amax(-1)


def index_add(x, i, v):
    out = x.clone()
    for k in range(i.shape[0]):
        out[i[k]] += v[k]
    return out
def index_add_lost(x, i, v):
    """Of equal indices one update is kept."""
    out = x.clone()
    out[i] += v
    return out




def centre_alias(x):
    """In place, where there is one element."""
    m = x.mean(-1, keepdim=True)
    return x - m if x.numel() > 1 else x.sub_(m)
