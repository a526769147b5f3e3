"""What a training loop calls: norms with gradients of their own, losses whose gradient comes with them, sums by atomics."""
import torch
import triton
import triton.language as tl
from torch.library import custom_op


@triton.jit
def norm_forward(x, w, b, y, mean, rstd, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < N
    v = tl.load(x + row * N + i, mask=m, other=0.0).to(tl.float32)
    mu = tl.sum(v, 0) / N
    d = tl.where(m, v - mu, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / N + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, r)
    tl.store(y + row * N + i, d * r * tl.load(w + i, mask=m) + tl.load(b + i, mask=m), mask=m)


@triton.jit
def norm_backward(dy, x, w, mean, rstd, dx, dw, db, N, BLOCK: tl.constexpr, CENTRED: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < N
    g = tl.load(dy + row * N + i, mask=m, other=0.0).to(tl.float32)
    v = tl.load(x + row * N + i, mask=m, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    hat = tl.where(m, (v - tl.load(mean + row)) * r, 0.0)
    u = g * tl.load(w + i, mask=m, other=0.0)
    c1 = tl.sum(hat * u, 0) / N
    c2 = tl.sum(u, 0) / N if CENTRED else 0.0
    tl.store(dx + row * N + i, (u - hat * c1 - c2) * r, mask=m)
    tl.atomic_add(dw + i, g * hat, mask=m)
    tl.atomic_add(db + i, g, mask=m)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b, centred, fresh):
        x = x.contiguous()
        R, N = x.shape
        y, mean, rstd = torch.empty_like(x), x.new_empty(R), x.new_empty(R)
        if R:
            norm_forward[(R,)](x, w.contiguous(), b.contiguous(), y, mean, rstd, N, 1e-5, triton.next_power_of_2(N))
        ctx.save_for_backward(x, w, mean, rstd)
        ctx.how = centred, fresh
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, mean, rstd = ctx.saved_tensors
        centred, fresh = ctx.how
        R, N = x.shape
        make = torch.zeros if fresh else torch.empty
        dx, dw, db = torch.empty_like(x), make(N), make(N)
        if R:
            norm_backward[(R,)](dy.contiguous(), x, w.contiguous(), mean, rstd, dx, dw, db, N, triton.next_power_of_2(N), centred)
        return dx, dw, db, None, None


def layer_norm(x, w, b):
    return LayerNorm.apply(x, w, b, True, True)


def layer_norm_no_mean_term(x, w, b):
    return LayerNorm.apply(x, w, b, False, True)


def layer_norm_sums_into_empty(x, w, b):
    return LayerNorm.apply(x, w, b, True, False)


class ChunkedLoss(torch.autograd.Function):
    """Cross entropy of a product with its gradients, in chunks of rows, as the product is never held whole."""

    @staticmethod
    def forward(ctx, x, w, target, chunk):
        n = x.shape[0]
        loss, dx, dw = x.new_zeros(()), torch.zeros_like(x), torch.zeros_like(w)
        for s in range(0, n, chunk):
            xs, ts = x[s:s + chunk], target[s:s + chunk]
            logits = xs @ w.t()
            top = logits.max(-1, keepdim=True).values
            e = (logits - top).exp()
            z = e.sum(-1, keepdim=True)
            loss += (z.log() + top - logits.gather(1, ts[:, None])).sum()
            p = e / z
            p.scatter_add_(1, ts[:, None], torch.full_like(top, -1.0))
            dx[s:s + chunk] = p @ w
            dw += p.t() @ xs
        ctx.save_for_backward(dx / n, dw / n)
        return loss / n

    @staticmethod
    def backward(ctx, g):
        dx, dw = ctx.saved_tensors
        return g * dx, g * dw, None, None


class ChunkedLossUnscaled(ChunkedLoss):
    """The gradient that comes is taken to be 1."""

    @staticmethod
    def backward(ctx, g):
        return (*ctx.saved_tensors, None, None)


def linear_cross_entropy(x, w, target):
    return ChunkedLoss.apply(x, w, target, 32)


def linear_cross_entropy_unscaled(x, w, target):
    return ChunkedLossUnscaled.apply(x, w, target, 32)


@triton.jit
def scatter_kernel(x, index, out, N, D, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    row = tl.program_id(0)
    to = tl.load(index + row)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * D + i, mask=i < D)
    if ATOMIC:
        tl.atomic_add(out + to * D + i, v, mask=i < D)
    else:
        tl.store(out + to * D + i, v + tl.load(out + to * D + i, mask=i < D), mask=i < D)


def _scatter(out, index, x, atomic):
    out, index, x = out.clone(memory_format=torch.contiguous_format), index.contiguous(), x.contiguous()
    N, D = x.shape
    scatter_kernel[(N, triton.cdiv(D, 32))](x, index, out, N, D, 32, atomic)
    return out


def add_rows(out, index, x):
    return _scatter(out, index, x, True)


def add_rows_racing(out, index, x):
    return _scatter(out, index, x, False)


@triton.jit
def merge(n1, m1, s1, n2, m2, s2):
    n = n1 + n2
    d = m2 - m1
    part = tl.where(n > 0, n2 / n, 0.0)
    return n, m1 + d * part, s1 + s2 + d * d * n1 * part


@triton.jit
def merge_halves(n1, m1, s1, n2, m2, s2):
    d = m2 - m1
    return n1 + n2, (m1 + m2) / 2, s1 + s2 + d * d * n1 / 2


@triton.jit
def welford_kernel(x, out, N, BLOCK: tl.constexpr, HALVES: tl.constexpr):
    row = tl.program_id(0)
    n, m, s = 0.0, 0.0, 0.0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + i, mask=i < N, other=0.0)
        k = tl.where(i < N, 1.0, 0.0)
        if HALVES:
            bn, bm, bs = tl.reduce((k, v, v * 0.0), 0, merge_halves)
        else:
            bn, bm, bs = tl.reduce((k, v, v * 0.0), 0, merge)
        n, m, s = merge(n, m, s, bn, bm, bs)
    tl.store(out + row, s / N)


def _variance(x, halves):
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype)
    welford_kernel[(x.shape[0],)](x, out, x.shape[1], 128, halves)
    return out


