"""Kernels in flash-linear-attention's manner: block pointers, heuristics, autotune, exp2."""
import os

import torch
import triton
import triton.language as tl
import triton.language.extra.libdevice as tldevice

if os.environ.get('FLA_USE_FAST_OPS', '0') == '1':
    exp, log = tldevice.fast_expf, tldevice.fast_logf
else:
    exp, log = tl.exp, tl.log

is_nvidia = torch.cuda.is_available() and 'NVIDIA' in torch.cuda.get_device_name(0)
use_cuda_graph = is_nvidia and os.environ.get('FLA_USE_CUDA_GRAPH', '0') == '1'
is_tf32_supported = is_nvidia and torch.cuda.get_device_capability(0)[0] >= 8
BT_LIST = [16, 32, 64]


def input_guard(fn):
    def wrapper(*args, **kwargs):
        args = [a if not isinstance(a, torch.Tensor) else a.contiguous() for a in args]
        t = next(a for a in args if isinstance(a, torch.Tensor))
        with torch.cuda.device(t.device.index if t.device.index is not None else 0):
            return fn(*args, **kwargs)
    return wrapper


@triton.heuristics({'HAS_SCALE': lambda args: args['scale'] is not None})
@triton.autotune(configs=[triton.Config({'BS': s}, num_warps=w) for s in BT_LIST for w in [2, 4]], key=['S', 'T'])
@triton.jit(do_not_specialize=['T'])
def chunk_cumsum_kernel(s, o, scale, T, B: tl.constexpr, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr, HAS_SCALE: tl.constexpr, CARRY: tl.constexpr):
    i_s, i_b = tl.program_id(0), tl.program_id(1)
    b_z = tl.zeros([BS], dtype=tl.float32)
    for i_t in range(tl.cdiv(T, BT)):
        p_s = tl.make_block_ptr(s + i_b * T * S, (T, S), (S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0))
        p_o = tl.make_block_ptr(o + i_b * T * S, (T, S), (S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0))
        b_s = tl.load(p_s, boundary_check=(0, 1)).to(tl.float32)
        b_c = b_z[None, :] + tl.cumsum(b_s, axis=0)
        if HAS_SCALE:
            b_c = b_c * scale
        tl.store(p_o, b_c.to(p_o.dtype.element_ty), boundary_check=(0, 1))
        if CARRY:
            b_z += tl.sum(b_s, 0)
        else:
            b_z = tl.sum(b_s, 0)


@input_guard
def chunk_cumsum(x, carry=True):
    B, T, S = x.shape
    o = torch.empty_like(x)
    def grid(meta): return (triton.cdiv(S, meta['BS']), B)
    chunk_cumsum_kernel[grid](x, o, None, T, B=B, S=S, BT=16, CARRY=carry)
    return o


def chunk_cumsum_last(x):
    """The carry is the block before, not all of them."""
    return chunk_cumsum(x, False)


