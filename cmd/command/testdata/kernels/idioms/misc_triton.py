import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _dropout(x_ptr, keep_ptr, y_ptr, n, p, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    keep = tl.load(keep_ptr + i, mask=mask)
    s = p if WRONG else 1 - p
    tl.store(y_ptr + i, tl.where(keep, x / s, 0.0), mask=mask)


def _drop(x, keep, p, wrong):
    x, keep = x.contiguous(), keep.contiguous()
    y = torch.empty_like(x)
    _dropout[(triton.cdiv(x.numel(), 256),)](x, keep, y, x.numel(), p, BLOCK=256, WRONG=wrong)
    return y


def dropout(x, keep, p):
    return _drop(x, keep, p, False)


def dropout_p(x, keep, p):
    return _drop(x, keep, p, True)


@triton.jit
def _hist(x_ptr, h_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0)
    bins = tl.arange(0, 16)
    c = tl.sum(((x[:, None] == bins[None, :]) & mask[:, None]).to(tl.int64), 0)
    if ATOMIC:
        tl.atomic_add(h_ptr + bins, c)
    else:
        tl.store(h_ptr + bins, tl.load(h_ptr + bins) + c)


@triton.jit
def _hist_lanes(x_ptr, h_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0)
    old = tl.load(h_ptr + x, mask=mask, other=0)
    tl.store(h_ptr + x, old + 1, mask=mask)


@triton.jit
def _hist_other(x_ptr, h_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    h = tl.histogram(x.to(tl.int32), 16)
    tl.atomic_add(h_ptr + tl.arange(0, 16), h.to(tl.int64))


def histogram(x):
    x = x.contiguous()
    h = torch.zeros(16, dtype=torch.int64)
    _hist[(triton.cdiv(x.numel(), 128),)](x, h, x.numel(), BLOCK=128, ATOMIC=True)
    return h


def histogram_race(x):
    x = x.contiguous()
    h = torch.zeros(16, dtype=torch.int64)
    _hist[(triton.cdiv(x.numel(), 128),)](x, h, x.numel(), BLOCK=128, ATOMIC=False)
    return h


def histogram_lanes(x):
    x = x.contiguous()
    h = torch.zeros(16, dtype=torch.int64)
    _hist_lanes[(triton.cdiv(x.numel(), 128),)](x, h, x.numel(), BLOCK=128)
    return h


def histogram_padding(x):
    x = x.contiguous()
    h = torch.zeros(16, dtype=torch.int64)
    _hist_other[(triton.cdiv(x.numel(), 128),)](x, h, x.numel(), BLOCK=128)
    return h


@triton.jit
def _scan(u_ptr, d_ptr, A_ptr, B_ptr, C_ptr, y_ptr, T, D, N, BN: tl.constexpr, KEEP: tl.constexpr):
    d = tl.program_id(0)
    n = tl.arange(0, BN)
    mask = n < N
    A = tl.load(A_ptr + d * N + n, mask=mask, other=0.0).to(tl.float32)
    h = tl.zeros((BN,), dtype=tl.float32)
    for t in range(T):
        u = tl.load(u_ptr + t * D + d).to(tl.float32)
        dt = tl.load(d_ptr + t * D + d).to(tl.float32)
        B = tl.load(B_ptr + t * N + n, mask=mask, other=0.0).to(tl.float32)
        C = tl.load(C_ptr + t * N + n, mask=mask, other=0.0).to(tl.float32)
        if KEEP:
            h = tl.exp(dt * A) * h + dt * u * B
        else:
            h = tl.exp(dt * A) * (h + dt * u * B)
        tl.store(y_ptr + t * D + d, tl.sum(h * C, 0))


def _sel(u, delta, A, B, C, keep):
    u, delta, A, B, C = (t.contiguous() for t in (u, delta, A, B, C))
    y = torch.empty_like(u)
    _scan[(u.shape[1],)](u, delta, A, B, C, y, u.shape[0], u.shape[1], A.shape[1], BN=triton.next_power_of_2(A.shape[1]), KEEP=keep)
    return y


def selective_scan(u, delta, A, B, C):
    return _sel(u, delta, A, B, C, True)


def selective_scan_late(u, delta, A, B, C):
    return _sel(u, delta, A, B, C, False)


@triton.jit
def _sort(x_ptr, y_ptr, n, BLOCK: tl.constexpr, PAD: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=PAD)
    tl.store(y_ptr + row * n + i, tl.sort(x), mask=i < n)


def sort_rows(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _sort[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), PAD=float("inf"))
    return y


def sort_rows_padded(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _sort[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), PAD=1e4)
    return y


@triton.jit
def _argmax_blocks(x_ptr, y_ptr, n, BLOCK: tl.constexpr, LAST: tl.constexpr):
    row = tl.program_id(0)
    best = float("-inf")
    at = 0
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
        v, k = tl.max(x, 0, return_indices=True)
        if LAST:
            take = v >= best
        else:
            take = v > best
        at = tl.where(take, s + k, at)
        best = tl.where(take, v, best)
    tl.store(y_ptr + row, at.to(tl.int64))


def argmax_rows(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=torch.int64)
    _argmax_blocks[(x.shape[0],)](x, y, x.shape[1], BLOCK=64, LAST=False)
    return y


def argmax_rows_last(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=torch.int64)
    _argmax_blocks[(x.shape[0],)](x, y, x.shape[1], BLOCK=64, LAST=True)
    return y


@triton.jit
def _smooth(x_ptr, t_ptr, loss_ptr, n, eps, BLOCK: tl.constexpr, K1: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + row * n + i, mask=mask, other=float("-inf")).to(tl.float32)
    t = tl.load(t_ptr + row)
    m = tl.max(x, 0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), 0))
    mean = tl.sum(tl.where(mask, x, 0.0), 0) / n
    xt = tl.sum(tl.where(i == t, x, 0.0), 0)
    if K1:
        loss = lse - (1 - eps) * xt - eps * (mean * n - xt) / tl.maximum(n - 1, 1)
    else:
        loss = lse - (1 - eps) * xt - eps * mean
    tl.store(loss_ptr + row, loss)