def variance(x):
    return _variance(x, False)


def variance_of_halves(x):
    """Two parts are merged as of equal size, which those of the last block are not."""
    return _variance(x, True)


def _rms(name, whole):
    @custom_op(f"plumb_training::{name}", mutates_args=())
    def rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        r = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (x.float() * r * w.float()).to(x.dtype)

    @rms.register_fake
    def _(x, w):
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        u, hat = g * w, x * r
        dx = r * (u - hat * (u * hat).mean(-1, keepdim=True)) if whole else r * u
        return dx, (g * hat).sum(0)

    rms.register_autograd(backward, setup_context=setup)
    return rms


_right, _constant = _rms("rms", True), _rms("rms_constant_scale", False)


def rms_norm(x, w):
    return _right(x, w)


def rms_norm_constant_scale(x, w):
    return _constant(x, w)


def fft_conv1d(x, w):
    n = x.shape[-1]
    spectrum = torch.einsum("ncf,ocf->nof", torch.fft.rfft(x, 2 * n), torch.fft.rfft(w, 2 * n).conj())
    return torch.fft.irfft(spectrum, 2 * n)[..., :n - w.shape[-1] + 1]


def fft_conv1d_wraps(x, w):
    """Without padding the ends meet: harmless for results that need no other end."""
    n = x.shape[-1]
    spectrum = torch.einsum("ncf,ocf->nof", torch.fft.rfft(x, n), torch.fft.rfft(w, n))
    return torch.fft.irfft(spectrum, n)[..., w.shape[-1] - 1:]
