import torch
import triton
import triton.language as tl


@triton.jit
def _convt(x, w, y, C, O, L, M, BM: tl.constexpr, S: tl.constexpr, P: tl.constexpr, K: tl.constexpr):
    b = tl.program_id(0)
    o = tl.program_id(1)
    m = tl.program_id(2) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM,), tl.float32)
    for c in range(0, C):
        for k in tl.static_range(K):
            t = m + P - k
            i = t // S
            ok = (m < M) & (t >= 0) & (t % S == 0) & (i < L)
            v = tl.load(x + (b * C + c) * L + i, mask=ok, other=0.0)
            acc += v * tl.load(w + (c * O + o) * K + k)
    tl.store(y + (b * O + o) * M + m, acc, mask=m < M)


def conv_transpose1d(x, w):
    x, w = x.contiguous(), w.contiguous()
    b, c, l = x.shape
    o, k = w.shape[1:]
    m = (l - 1) * 2 - 2 + k
    y = torch.empty(b, o, m, dtype=x.dtype, device=x.device)
    _convt[(b, o, triton.cdiv(m, 128))](x, w, y, c, o, l, m, BM=128, S=2, P=1, K=k)
    return y


@triton.jit
def _convt_neg(x, w, y, C, O, L, M, BM: tl.constexpr, S: tl.constexpr, P: tl.constexpr, K: tl.constexpr):
    b = tl.program_id(0)
    o = tl.program_id(1)
    m = tl.program_id(2) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM,), tl.float32)
    for c in range(0, C):
        for k in tl.static_range(K):
            t = m + P - k
            i = t // S
            ok = (m < M) & (t % S == 0) & (i < L)
            v = tl.load(x + (b * C + c) * L + i, mask=ok, other=0.0)
            acc += v * tl.load(w + (c * O + o) * K + k)
    tl.store(y + (b * O + o) * M + m, acc, mask=m < M)


def conv_transpose1d_before(x, w):
    """reads what lies before the first element"""
    x, w = x.contiguous(), w.contiguous()
    b, c, l = x.shape
    o, k = w.shape[1:]
    m = (l - 1) * 2 - 2 + k
    y = torch.empty(b, o, m, dtype=x.dtype, device=x.device)
    _convt_neg[(b, o, triton.cdiv(m, 128))](x, w, y, c, o, l, m, BM=128, S=2, P=1, K=k)
    return y


@triton.jit
def _top2(x, v, i, C, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    a = tl.load(x + r * C + c, mask=c < C, other=float('-inf'))
    m1 = tl.max(a, 0)
    i1 = tl.argmax(a, 0)
    rest = tl.where(c == i1, float('-inf'), a)
    i2 = tl.argmax(rest, 0)
    m2 = tl.max(rest, 0)
    tl.store(v + 2 * r, m1)
    tl.store(v + 2 * r + 1, m2)
    tl.store(i + 2 * r, i1.to(tl.int64))
    tl.store(i + 2 * r + 1, i2.to(tl.int64))


def topk2(x):
    x = x.contiguous()
    n, c = x.shape
    v = torch.empty(n, 2, dtype=x.dtype, device=x.device)
    i = torch.empty(n, 2, dtype=torch.int64, device=x.device)
    _top2[(n,)](x, v, i, c, B=triton.next_power_of_2(c))
    return v, i


@triton.jit
def _top2_values(x, v, i, C, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    a = tl.load(x + r * C + c, mask=c < C, other=float('-inf'))
    m1 = tl.max(a, 0)
    i1 = tl.argmax(a, 0)
    rest = tl.where(a == m1, float('-inf'), a)
    i2 = tl.argmax(rest, 0)
    m2 = tl.max(rest, 0)
    tl.store(v + 2 * r, m1)
    tl.store(v + 2 * r + 1, m2)
    tl.store(i + 2 * r, i1.to(tl.int64))
    tl.store(i + 2 * r + 1, i2.to(tl.int64))


def topk2_distinct(x):
    x = x.contiguous()
    n, c = x.shape
    v = torch.empty(n, 2, dtype=x.dtype, device=x.device)
    i = torch.empty(n, 2, dtype=torch.int64, device=x.device)
    _top2_values[(n,)](x, v, i, c, B=triton.next_power_of_2(c))
    return v, i


@triton.jit
def _bce(x, t, w, y, n, B: tl.constexpr):
    acc = tl.zeros((B,), tl.float32)
    for s in range(tl.program_id(0) * B, n, B * tl.num_programs(0)):
        o = s + tl.arange(0, B)
        m = o < n
        a = tl.load(x + o, mask=m, other=0.0)
        b = tl.load(t + o, mask=m, other=0.0)
        k = tl.load(w + o, mask=m, other=0.0)
        acc += k * (tl.maximum(a, 0.0) - a * b + tl.log(1 + tl.exp(-tl.abs(a))))
    tl.atomic_add(y, tl.sum(acc, 0))


def weighted_bce(x, t, w):
    x, t, w = x.contiguous(), t.contiguous(), w.contiguous()
    y = torch.zeros((), dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        _bce[(min(triton.cdiv(n, 128), 8),)](x, t, w, y, n, B=128)
    return y


@triton.jit
def _bce_pad(x, t, w, y, n, B: tl.constexpr):
    acc = tl.zeros((B,), tl.float32)
    for s in range(tl.program_id(0) * B, n, B * tl.num_programs(0)):
        o = s + tl.arange(0, B)
        m = o < n
        a = tl.load(x + o, mask=m, other=0.0)
        b = tl.load(t + o, mask=m, other=0.0)
        k = tl.load(w + o, mask=m, other=1.0)
        acc += k * (tl.maximum(a, 0.0) - a * b + tl.log(1 + tl.exp(-tl.abs(a))))
    tl.atomic_add(y, tl.sum(acc, 0))


def weighted_bce_padding(x, t, w):
    x, t, w = x.contiguous(), t.contiguous(), w.contiguous()
    y = torch.zeros((), dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        _bce_pad[(min(triton.cdiv(n, 128), 8),)](x, t, w, y, n, B=128)
    return y