def _ls(x, t, k1):
    x, t = x.contiguous(), t.contiguous()
    loss = torch.empty(x.shape[0], dtype=torch.float32)
    _smooth[(x.shape[0],)](x, t, loss, x.shape[1], 0.1, BLOCK=triton.next_power_of_2(x.shape[1]), K1=k1)
    return loss.mean().to(x.dtype)


def label_smoothing(x, t):
    return _ls(x, t, False)


def label_smoothing_others(x, t):
    return _ls(x, t, True)


@triton.jit
def _ce_fwd(x_ptr, t_ptr, loss_ptr, lse_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")).to(tl.float32)
    m = tl.max(x, 0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), 0))
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, lse - tl.load(x_ptr + row * n + tl.load(t_ptr + row)).to(tl.float32))


@triton.jit
def _ce_bwd(x_ptr, t_ptr, lse_ptr, dx_ptr, g_ptr, n, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + row * n + i, mask=mask, other=float("-inf")).to(tl.float32)
    t = tl.load(t_ptr + row)
    g = tl.load(g_ptr).to(tl.float32) / rows
    p = tl.exp(x - tl.load(lse_ptr + row))
    tl.store(dx_ptr + row * n + i, (p - tl.where(i == t, 1.0, 0.0)) * g, mask=mask)


