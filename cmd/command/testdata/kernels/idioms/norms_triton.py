"""Layer norm of Triton's tutorial 05, with locks; RMS norm as Liger has it."""
import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm_fwd_fused(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.).to(tl.float32)
        x_hat = (x - mean) * rstd
        y = x_hat * w + b
        tl.store(Y + cols, y, mask=mask)


@triton.jit
def _layer_norm_bwd_dx_fused(DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % GROUP_SIZE_M
    Lock += lock_id
    Count = Lock + GROUP_SIZE_M
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = tl.where(mask, xhat, 0.)
    wdy = tl.where(mask, wdy, 0.)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(DX + cols, dx, mask=mask)
    partial_dw = (dy * xhat).to(w.dtype)
    partial_db = (dy).to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def _layer_norm_bwd_dx_nolock(DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % GROUP_SIZE_M
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.)
    wdy = tl.where(mask, w * dy, 0.)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(DX + cols, dx, mask=mask)
    tl.store(DW, tl.load(DW, mask=mask) + dy * xhat, mask=mask)
    tl.store(DB, tl.load(DB, mask=mask) + dy, mask=mask)


@triton.jit
def _layer_norm_bwd_dwdb(DW, DB, FINAL_DW, FINAL_DB, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    pid = tl.program_id(0)
    cols = pid * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    dw = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_SIZE_M):
        rows = i + tl.arange(0, BLOCK_SIZE_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + offs, mask=mask, other=0.)
        db += tl.load(DB + offs, mask=mask, other=0.)
    sum_dw = tl.sum(dw, axis=0)
    sum_db = tl.sum(db, axis=0)
    tl.store(FINAL_DW + cols, sum_dw, mask=cols < N)
    tl.store(FINAL_DB + cols, sum_db, mask=cols < N)


class LayerNorm(torch.autograd.Function):
    kernel = _layer_norm_bwd_dx_fused

    @classmethod
    def _fwd(cls, ctx, x, weight, bias, eps):
        y = torch.empty_like(x)
        x_arg = x.reshape(-1, x.shape[-1])
        M, N = x_arg.shape
        mean = torch.empty((M, ), dtype=torch.float32, device=x.device)
        rstd = torch.empty((M, ), dtype=torch.float32, device=x.device)
        MAX_FUSED_SIZE = 65536 // x.element_size()
        BLOCK_SIZE = min(MAX_FUSED_SIZE, triton.next_power_of_2(N))
        num_warps = min(max(BLOCK_SIZE // 256, 1), 8)
        _layer_norm_fwd_fused[(M, )](x_arg, y, weight, bias, mean, rstd, x_arg.stride(0), N, eps, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps, num_ctas=1)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        ctx.BLOCK_SIZE = BLOCK_SIZE
        ctx.num_warps = num_warps
        ctx.eps = eps
        return y

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        return LayerNorm._fwd(ctx, x, weight, bias, eps)

    @classmethod
    def _bwd(cls, ctx, dy):
        x, w, b, m, v = ctx.saved_tensors
        dy = dy.contiguous()
        N = w.shape[0]
        GROUP_SIZE_M = 64
        locks = torch.zeros(2 * GROUP_SIZE_M, dtype=torch.int32, device=w.device)
        make = torch.zeros
        _dw = make((GROUP_SIZE_M, N), dtype=x.dtype, device=w.device)
        _db = make((GROUP_SIZE_M, N), dtype=x.dtype, device=w.device)
        dw = torch.empty((N, ), dtype=w.dtype, device=w.device)
        db = torch.empty((N, ), dtype=w.dtype, device=w.device)
        dx = torch.empty_like(dy)
        x_arg = x.reshape(-1, x.shape[-1])
        M, N = x_arg.shape
        cls.kernel[(M, )](dx, dy, _dw, _db, x, w, m, v, locks, x_arg.stride(0), N, BLOCK_SIZE_N=ctx.BLOCK_SIZE, GROUP_SIZE_M=GROUP_SIZE_M, num_warps=ctx.num_warps)
        grid = lambda meta: (triton.cdiv(N, meta['BLOCK_SIZE_N']), )
        _layer_norm_bwd_dwdb[grid](_dw, _db, dw, db, min(GROUP_SIZE_M, M), N, BLOCK_SIZE_M=32, BLOCK_SIZE_N=128, num_ctas=1)
        return dx, dw, db, None

    @staticmethod
    def backward(ctx, dy):
        return LayerNorm._bwd(ctx, dy)


class LayerNormNoLock(LayerNorm):
    kernel = _layer_norm_bwd_dx_nolock

    @staticmethod
    def backward(ctx, dy):
        return LayerNormNoLock._bwd(ctx, dy)


class LayerNormFewRows(LayerNorm):
    @staticmethod
    def backward(ctx, dy):
        dx, dw, db, _ = LayerNorm._bwd(ctx, dy)
        return dx, dw, None, None


def layer_norm(x, w, b):
    x = x.contiguous()
    return LayerNorm.apply(x, w.contiguous(), b.contiguous(), 1e-5)


def layer_norm_nolock(x, w, b):
    return LayerNormNoLock.apply(x.contiguous(), w.contiguous(), b.contiguous(), 1e-5)


def layer_norm_no_bias_grad(x, w, b):
    return LayerNormFewRows.apply(x.contiguous(), w.contiguous(), b.contiguous(), 1e-5)


@triton.jit
def _rms_fwd(Y, X, W, RSTD, n_cols, eps, offset, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(X + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask, other=0)
    ms = tl.sum(x * x, axis=0) / n_cols
    rstd = tl.rsqrt(ms + eps)
    tl.store(RSTD + row, rstd)
    tl.store(Y + row * n_cols + cols, x * rstd * (offset + w), mask=mask)


@triton.jit
def _rms_bwd(DY, X, W, RSTD, DW, n_rows, n_cols, rows_per_program, BLOCK: tl.constexpr, DTYPE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    start = pid * rows_per_program
    end = min((pid + 1) * rows_per_program, n_rows)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    w = tl.load(W + cols, mask=mask, other=0.0).to(tl.float32)
    for row in range(start, end):
        dy = tl.load(DY + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(X + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        r = tl.load(RSTD + row)
        m = dy * w
        dx = r * m - r * r * r * (1 / n_cols) * tl.sum(m * x, axis=0) * x
        dw += dy * (x * r)
        tl.store(DY + row * n_cols + cols, dx.to(DTYPE), mask=mask)
    tl.store(DW + pid * n_cols + cols, dw, mask=mask)


class LigerRMS(torch.autograd.Function):
    short = 0
    scribble = False

    @staticmethod
    def forward(ctx, x, w):
        x = x.contiguous()
        w = w.contiguous()
        n = x.shape[-1]
        rows = x.numel() // n
        y, rstd = torch.empty_like(x), torch.empty(rows, dtype=torch.float32, device=x.device)
        _rms_fwd[(rows,)](y, x, w, rstd, n, 1e-6, 0.0, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x, w, rstd)
        return y

    @classmethod
    def _bwd(cls, ctx, dy, programs):
        x, w, rstd = ctx.saved_tensors
        n = x.shape[-1]
        rows = x.numel() // n
        dx = dy.contiguous() if cls.scribble else dy.clone(memory_format=torch.contiguous_format)
        dw = torch.empty((programs, n), dtype=torch.float32, device=x.device)
        per = (rows + programs - 1 - cls.short) // programs
        _rms_bwd[(programs,)](dx, x, w, rstd, dw, rows, n, per, BLOCK=triton.next_power_of_2(n), DTYPE=tl.float32 if x.dtype == torch.float32 else tl.float16)
        return dx.view_as(x), dw.sum(0).to(w.dtype)

    @staticmethod
    def backward(ctx, dy):
        return LigerRMS._bwd(ctx, dy, 4)


class LigerRMSFloor(LigerRMS):
    short = 3

    @staticmethod
    def backward(ctx, dy):
        return LigerRMSFloor._bwd(ctx, dy, 4)


class LigerRMSScribble(LigerRMS):
    scribble = True

    @staticmethod
    def backward(ctx, dy):
        return LigerRMSScribble._bwd(ctx, dy, 4)


def rms_norm(x, w):
    return LigerRMS.apply(x, w)


def rms_norm_floor(x, w):
    return LigerRMSFloor.apply(x, w)


def rms_norm_scribbles_cotangent(x, w):
    return LigerRMSScribble.apply(x, w)


@triton.jit
def _welford_combine(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    d = m2 - m1
    r = tl.where(n == 0, 0.0, n2 / n)
    return m1 + d * r, s1 + s2 + d * d * n1 * r, n


@triton.jit
def _var_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, COUNT_ALL: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    one = tl.where(mask | COUNT_ALL, 1.0, 0.0)
    m, s, c = tl.reduce((x, tl.zeros_like(x), one), 0, _welford_combine)
    tl.store(y_ptr + row, s / n)


def var_welford(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
    _var_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), COUNT_ALL=False)
    return y


def var_welford_counts(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
    _var_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), COUNT_ALL=True)
    return y
