"""Kernels in the ways of Liger, vLLM and Mamba."""
import torch
import triton
import triton.language as tl


@triton.jit
def _kl(p_ptr, q_ptr, loss_ptr, grad_ptr, stride, n_cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    p_ptr += row * stride
    q_ptr += row * stride
    grad_ptr += row * stride
    acc = 0.0
    for i in range(0, n_cols, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        mask = offs < n_cols
        p = tl.load(p_ptr + offs, mask=mask, other=float("-inf"))
        q = tl.load(q_ptr + offs, mask=mask, other=float("-inf"))
        t = tl.exp(q)
        acc += tl.sum(tl.where(mask, t * (q - p), 0.0), 0)
        tl.store(grad_ptr + offs, -t * scale, mask=mask)
    tl.store(loss_ptr + row, acc * scale)


class _KL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logp, logq, scale_by_all):
        logp, logq = logp.contiguous(), logq.contiguous()
        n, c = logp.shape
        loss = torch.zeros(n, dtype=torch.float32)
        grad = torch.empty_like(logp)
        scale = 1.0 / (n * c if scale_by_all else n)
        _kl[(n,)](logp, logq, loss, grad, logp.stride(0), c, scale, BLOCK=128)
        ctx.save_for_backward(grad)
        return loss.sum()

    @staticmethod
    def backward(ctx, g):
        (grad,) = ctx.saved_tensors
        return grad * g, None, None


def kl_div(logp, logq): return _KL.apply(logp, logq.detach(), False)
def kl_div_mean(logp, logq): return _KL.apply(logp, logq.detach(), True)


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _geglu_fwd(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(a + i, mask=m).to(tl.float32)
    y = tl.load(b + i, mask=m)
    t = _tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    tl.store(c + i, (0.5 * x * (1 + t)).to(y.dtype) * y, mask=m)


@triton.jit
def _geglu_bwd(dc, a, b, da, db, n, BLOCK: tl.constexpr, CUBE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    g = tl.load(dc + i, mask=m).to(tl.float32)
    x = tl.load(a + i, mask=m).to(tl.float32)
    y = tl.load(b + i, mask=m).to(tl.float32)
    t = _tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
    inner = 0.7978845608028654 * (1 + CUBE * 0.044715 * x * x)
    tl.store(db + i, g * 0.5 * x * (1 + t), mask=m)
    tl.store(da + i, g * y * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner), mask=m)


def _make_geglu(cube):
    class GEGLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            a, b = a.contiguous(), b.contiguous()
            c = torch.empty_like(a)
            if a.numel():
                _geglu_fwd[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), BLOCK=1024)
            ctx.save_for_backward(a, b)
            return c

        @staticmethod
        def backward(ctx, dc):
            a, b = ctx.saved_tensors
            dc = dc.contiguous()
            da, db = torch.empty_like(a), torch.empty_like(b)
            if a.numel():
                _geglu_bwd[(triton.cdiv(a.numel(), 1024),)](dc, a, b, da, db, a.numel(), BLOCK=1024, CUBE=cube)
            return da, db
    return GEGLU.apply


geglu_true, geglu_short = _make_geglu(3), _make_geglu(1)
def geglu(a, b): return geglu_true(a, b)
def geglu_grad_short(a, b): return geglu_short(a, b)


@triton.jit
def _expert_mm(x, w, order, expert, first, last, y, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid, pn = tl.program_id(0), tl.program_id(1)
    e = tl.load(expert + pid)
    at = tl.load(first + pid) + tl.arange(0, BM)
    valid = at < tl.load(last + pid)
    tok = tl.load(order + at, mask=valid, other=0)
    n = pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(x + tok[:, None] * K + k[None, :], mask=valid[:, None] & (k[None, :] < K), other=0.0)
        b = tl.load(w + e * K * N + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(y + tok[:, None] * N + n[None, :], acc, mask=valid[:, None] & (n[None, :] < N))


def _expert_linear(x, w, ids, bm, whole):
    x, w = x.contiguous(), w.contiguous()
    order = torch.argsort(ids, stable=True)
    counts = torch.bincount(ids, minlength=w.shape[0])
    ends = counts.cumsum(0)
    expert, first, last = [], [], []
    for e, (n, end) in enumerate(zip(counts.tolist(), ends.tolist())):
        for b in range(-(-n // bm) if whole else max(1, n // bm)):
            expert.append(e)
            first.append(end - n + b * bm)
            last.append(end)
    y = torch.zeros(x.shape[0], w.shape[2])
    if expert:
        t = [torch.tensor(v) for v in (expert, first, last)]
        _expert_mm[(len(expert), triton.cdiv(w.shape[2], 16))](x, w, order, *t, y, w.shape[1], w.shape[2], BM=bm, BN=16, BK=16)
    return y


def expert_linear(x, w, ids): return _expert_linear(x, w, ids, 16, True)
def expert_linear_floor(x, w, ids): return _expert_linear(x, w, ids, 16, False)


@triton.jit
def _scan_blocks(x, y, sums, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.cumsum(v, 0), mask=i < n)
    tl.store(sums + pid, tl.sum(v, 0))


@triton.jit
def _add_offsets(y, offsets, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + i, mask=i < n, other=0.0)
    tl.store(y + i, v + tl.load(offsets + pid), mask=i < n)


def _inclusive(x, B, late):
    x = x.contiguous()
    n, y = x.numel(), torch.empty_like(x)
    blocks = triton.cdiv(n, B)
    sums = torch.empty(blocks)
    _scan_blocks[(blocks,)](x, y, sums, n, BLOCK=B)
    offsets = torch.cumsum(sums, 0) - sums if late else torch.nn.functional.pad(torch.cumsum(sums, 0), (1, 0))[:-1].contiguous()
    _add_offsets[(blocks,)](y, offsets, n, BLOCK=B)
    return y


def inclusive_sum(x): return _inclusive(x, 256, False)
def inclusive_sum_less_own(x): return _inclusive(x, 256, True)


@triton.jit
def _sm_bwd(dy, y, dx, n, BLOCK: tl.constexpr, WEIGHTED: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < n
    g = tl.load(dy + row * n + c, mask=m, other=0.0)
    p = tl.load(y + row * n + c, mask=m, other=0.0)
    s = tl.sum(g * p if WEIGHTED else g, 0)
    tl.store(dx + row * n + c, p * (g - s), mask=m)


def _smb(dy, y, weighted):
    dy, y = dy.contiguous(), y.contiguous()
    dx = torch.empty_like(y)
    _sm_bwd[(y.shape[0],)](dy, y, dx, y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]), WEIGHTED=weighted)
    return dx


def softmax_backward(dy, y): return _smb(dy, y, True)
def softmax_backward_plain(dy, y): return _smb(dy, y, False)


@triton.jit
def _lsm(x, y, s0, s1, s2, C, S, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    n, s = pid // S, pid % S
    c = tl.arange(0, BLOCK)
    m = c < C
    v = tl.load(x + n * s0 + c * s1 + s * s2, mask=m, other=-float("inf"))
    v = v - tl.max(v, 0)
    v = v - tl.log(tl.sum(tl.exp(v), 0))
    tl.store(y + n * C * S + c * S + s, v, mask=m)


def log_softmax_middle(x):
    N, C, S = x.shape
    y = torch.empty(x.shape, dtype=x.dtype)
    _lsm[(N * S,)](x, y, *x.stride(), C, S, BLOCK=triton.next_power_of_2(C))
    return y


def log_softmax_middle_packed(x):
    N, C, S = x.shape
    y = torch.empty_like(x)
    _lsm[(N * S,)](x, y, C * S, S, 1, C, S, BLOCK=triton.next_power_of_2(C))
    return y


@triton.jit
def _gemv(a, x, y, M, K, BM: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr, WHOLE: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    part = tl.program_id(1)
    acc = tl.zeros((BM,), tl.float32)
    steps = tl.cdiv(K, BK) if WHOLE else K // BK
    for i in range(part, steps, PARTS):
        k = i * BK + tl.arange(0, BK)
        v = tl.load(x + k, mask=k < K, other=0.0)
        acc += tl.sum(tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0) * v[None, :], 1)
    tl.atomic_add(y + m, acc, mask=m < M)


def _gemv_of(a, x, whole):
    a, x = a.contiguous(), x.contiguous()
    y = torch.zeros(a.shape[0])
    _gemv[(triton.cdiv(a.shape[0], 16), 4)](a, x, y, *a.shape, BM=16, BK=32, PARTS=4, WHOLE=whole)
    return y


def gemv(a, x): return _gemv_of(a, x, True)
def gemv_whole_blocks(a, x): return _gemv_of(a, x, False)


@triton.jit
def _paged(q, kc, vc, table, o, M, H, D, scale, S: tl.constexpr, BD: tl.constexpr, RUNNING: tl.constexpr):
    b, h = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, BD)
    dm = d < D
    qv = tl.load(q + (b * H + h) * D + d, mask=dm, other=0.0) * scale
    m_i = -float("inf")
    l_i = 0.0
    acc = tl.zeros((BD,), tl.float32)
    SP: tl.constexpr = triton.next_power_of_2(S)
    s = tl.arange(0, SP)
    for j in range(M):
        page = tl.load(table + b * M + j)
        at = ((page * S + s) * H + h) * D
        mask = (s < S)[:, None] & dm[None, :]
        k = tl.load(kc + at[:, None] + d[None, :], mask=mask, other=0.0)
        v = tl.load(vc + at[:, None] + d[None, :], mask=mask, other=0.0)
        sc = tl.where(s < S, tl.sum(k * qv[None, :], 1), -float("inf"))
        m_new = tl.maximum(m_i, tl.max(sc, 0)) if RUNNING else tl.max(sc, 0)
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(sc - m_new)
        l_i = l_i * alpha + tl.sum(p, 0)
        acc = acc * alpha + tl.sum(p[:, None] * v, 0)
        m_i = m_new
    tl.store(o + (b * H + h) * D + d, acc / l_i, mask=dm)


def _decode(q, k, v, table, running, scale=None):
    q, k, v, table = (t.contiguous() for t in (q, k, v, table))
    B, H, D = q.shape
    o = torch.empty_like(q)
    _paged[(B, H)](q, k, v, table, o, table.shape[1], H, D, scale or D ** -0.5, S=k.shape[1], BD=triton.next_power_of_2(D), RUNNING=running)
    return o


def paged_decode(q, k, v, table): return _decode(q, k, v, table, True)
def paged_decode_first_head_size(q, k, v, table): return _decode(q, k, v, table, True, 0.125)


@triton.jit
def _shuffle(x, y, C, H, W, total, BLOCK: tl.constexpr, ROWS_FIRST: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = i % (2 * W)
    h = i // (2 * W) % (2 * H)
    nc = i // (4 * W * H)
    sub = (h % 2) * 2 + w % 2 if ROWS_FIRST else (w % 2) * 2 + h % 2
    src = ((nc * 4 + sub) * H + h // 2) * W + w // 2
    tl.store(y + i, tl.load(x + src, mask=i < total), mask=i < total)


def _ps(x, rows):
    x = x.contiguous()
    N, C, H, W = x.shape
    y = x.new_empty(N, C // 4, 2 * H, 2 * W)
    if y.numel():
        _shuffle[(triton.cdiv(y.numel(), 512),)](x, y, C, H, W, y.numel(), BLOCK=512, ROWS_FIRST=rows)
    return y


def pixel_shuffle(x): return _ps(x, True)
def pixel_shuffle_turned(x): return _ps(x, False)


@triton.jit
def _maximum(a, b):
    return tl.where((a != a) | (a >= b), a, b)


@triton.jit
def _cummax(x, y, n, BLOCK: tl.constexpr, CARRY: tl.constexpr):
    row = tl.program_id(0)
    carry = -float("inf")
    for i0 in range(0, n, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
        s = tl.associative_scan(v, 0, _maximum)
        if CARRY:
            s = tl.maximum(s, carry)
            carry = tl.max(s, 0)
        tl.store(y + row * n + i, s, mask=i < n)


def _rmax(x, carry):
    x = x.contiguous()
    y = torch.empty_like(x)
    _cummax[(x.shape[0],)](x, y, x.shape[1], BLOCK=64, CARRY=carry)
    return y


def running_max(x): return _rmax(x, True)
def running_max_blocks(x): return _rmax(x, False)


@triton.jit
def _reflect(x, y, n, P: tl.constexpr, BLOCK: tl.constexpr, EDGE: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = tl.abs(i - P) - (EDGE if EDGE else 0) * (i < P)
    at = tl.where(at >= n, 2 * n - 2 - at, at)
    m = i < n + 2 * P
    tl.store(y + row * (n + 2 * P) + i, tl.load(x + row * n + at, mask=m), mask=m)


def _refl(x, edge):
    x = x.contiguous()
    if x.shape[-1] <= 3:
        raise ValueError("needs more than 3 columns")
    y = x.new_empty(x.shape[0], x.shape[1] + 6)
    _reflect[(x.shape[0], triton.cdiv(y.shape[1], 128))](x, y, x.shape[1], P=3, BLOCK=128, EDGE=edge)
    return y


def reflect(x): return _refl(x, 0)
def reflect_symmetric(x): return _refl(x, 1)


@triton.jit
def _rope(x, cos, sin, y, L, D, HALF: tl.constexpr, SIGN: tl.constexpr):
    row = tl.program_id(0)
    l = row % L
    d = tl.arange(0, HALF)
    m = d < D // 2
    a = tl.load(x + row * D + d, mask=m)
    b = tl.load(x + row * D + D // 2 + d, mask=m)
    c = tl.load(cos + l * (D // 2) + d, mask=m)
    s = tl.load(sin + l * (D // 2) + d, mask=m)
    tl.store(y + row * D + d, a * c - b * s, mask=m)
    tl.store(y + row * D + D // 2 + d, b * c + SIGN * a * s, mask=m)


class _Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, back):
        x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
        B, L, D = x.shape
        y = torch.empty_like(x)
        _rope[(B * L,)](x, cos, sin, y, L, D, HALF=triton.next_power_of_2(max(1, D // 2)), SIGN=1)
        ctx.save_for_backward(cos, sin)
        ctx.back = back
        return y

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        g = g.contiguous()
        B, L, D = g.shape
        y = torch.empty_like(g)
        _rope[(B * L,)](g, cos, -sin if ctx.back else sin, y, L, D, HALF=triton.next_power_of_2(max(1, D // 2)), SIGN=1)
        return y, None, None, None


def rope_neox(x, cos, sin): return _Rope.apply(x, cos.detach(), sin.detach(), True)
def rope_neox_forward_twice(x, cos, sin): return _Rope.apply(x, cos.detach(), sin.detach(), False)