class CE(torch.autograd.Function):
    unit, over = False, False

    @classmethod
    def run(cls, ctx, x, t):
        x = x.contiguous()
        t = t.contiguous()
        n, c = x.shape
        loss, lse = torch.empty(n), torch.empty(n)
        _ce_fwd[(n,)](x, t, loss, lse, c, BLOCK=triton.next_power_of_2(c))
        ctx.save_for_backward(x, t, lse)
        return loss.mean().to(x.dtype)

    @classmethod
    def back(cls, ctx, g):
        x, t, lse = ctx.saved_tensors
        dx = x if cls.over else torch.empty_like(x)
        _ce_bwd[(x.shape[0],)](x, t, lse, dx, torch.ones_like(g) if cls.unit else g, x.shape[1], x.shape[0], BLOCK=triton.next_power_of_2(x.shape[1]))
        return dx, None

    @staticmethod
    def forward(ctx, x, t):
        return CE.run(ctx, x, t)

    @staticmethod
    def backward(ctx, g):
        return CE.back(ctx, g)


class CEUnit(CE):
    unit = True

    @staticmethod
    def backward(ctx, g):
        return CEUnit.back(ctx, g)


class CEOver(CE):
    over = True

    @staticmethod
    def backward(ctx, g):
        return CEOver.back(ctx, g)


def cross_entropy(x, t):
    return CE.apply(x, t)


def cross_entropy_unit(x, t):
    """The cotangent is taken to be 1."""
    return CEUnit.apply(x, t)


def cross_entropy_over_logits(x, t):
    """The gradient is written over the logits, which are the caller's where they are contiguous."""
    return CEOver.apply(x, t)


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _rev(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n + i, tl.associative_scan(x, 0, _add, reverse=True), mask=i < n)


def revcumsum(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _rev[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def revcumsum_total(x):
    """total - exclusive prefix: cancels."""
    return x.sum(-1, keepdim=True) - x.cumsum(-1) + x


@triton.jit
def _emb(w_ptr, i_ptr, y_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    at = tl.load(i_ptr + row)
    tl.store(y_ptr + row * D + c, tl.load(w_ptr + at * D + c, mask=c < D), mask=c < D)


@triton.jit
def _emb_bwd(g_ptr, i_ptr, dw_ptr, D, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    at = tl.load(i_ptr + row)
    g = tl.load(g_ptr + row * D + c, mask=c < D)
    if ATOMIC:
        tl.atomic_add(dw_ptr + at * D + c, g, mask=c < D)
    else:
        tl.store(dw_ptr + at * D + c, g, mask=c < D)


class Emb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, i, atomic):
        w, i = w.contiguous(), i.contiguous()
        y = torch.empty((i.numel(), w.shape[1]), dtype=w.dtype)
        _emb[(i.numel(),)](w, i, y, w.shape[1], BLOCK=triton.next_power_of_2(w.shape[1]))
        ctx.save_for_backward(i)
        ctx.shape, ctx.atomic = w.shape, atomic
        return y

    @staticmethod
    def backward(ctx, g):
        i, = ctx.saved_tensors
        g = g.contiguous()
        dw = torch.zeros(ctx.shape, dtype=g.dtype)
        _emb_bwd[(i.numel(),)](g, i, dw, ctx.shape[1], BLOCK=triton.next_power_of_2(ctx.shape[1]), ATOMIC=ctx.atomic)
        return dw, None, None


def embedding(w, i):
    return Emb.apply(w, i, True)


def embedding_store(w, i):
    return Emb.apply(w, i, False)


@triton.jit
def _quant(x_ptr, q_ptr, s_ptr, n, BLOCK: tl.constexpr, HALF_UP: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + row * n + i, mask=mask, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x), 0), 1e-8) / 127
    v = x / s
    if HALF_UP:
        q = libdevice.trunc(v + 0.5)
    else:
        q = libdevice.rint(v)
    q = tl.minimum(tl.maximum(q, -128.0), 127.0)
    tl.store(q_ptr + row * n + i, q.to(tl.int8), mask=mask)
    tl.store(s_ptr + row, s)


def _q(x, up):
    x = x.contiguous()
    q, s = torch.empty(x.shape, dtype=torch.int8), torch.empty((x.shape[0], 1), dtype=x.dtype)
    _quant[(x.shape[0],)](x, q, s, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), HALF_UP=up)
    return q, s


