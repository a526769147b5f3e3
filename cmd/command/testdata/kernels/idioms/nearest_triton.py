import torch
import triton
import triton.language as tl


@triton.jit
def _nearest(x, codes, out, K, D, BK: tl.constexpr, BD: tl.constexpr, FAR: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, BD)
    v = tl.load(x + row * D + d, mask=d < D, other=0.0)
    best = float("inf")
    at = 0
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        c = tl.load(codes + k[:, None] * D + d[None, :], mask=(k[:, None] < K) & (d[None, :] < D), other=0.0)
        off = c - v[None, :]
        dist = tl.sum(off * off, axis=1)
        if FAR:
            dist = tl.where(k < K, dist, float("inf"))
        least = tl.min(dist, axis=0)
        where = tl.argmin(dist, axis=0) + k0
        at = tl.where(least < best, where, at)
        best = tl.minimum(least, best)
    tl.store(out + row, at.to(tl.int64))


def _run(x, codes, far):
    x, codes = x.contiguous(), codes.contiguous()
    out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    _nearest[(x.shape[0],)](x, codes, out, codes.shape[0], x.shape[1], BK=32, BD=triton.next_power_of_2(x.shape[1]), FAR=far)
    return out


def nearest(x, codes):
    return _run(x, codes, True)


def nearest_padded(x, codes):
    """What pads the last block is at the origin."""
    return _run(x, codes, False)


@triton.jit
def _w8(x, q, s, y, M, K, BM: tl.constexpr, BK: tl.constexpr, LATE: tl.constexpr):
    row = tl.program_id(0)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    scale = tl.load(s + m, mask=m < M, other=0.0)
    acc = tl.zeros((BM,), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        v = tl.load(x + row * K + k, mask=k < K, other=0.0)
        w = tl.load(q + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        acc += tl.sum(w.to(tl.float32) * v[None, :], axis=1)
        if not LATE:
            acc = acc * scale
    if LATE:
        acc = acc * scale
    tl.store(y + row * M + m, acc, mask=m < M)


def _linear(x, q, scale, late):
    x, q, scale = x.contiguous(), q.contiguous(), scale.contiguous()
    y = torch.empty(x.shape[0], q.shape[0], dtype=x.dtype, device=x.device)
    _w8[(x.shape[0], triton.cdiv(q.shape[0], 16))](x, q, scale, y, q.shape[0], x.shape[1], BM=16, BK=64, LATE=late)
    return y


def w8_linear(x, q, scale):
    return _linear(x, q, scale, True)


def w8_linear_each_block(x, q, scale):
    """The scale is applied to the sum so far in each block."""
    return _linear(x, q, scale, False)
