"""Further kernels in Triton, as engines and optimizers have them."""
import math

import torch
import triton
import triton.language as tl


# Attention over a window, causal, with ALiBi and capped scores.

@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _attend(q_ptr, k_ptr, v_ptr, o_ptr, H, L, D, scale, WINDOW: tl.constexpr, CAP_LAST: tl.constexpr, SLOPE_FROM: tl.constexpr, BL: tl.constexpr, BD: tl.constexpr):
    bh = tl.program_id(1)
    head = bh % H
    base = bh.to(tl.int64) * L * D
    rows = tl.program_id(0) * BL + tl.arange(0, BL)
    d = tl.arange(0, BD)
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :], mask=(rows[:, None] < L) & (d[None, :] < D), other=0.0)
    slope = tl.exp2(-(head + SLOPE_FROM).to(tl.float32))
    m = tl.full((BL,), float("-inf"), tl.float32)
    z = tl.zeros((BL,), tl.float32)
    acc = tl.zeros((BL, BD), tl.float32)
    first = tl.maximum(tl.program_id(0) * BL - WINDOW, 0) // BL * BL
    for start in range(first, tl.minimum((tl.program_id(0) + 1) * BL, L), BL):
        cols = start + tl.arange(0, BL)
        kv = (cols[:, None] < L) & (d[None, :] < D)
        k = tl.load(k_ptr + base + cols[:, None] * D + d[None, :], mask=kv, other=0.0)
        v = tl.load(v_ptr + base + cols[:, None] * D + d[None, :], mask=kv, other=0.0)
        gap = rows[:, None] - cols[None, :]
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        if CAP_LAST:
            s = 20.0 * _tanh((s - slope * gap) / 20.0)
        else:
            s = 20.0 * _tanh(s / 20.0) - slope * gap
        s = tl.where((gap >= 0) & (gap < WINDOW) & (cols[None, :] < L), s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        safe = tl.where(top == float("-inf"), 0.0, top)
        p = tl.exp(s - safe[:, None])
        alpha = tl.exp(m - safe)
        z = z * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p, v, input_precision="ieee")
        m = top
    tl.store(o_ptr + base + rows[:, None] * D + d[None, :], acc / z[:, None], mask=(rows[:, None] < L) & (d[None, :] < D))


def _alibi(q, k, v, window, cap_last=False, slope_from=1):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    B, H, L, D = q.shape
    o = torch.empty_like(q)
    _attend[(triton.cdiv(L, 32), B * H)](q, k, v, o, H, L, D, 1 / math.sqrt(D), WINDOW=window, CAP_LAST=cap_last, SLOPE_FROM=slope_from, BL=32, BD=max(16, triton.next_power_of_2(D)))
    return o


def alibi_softcap(q, k, v): return _alibi(q, k, v, 16)
def alibi_window_wide(q, k, v): return _alibi(q, k, v, 17)
def alibi_cap_last(q, k, v): return _alibi(q, k, v, 16, cap_last=True)
def alibi_slope_from_zero(q, k, v): return _alibi(q, k, v, 16, slope_from=0)


# AdamW.