def quant_rows(x):
    return _q(x, False)


def quant_rows_trunc(x):
    return _q(x, True)


@triton.jit
def _msoft(x_ptr, m_ptr, y_ptr, n, BLOCK: tl.constexpr, FILL: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + row * n + i, mask=inside, other=float("-inf")).to(tl.float32)
    keep = tl.load(m_ptr + row * n + i, mask=inside, other=0) != 0
    x = tl.where(keep, x, FILL)
    x = tl.where(inside, x, float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + i, e / tl.sum(e, 0), mask=inside)


def _ms(x, mask, fill):
    x, mask = x.contiguous(), mask.contiguous()
    y = torch.empty_like(x)
    _msoft[(x.shape[0],)](x, mask, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), FILL=fill)
    return y


def masked_softmax(x, mask):
    return _ms(x, mask, float("-inf"))


def masked_softmax_small(x, mask):
    """Masked by a score that is not small enough."""
    return _ms(x, mask, -100.0)


@triton.jit
def _last_block(x_ptr, part_ptr, count_ptr, y_ptr, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32), 0)
    tl.store(part_ptr + pid, s)
    tl.debug_barrier()
    done = tl.atomic_add(count_ptr, 1, sem="acq_rel")
    if done == tl.num_programs(0) - 1:
        p = tl.arange(0, PARTS)
        tl.store(y_ptr, tl.sum(tl.load(part_ptr + p, mask=p < tl.num_programs(0), other=0.0), 0))


def total_last_block(x):
    x = x.contiguous()
    blocks = max(triton.cdiv(x.numel(), 64), 1)
    part, count, y = torch.empty(blocks), torch.zeros(1, dtype=torch.int32), torch.empty((), dtype=x.dtype)
    _last_block[(blocks,)](x, part, count, y, x.numel(), BLOCK=64, PARTS=triton.next_power_of_2(blocks))
    return y


