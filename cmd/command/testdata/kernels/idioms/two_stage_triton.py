"""Kernels in FlagGems' manner: libentry-like wrappers, pointwise with libdevice, two-stage reductions."""
import logging
from typing import Optional

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

logger = logging.getLogger(__name__)
DEVICE = "cuda"
NUM_SM = torch.cuda.get_device_properties("cuda").multi_processor_count
CAP = torch.cuda.get_device_capability()
ALLOW_TF32: tl.constexpr = tl.constexpr(False)


def cfggen():
    return [triton.Config({"BLOCK_M": m, "BLOCK_N": 512}, num_warps=4) for m in (1, 2, 4)]


@triton.jit
def gelu_erf_kernel(X, Y, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    off = pid * BLOCK + tl.arange(0, BLOCK)
    mask = off < n
    x = tl.load(X + off, mask)
    x32 = x.to(tl.float32)
    y = 0.5 * x32 * (1 + libdevice.erf(x32 * 0.7071067811865476))
    tl.store(Y + off, y.to(x.dtype), mask)


@triton.jit
def mish_kernel(X, Y, n, BLOCK: tl.constexpr, GUARD: tl.constexpr):
    off = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = off < n
    x = tl.load(X + off, mask).to(tl.float32)
    if GUARD:
        sp = tl.where(x > 20.0, x, libdevice.log1p(tl.exp(x)))
    else:
        sp = tl.log(1.0 + tl.exp(x))
    tl.store(Y + off, (x * libdevice.tanh(sp)).to(Y.dtype.element_ty), mask)


def gelu(x):
    logger.debug("GEMS GELU FORWARD")
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y
    with torch.cuda.device(x.device):
        gelu_erf_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, BLOCK=1024)
    return y


def _mish(x, guard):
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        mish_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256, GUARD=guard)
    return y


def mish(x): return _mish(x, True)


@triton.autotune(configs=cfggen(), key=["M", "N"])
@triton.jit
def var_mean_kernel(X, Var, Mean, M, N, correction, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    pid = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    row = pid < M
    _sum = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for off in range(0, N, BLOCK_N):
        cols = off + tl.arange(0, BLOCK_N)[None, :]
        a = tl.load(X + pid * N + cols, row & (cols < N), other=0.0).to(tl.float32)
        _sum += a
    mean = tl.sum(_sum, axis=1)[:, None] / N
    _sq = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for off in range(0, N, BLOCK_N):
        cols = off + tl.arange(0, BLOCK_N)[None, :]
        a = tl.load(X + pid * N + cols, row & (cols < N), other=0.0).to(tl.float32)
        d = a - mean
        if MASKED:
            d = tl.where(cols < N, d, 0.0)
        _sq += d * d
    var = tl.sum(_sq, axis=1)[:, None] / (N - correction)
    tl.store(Mean + pid, mean, row)
    tl.store(Var + pid, var, row)


def _var_mean(x, masked, correction=0):
    x = x.contiguous()
    M, N = x.shape
    v = torch.empty((M,), dtype=x.dtype, device=x.device)
    m = torch.empty((M,), dtype=x.dtype, device=x.device)
    var_mean_kernel[lambda meta: (triton.cdiv(M, meta["BLOCK_M"]),)](x, v, m, M, N, correction, MASKED=masked)
    return v, m


def var_mean(x): return _var_mean(x, True)
def var_mean_padded(x):
    """Padding lanes count as (0 - mean)^2."""
    return _var_mean(x, False)
def var_mean_unbiased(x):
    """Divides by n - 1 where the reference divides by n."""
    if x.shape[-1] < 2:
        return _var_mean(x, True)
    return _var_mean(x, True, 1)


@triton.jit
def argmax_1(inp, mid_value, mid_index, M, N, BLOCK: tl.constexpr):
    pid, row = tl.program_id(0), tl.program_id(1)
    off = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(inp + row * N + off, mask=off < N, other=-float("inf"))
    mv, mi = tl.max(v, axis=0, return_indices=True)
    n = tl.num_programs(0)
    tl.store(mid_value + row * n + pid, mv)
    tl.store(mid_index + row * n + pid, pid * BLOCK + mi)


@triton.jit
def argmax_2(mid_value, mid_index, out, n, BLOCK_MID: tl.constexpr, LAST: tl.constexpr):
    row = tl.program_id(0)
    off = tl.arange(0, BLOCK_MID)
    v = tl.load(mid_value + row * n + off, mask=off < n, other=-float("inf"))
    if LAST:
        i = tl.argmax(v, axis=0, tie_break_left=True)
        best = tl.max(v, axis=0)
        i = tl.max(tl.where((v == best) & (off < n), off, -1), axis=0)
    else:
        i = tl.argmax(v, axis=0)
    tl.store(out + row, tl.load(mid_index + row * n + i))


def _argmax(x, last):
    x = x.contiguous()
    M, N = x.shape
    BLOCK = 32
    n = triton.cdiv(N, BLOCK)
    mv = torch.empty((M, n), dtype=x.dtype, device=x.device)
    mi = torch.empty((M, n), dtype=torch.int64, device=x.device)
    out = torch.empty((M,), dtype=torch.int64, device=x.device)
    argmax_1[(n, M)](x, mv, mi, M, N, BLOCK)
    argmax_2[(M,)](mv, mi, out, n, triton.next_power_of_2(n), last)
    return out


def argmax(x): return _argmax(x, False)


@triton.jit
def add_tanh_kernel(x, b, y, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in tl.range(0, N, BLOCK, num_stages=2):
        c = start + tl.arange(0, BLOCK)
        c = tl.max_contiguous(tl.multiple_of(c, BLOCK), BLOCK)
        m = c < N
        v = tl.load(x + row * stride + c, mask=m, eviction_policy="evict_first") + tl.load(b + c, mask=m, cache_modifier=".ca")
        e = tl.exp(-2.0 * tl.abs(v.to(tl.float32)))
        r = (1.0 - e) / (1.0 + e)
        tl.store(y + row * N + c, tl.where(v < 0, -r, r).to(y.dtype.element_ty), mask=m)


def tanh_sum_inner(x, b):
    """The stride of the last dimension is taken as 1."""
    M, N = x.shape
    b = b.contiguous()
    y = torch.empty(M, N, device=x.device, dtype=x.dtype)
    add_tanh_kernel[(M,)](x, b, y, N, x.stride(0), BLOCK=128)
    return y