@triton.jit
def _adamw(p_ptr, g_ptr, m_ptr, v_ptr, po, mo, vo, n, lr, decay, c1, c2, COUPLED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < n
    p = tl.load(p_ptr + i, mask=k)
    g = tl.load(g_ptr + i, mask=k)
    m = tl.load(m_ptr + i, mask=k)
    v = tl.load(v_ptr + i, mask=k)
    if COUPLED:
        g += decay * p
    else:
        p *= 1 - lr * decay
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    p -= lr * (m / c1) / (tl.sqrt(v / c2) + 1e-8)
    tl.store(po + i, p, mask=k)
    tl.store(mo + i, m, mask=k)
    tl.store(vo + i, v, mask=k)


def _step(p, g, m, v, coupled, corrected):
    p, g, m, v = (t.contiguous() for t in (p, g, m, v))
    out = [torch.empty_like(p) for _ in range(3)]
    c1, c2 = (1 - 0.9 ** 3, 1 - 0.999 ** 3) if corrected else (1.0, 1.0)
    _adamw[(triton.cdiv(p.numel(), 256),)](p, g, m, v, *out, p.numel(), 1e-3, 0.01, c1, c2, COUPLED=coupled, BLOCK=256)
    return tuple(out)


def adamw(p, g, m, v): return _step(p, g, m, v, False, True)
def adamw_coupled(p, g, m, v): return _step(p, g, m, v, True, True)
def adamw_uncorrected(p, g, m, v): return _step(p, g, m, v, False, False)


def adamw_in_place(p, g, m, v):
    n = p.numel()
    _adamw[(triton.cdiv(n, 256),)](p, g, m, v, p, m, v, n, 1e-3, 0.01, 1 - 0.9 ** 3, 1 - 0.999 ** 3, COUPLED=False, BLOCK=256)
    return p, m, v


# Rotary of neighbours in the first half of a head.

@triton.jit
def _rotate(x_ptr, cos_ptr, sin_ptr, y_ptr, S, D, R, PASS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s = row % S
    i = tl.arange(0, BLOCK)
    half = R // 2
    m = i < half
    a = tl.load(x_ptr + row * D + 2 * i, mask=m)
    b = tl.load(x_ptr + row * D + 2 * i + 1, mask=m)
    c = tl.load(cos_ptr + s * half + i, mask=m)
    t = tl.load(sin_ptr + s * half + i, mask=m)
    tl.store(y_ptr + row * D + 2 * i, a * c - b * t, mask=m)
    tl.store(y_ptr + row * D + 2 * i + 1, a * t + b * c, mask=m)
    if PASS:
        rest = (i + R < D)
        tl.store(y_ptr + row * D + R + i, tl.load(x_ptr + row * D + R + i, mask=rest), mask=rest)


def _partial(x, cos, sin, passes, fresh):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    B, S, D = x.shape
    y = fresh(x)
    _rotate[(B * S,)](x, cos, sin, y, S, D, 2 * cos.shape[-1], PASS=passes, BLOCK=triton.next_power_of_2(D))
    return y


def partial_rotary(x, cos, sin): return _partial(x, cos, sin, True, torch.empty_like)
def partial_rotary_zero_rest(x, cos, sin): return _partial(x, cos, sin, False, torch.zeros_like)
def partial_rotary_empty_rest(x, cos, sin): return _partial(x, cos, sin, False, torch.empty_like)


# Mamba's causal depthwise convolution.

@triton.jit
def _conv(x_ptr, w_ptr, b_ptr, y_ptr, C, L, K, FLIP: tl.constexpr, AHEAD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    ch = row % C
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(b_ptr + ch)
    for j in range(K):
        at = t - (K - 1) + j
        w = tl.load(w_ptr + ch * K + (K - 1 - j if FLIP else j))
        if AHEAD:
            x = tl.load(x_ptr + row * L + at, mask=(t < L) & (row * L + at >= 0), other=0.0)
        else:
            x = tl.load(x_ptr + row * L + at, mask=(t < L) & (at >= 0), other=0.0)
        acc += w * x
    tl.store(y_ptr + row * L + t, acc * tl.sigmoid(acc), mask=t < L)


def _convolve(x, w, b, flip=False, ahead=False):
    x, w, b = x.contiguous(), w.contiguous(), b.contiguous()
    B, C, L = x.shape
    y = torch.empty_like(x)
    _conv[(B * C, triton.cdiv(L, 128))](x, w, b, y, C, L, w.shape[1], FLIP=flip, AHEAD=ahead, BLOCK=128)
    return y


def conv_silu(x, w, b): return _convolve(x, w, b)
def conv_silu_flipped(x, w, b): return _convolve(x, w, b, flip=True)
def conv_silu_row_before(x, w, b): return _convolve(x, w, b, ahead=True)


# One query against a cache of keys, of which a row has so many.

@triton.jit
def _decode(q_ptr, k_ptr, v_ptr, n_ptr, o_ptr, S, D, scale, GUARD: tl.constexpr, BS: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, BD)
    md = d < D
    q = tl.load(q_ptr + row * D + d, mask=md, other=0.0)
    n = tl.load(n_ptr + row)
    m = float("-inf")
    z = 0.0
    acc = tl.zeros((BD,), tl.float32)
    for start in range(0, n, BS):
        s = start + tl.arange(0, BS)
        at = row * S * D + s[:, None] * D + d[None, :]
        keep = (s[:, None] < n) & md[None, :]
        k = tl.load(k_ptr + at, mask=keep, other=0.0)
        score = tl.where(s < n, tl.sum(k * q[None, :], 1) * scale, float("-inf"))
        top = tl.maximum(m, tl.max(score, 0))
        p = tl.exp(score - top)
        alpha = tl.exp(m - top)
        z = z * alpha + tl.sum(p, 0)
        v = tl.load(v_ptr + at, mask=keep, other=0.0)
        acc = acc * alpha + tl.sum(p[:, None] * v, 0)
        m = top
    if GUARD:
        z = tl.where(n > 0, z, 1.0)
    tl.store(o_ptr + row * D + d, acc / z, mask=md)


def _by_length(q, k, v, lengths, guard):
    q, k, v, lengths = q.contiguous(), k.contiguous(), v.contiguous(), lengths.contiguous()
    o = torch.empty_like(q)
    _decode[(q.shape[0],)](q, k, v, lengths, o, k.shape[1], q.shape[1], 1 / math.sqrt(q.shape[1]), GUARD=guard, BS=32, BD=triton.next_power_of_2(q.shape[1]))
    return o


def attention_by_length(q, k, v, lengths): return _by_length(q, k, v, lengths, True)
def attention_by_length_empty(q, k, v, lengths): return _by_length(q, k, v, lengths, False)


# Scales of rows and 8-bit floats.

@triton.jit
def _quant(x_ptr, y_ptr, s_ptr, n, FLOOR: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    s = tl.max(tl.abs(x), 0)
    if FLOOR:
        s = tl.maximum(s, 1e-4)
    s = s / 448.0
    tl.store(y_ptr + row * n + i, x / s, mask=i < n)
    tl.store(s_ptr + row, s)


def _scaled(x, floor):
    x = x.contiguous()
    y, s = torch.empty_like(x), torch.empty(x.shape[0])
    _quant[(x.shape[0],)](x, y, s, x.shape[1], FLOOR=floor, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y.to(torch.float8_e4m3fn).to(torch.float32), s


def block_quant(x): return _scaled(x, True)
def block_quant_no_floor(x): return _scaled(x, False)


# Nearest neighbour upsampling.

@triton.jit
def _up(x_ptr, y_ptr, H, W, n, TURNED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    w = i % (2 * W)
    h = i // (2 * W) % (2 * H)
    p = i // (4 * W * H)
    src = p * H * W + (w // 2 * H + h // 2 if TURNED else h // 2 * W + w // 2)
    tl.store(y_ptr + i, tl.load(x_ptr + src, mask=m), mask=m)


def _nearest(x, turned, grid_down=False):
    x = x.contiguous()
    B, C, H, W = x.shape
    y = torch.empty(B, C, 2 * H, 2 * W, dtype=x.dtype)
    n = y.numel()
    _up[((n // 128 if grid_down else triton.cdiv(n, 128)),)](x, y, H, W, n, TURNED=turned, BLOCK=128)
    return y


def nearest_up(x): return _nearest(x, False)
def nearest_up_turned(x): return _nearest(x, True)
def nearest_up_floor(x): return _nearest(x, False, True)


# A fused end of a layer, with gradients.

@triton.jit
def _bdr(x_ptr, b_ptr, r_ptr, m_ptr, y_ptr, C, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = i < n
    x = tl.load(x_ptr + i, mask=k) + tl.load(b_ptr + i % C, mask=k)
    keep = tl.load(m_ptr + i, mask=k, other=0)
    tl.store(y_ptr + i, tl.where(keep != 0, x / 0.8, 0.0) + tl.load(r_ptr + i, mask=k), mask=k)


class _BDR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b, r, mask, masked):
        xc, bc, rc, mc = x.contiguous(), b.contiguous(), r.contiguous(), mask.contiguous().to(torch.uint8)
        y = torch.empty_like(xc)
        n = xc.numel()
        _bdr[(triton.cdiv(n, 128),)](xc, bc, rc, mc, y, x.shape[-1], n, BLOCK=128)
        ctx.save_for_backward(mask)
        ctx.masked = masked
        return y

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        gx = g * mask.to(g.dtype) / 0.8
        return gx, (gx if ctx.masked else g).sum(0), g, None, None


def bias_dropout_residual(x, b, r, mask): return _BDR.apply(x, b, r, mask, True)
def bias_dropout_bias_unmasked(x, b, r, mask): return _BDR.apply(x, b, r, mask, False)


# Batch norm in training: a program a channel.

@triton.jit
def _bn(x_ptr, w_ptr, b_ptr, rm_ptr, rv_ptr, y_ptr, rmo, rvo, N, C, L, UNBIASED: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    n = N * L
    total = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + i // L * C * L + c * L + i % L, mask=i < n, other=0.0)
    mean = tl.sum(total, 0) / n
    sq = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i // L * C * L + c * L + i % L, mask=i < n, other=0.0)
        e = tl.where(i < n, x - mean, 0.0)
        sq += e * e
    var = tl.sum(sq, 0) / n
    scale = tl.load(w_ptr + c) / tl.sqrt(var + 1e-5)
    shift = tl.load(b_ptr + c)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        at = i // L * C * L + c * L + i % L
        x = tl.load(x_ptr + at, mask=i < n)
        tl.store(y_ptr + at, (x - mean) * scale + shift, mask=i < n)
    kept = var * n / (n - 1) if UNBIASED else var
    tl.store(rmo + c, 0.9 * tl.load(rm_ptr + c) + 0.1 * mean)
    tl.store(rvo + c, 0.9 * tl.load(rv_ptr + c) + 0.1 * kept)


def _bnt(x, w, b, mean, var, unbiased):
    x, w, b, mean, var = (t.contiguous() for t in (x, w, b, mean, var))
    N, C, L = x.shape
    y, rm, rv = torch.empty_like(x), torch.empty_like(mean), torch.empty_like(var)
    _bn[(C,)](x, w, b, mean, var, y, rm, rv, N, C, L, UNBIASED=unbiased, BLOCK=256)
    return y, rm, rv


def batch_norm_train(x, w, b, mean, var): return _bnt(x, w, b, mean, var, True)
def batch_norm_train_biased(x, w, b, mean, var): return _bnt(x, w, b, mean, var, False)


# A segment's mean by atomic additions.

@triton.jit
def _scatter(x_ptr, t_ptr, sum_ptr, n_ptr, C, BLOCK: tl.constexpr):
    e = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    t = tl.load(t_ptr + e)
    tl.atomic_add(sum_ptr + t * C + c, tl.load(x_ptr + e * C + c, mask=c < C), mask=c < C)
    tl.atomic_add(n_ptr + t, 1.0)


def _scattered(x, target, nodes, fresh):
    x, target = x.contiguous(), target.contiguous()
    total, n = fresh(nodes, x.shape[1]), torch.zeros(nodes)
    _scatter[(x.shape[0],)](x, target, total, n, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return total / n.clamp(min=1)[:, None]


def scatter_mean(x, target, nodes=7): return _scattered(x, target, nodes, torch.zeros)
def scatter_mean_unzeroed(x, target, nodes=7): return _scattered(x, target, nodes, torch.empty)