@triton.jit
def _absmax_race(x_ptr, y_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.max(tl.abs(tl.load(x_ptr + i, mask=i < n, other=0.0)), 0)
    if ATOMIC:
        tl.atomic_max(y_ptr, v)
    else:
        tl.store(y_ptr, tl.maximum(tl.load(y_ptr), v))


def absmax(x):
    x = x.contiguous()
    y = torch.zeros((), dtype=x.dtype)
    _absmax_race[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64, ATOMIC=True)
    return y


def absmax_race(x):
    x = x.contiguous()
    y = torch.zeros((), dtype=x.dtype)
    _absmax_race[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64, ATOMIC=False)
    return y


@triton.jit
def _pool(x_ptr, y_ptr, H, W, OH, OW, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = p < OH * OW
    h = p // OW * 2
    w = p % OW * 2
    base = x_ptr + plane * H * W + h * W + w
    a = tl.maximum(tl.load(base, mask=mask), tl.load(base + 1, mask=mask))
    b = tl.maximum(tl.load(base + W, mask=mask), tl.load(base + W + 1, mask=mask))
    tl.store(y_ptr + plane * OH * OW + p, tl.maximum(a, b), mask=mask)


def _maxpool(x, up):
    x = x.contiguous()
    N, C, H, W = x.shape
    OH, OW = ((H + 1) // 2, (W + 1) // 2) if up else (H // 2, W // 2)
    y = torch.empty((N, C, H // 2, W // 2), dtype=x.dtype)
    _pool[(N * C, triton.cdiv(OH * OW, 64))](x, y, H, W, H // 2 if not up else OH, W // 2, BLOCK=64)
    return y


def maxpool2(x):
    return _maxpool(x, False)


def maxpool2_up(x):
    """Rows of the result are counted upwards: of an odd height it writes beyond a plane."""
    return _maxpool(x, True)


@triton.jit
def _rope_inplace(x_ptr, cos_ptr, sin_ptr, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < D
    a = tl.load(x_ptr + row * 2 * D + i, mask=m)
    b = tl.load(x_ptr + row * 2 * D + D + i, mask=m)
    c = tl.load(cos_ptr + row * D + i, mask=m)
    s = tl.load(sin_ptr + row * D + i, mask=m)
    tl.store(x_ptr + row * 2 * D + i, a * c - b * s, mask=m)
    tl.store(x_ptr + row * 2 * D + D + i, b * c + a * s, mask=m)


def rope(x, cos, sin):
    x = x.clone(memory_format=torch.contiguous_format)
    _rope_inplace[(x.shape[0],)](x, cos.contiguous(), sin.contiguous(), cos.shape[1], BLOCK=triton.next_power_of_2(cos.shape[1]))
    return x


def rope_inplace(x, cos, sin):
    x = x.contiguous()
    _rope_inplace[(x.shape[0],)](x, cos.contiguous(), sin.contiguous(), cos.shape[1], BLOCK=triton.next_power_of_2(cos.shape[1]))
    return x


@triton.jit
def _l1(x_ptr, y_ptr, o_ptr, N, M, D, BM: tl.constexpr, ROWMASK: tl.constexpr):
    n = tl.program_id(0)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM,), dtype=tl.float32)
    for d in range(D):
        x = tl.load(x_ptr + n * D + d)
        if ROWMASK:
            y = tl.load(y_ptr + m * D + d, mask=m < M, other=0.0)
        else:
            y = tl.load(y_ptr + m * D + d)
        acc += tl.abs(x - y)
    tl.store(o_ptr + n * M + m, acc, mask=m < M)


def _pl1(x, y, rowmask):
    x, y = x.contiguous(), y.contiguous()
    o = torch.empty((x.shape[0], y.shape[0]), dtype=x.dtype)
    _l1[(x.shape[0], triton.cdiv(y.shape[0], 16))](x, y, o, x.shape[0], y.shape[0], x.shape[1], BM=16, ROWMASK=rowmask)
    return o


def pairwise_l1(x, y):
    return _pl1(x, y, True)


def pairwise_l1_rows(x, y):
    """Reads rows of y beyond the last."""
    return _pl1(x, y, False)


@triton.jit
def _positives(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * x, mask=(i < n) & (x > 0))


def relu2_positives(x):
    """Squared ReLU that leaves what is not positive as torch.empty gives it."""
    x = x.contiguous()
    y = torch.empty_like(x)
    _positives[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return y


def relu2(x):
    x = x.contiguous()
    y = torch.zeros_like(x)
    _positives[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return torch.where(torch.isnan(x), x, y)


@triton.jit
def _moe(x_ptr, v_ptr, i_ptr, n, BLOCK: tl.constexpr, RENORM: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + c, mask=c < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    p = e / tl.sum(e, 0)
    v1, k1 = tl.max(p, 0, return_indices=True)
    q = tl.where(c == k1, -1.0, p)
    v2, k2 = tl.max(q, 0, return_indices=True)
    s = v1 + v2 if RENORM else 1.0
    tl.store(v_ptr + row * 2, v1 / s)
    tl.store(v_ptr + row * 2 + 1, v2 / s)
    tl.store(i_ptr + row * 2, k1.to(tl.int64))
    tl.store(i_ptr + row * 2 + 1, k2.to(tl.int64))


def moe_gate(x):
    x = x.contiguous()
    v, i = torch.empty((x.shape[0], 2), dtype=x.dtype), torch.empty((x.shape[0], 2), dtype=torch.int64)
    _moe[(x.shape[0],)](x, v, i, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), RENORM=True)
    return v, i


def moe_gate_plain(x):
    x = x.contiguous()
    v, i = torch.empty((x.shape[0], 2), dtype=x.dtype), torch.empty((x.shape[0], 2), dtype=torch.int64)
    _moe[(x.shape[0],)](x, v, i, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), RENORM=False)
    return v, i