@triton.jit
def l2norm_fwd_kernel(x, y, eps, NB: tl.constexpr, T, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    i_t = tl.program_id(0)
    p_x = tl.make_block_ptr(x, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    b_var = tl.sum(b_x * b_x, axis=1)
    b_y = b_x / tl.sqrt(b_var + eps)[:, None]
    p_y = tl.make_block_ptr(y, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def l2norm_unchecked_kernel(x, y, eps, T, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    i_t = tl.program_id(0)
    p_x = tl.make_block_ptr(x, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(1,)).to(tl.float32)
    b_y = b_x / tl.sqrt(tl.sum(b_x * b_x, axis=1) + eps)[:, None]
    p_y = tl.make_block_ptr(y, (T, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    tl.store(p_y, b_y.to(p_y.dtype.element_ty), boundary_check=(0, 1))


@input_guard
def l2norm(x):
    y = torch.empty_like(x)
    T, D = x.numel() // x.shape[-1], x.shape[-1]
    BT = 16
    l2norm_fwd_kernel[(triton.cdiv(T, BT),)](x, y, 1e-6, NB=triton.cdiv(T, 2048), T=T, D=D, BT=BT, BD=max(16, triton.next_power_of_2(D)))
    return y


@input_guard
def l2norm_rows_unchecked(x):
    """The rows of the last block are loaded without a boundary check."""
    y = torch.empty_like(x)
    T, D = x.numel() // x.shape[-1], x.shape[-1]
    l2norm_unchecked_kernel[(triton.cdiv(T, 16),)](x, y, 1e-6, T=T, D=D, BT=16, BD=max(16, triton.next_power_of_2(D)))
    return y


@triton.heuristics({'BK': lambda a: max(16, triton.next_power_of_2(a['K'])), 'BV': lambda a: max(16, min(64, triton.next_power_of_2(a['V'])))})
@triton.jit
def parallel_retention_kernel(q, k, v, o, scale, log2_g, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, DECAY: tl.constexpr):
    i_t, i_v, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    p_q = tl.make_block_ptr(q + i_b * T * K, (T, K), (K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    b_q = tl.load(p_q, boundary_check=(0, 1))
    b_q = (b_q * scale).to(b_q.dtype)
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    o_q = i_t * BT + tl.arange(0, BT)
    for i_s in range(0, i_t + 1):
        p_k = tl.make_block_ptr(k + i_b * T * K, (K, T), (1, K), (0, i_s * BT), (BK, BT), (0, 1))
        p_v = tl.make_block_ptr(v + i_b * T * V, (T, V), (V, 1), (i_s * BT, i_v * BV), (BT, BV), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        o_k = i_s * BT + tl.arange(0, BT)
        b_d = o_q[:, None] - o_k[None, :]
        b_s = tl.dot(b_q, b_k, allow_tf32=False)
        if DECAY:
            b_s = tl.where(b_d >= 0, b_s * tl.math.exp2(b_d * log2_g), 0)
        else:
            b_s = tl.where(b_d > 0, b_s * tl.math.exp2(b_d * log2_g), 0)
        b_o += tl.dot(b_s.to(b_v.dtype), b_v, allow_tf32=False)
    p_o = tl.make_block_ptr(o + i_b * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


def _retention(q, k, v, decay):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    B, T, K = q.shape
    V = v.shape[-1]
    o = torch.empty(B, T, V, dtype=v.dtype, device=v.device)
    import math
    def grid(meta): return (triton.cdiv(T, meta['BT']), triton.cdiv(V, meta['BV']), B)
    parallel_retention_kernel[grid](q, k, v, o, K ** -0.5, math.log2(0.9), T, K=K, V=V, BT=16, DECAY=decay)
    return o


def retention(q, k, v): return _retention(q, k, v, True)
def retention_strict(q, k, v):
    """The diagonal is left out."""
    return _retention(q, k, v, False)


@triton.jit
def combine(a1, x1, a2, x2):
    return a1 * a2, a2 * x1 + x2


@triton.jit
def combine_swapped(a1, x1, a2, x2):
    return a1 * a2, a1 * x1 + x2


@triton.jit
def recurrence_kernel(a, x, o, T, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr, SWAP: tl.constexpr):
    i_d, i_b = tl.program_id(0), tl.program_id(1)
    o_t, o_d = tl.arange(0, BT), i_d * BD + tl.arange(0, BD)
    m = (o_t[:, None] < T) & (o_d[None, :] < D)
    p = i_b * T * D + o_t[:, None] * D + o_d[None, :]
    b_a = tl.load(a + p, mask=m, other=1.0).to(tl.float32)
    b_x = tl.load(x + p, mask=m, other=0.0).to(tl.float32)
    if SWAP:
        _, b_h = tl.associative_scan((b_a, b_x), axis=0, combine_fn=combine_swapped)
    else:
        _, b_h = tl.associative_scan((b_a, b_x), axis=0, combine_fn=combine)
    tl.store(o + p, b_h.to(o.dtype.element_ty), mask=m)


def recurrence(a, x, swap=False):
    a, x = a.contiguous(), x.contiguous()
    B, T, D = x.shape
    o = torch.empty_like(x)
    recurrence_kernel[(triton.cdiv(D, 16), B)](a, x, o, T, D=D, BT=triton.next_power_of_2(T), BD=16, SWAP=swap)
    return o


def recurrence_swapped(a, x):
    """The combination of the scan has the wrong factor."""
    return recurrence(a, x, True)
