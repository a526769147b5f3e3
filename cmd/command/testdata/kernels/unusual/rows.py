"""Further row kernels in Triton."""
import torch
import triton
import triton.language as tl


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _cumsum(x_ptr, y_ptr, n, CARRY: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * n + start + cols, mask=mask, other=0.0).to(tl.float32)
        y = tl.associative_scan(x, 0, _add) + carry
        tl.store(y_ptr + row * n + start + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
        if CARRY:
            carry += tl.sum(x, 0)


def _run_cumsum(x, carry):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _cumsum[(x.shape[0],)](x, y, x.shape[1], CARRY=carry, BLOCK=128)
    return y


def cumsum(x):
    return _run_cumsum(x, True)


def cumsum_no_carry(x):
    return _run_cumsum(x, False)


@triton.jit
def _rms_fwd(x_ptr, w_ptr, y_ptr, r_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, 0) / n + eps)
    tl.store(r_ptr + row, r)
    tl.store(y_ptr + row * n + cols, (x * r * w).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _rms_bwd(x_ptr, w_ptr, r_ptr, dy_ptr, dx_ptr, dw_ptr, rows, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row)
        wdy = w * dy
        dot = tl.sum(wdy * x, 0)
        tl.store(dx_ptr + row * n + cols, (r * wdy - r * r * r * dot / n * x).to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * x * r
    tl.store(dw_ptr + tl.program_id(0) * n + cols, dw, mask=mask)


class _RMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, eps):
        x2 = x.contiguous().view(-1, x.shape[-1])
        y, r = torch.empty_like(x2), torch.empty(x2.shape[0], device=x.device)
        if x2.numel():
            _rms_fwd[(x2.shape[0],)](x2, w.contiguous(), y, r, x2.shape[1], eps, BLOCK=triton.next_power_of_2(x2.shape[1]))
        ctx.save_for_backward(x2, w, r)
        return y.view(x.shape)

    @staticmethod
    def backward(ctx, dy):
        x, w, r = ctx.saved_tensors
        dy2 = dy.contiguous().view_as(x)
        dx = torch.empty_like(x)
        parts = min(4, max(x.shape[0], 1))
        dw = torch.zeros(parts, x.shape[1], device=x.device)
        if x.numel():
            _rms_bwd[(parts,)](x, w.contiguous(), r, dy2, dx, dw, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return dx.view(dy.shape), dw.sum(0).to(w.dtype), None


def rms_norm(x, w, eps=1e-6):
    return _RMS.apply(x, w, eps)


class _RMSFirst(_RMS):
    @staticmethod
    def backward(ctx, dy):
        dx, dw, _ = _RMS.backward(ctx, dy)
        x, w, r = ctx.saved_tensors
        return (dy.contiguous().view_as(x) * w * r[:, None]).view(dy.shape).to(dx.dtype), dw, None


def rms_norm_grad_short(x, w, eps=1e-6):
    return _RMSFirst.apply(x, w, eps)


@triton.jit
def _xent(x_ptr, t_ptr, loss_ptr, n, ignore, BLOCK: tl.constexpr, IGNORES: tl.constexpr):
    row = tl.program_id(0)
    t = tl.load(t_ptr + row)
    m = -float("inf")
    s = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    if IGNORES:
        if t == ignore:
            tl.store(loss_ptr + row, 0.0)
        else:
            tl.store(loss_ptr + row, m + tl.log(s) - tl.load(x_ptr + row * n + t).to(tl.float32))
    else:
        tl.store(loss_ptr + row, m + tl.log(s) - tl.load(x_ptr + row * n + t).to(tl.float32))


def cross_entropy(x, t):
    x = x.contiguous()
    loss = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
    if x.shape[0]:
        _xent[(x.shape[0],)](x, t.contiguous(), loss, x.shape[1], -100, BLOCK=64, IGNORES=True)
    return loss.to(x.dtype)


def cross_entropy_mean(input, target):
    x = input.contiguous()
    loss = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
    if x.shape[0]:
        _xent[(x.shape[0],)](x, target.contiguous(), loss, x.shape[1], -100, BLOCK=64, IGNORES=False)
    return loss.mean().to(x.dtype)


@triton.jit
def _scatter(x_ptr, i_ptr, y_ptr, n, w, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    at = tl.load(i_ptr + row)
    x = tl.load(x_ptr + row * w + cols, mask=cols < w)
    if ATOMIC:
        tl.atomic_add(y_ptr + at * w + cols, x, mask=cols < w)
    else:
        y = tl.load(y_ptr + at * w + cols, mask=cols < w)
        tl.store(y_ptr + at * w + cols, x + y, mask=cols < w)


def _run_scatter(x, i, n, atomic):
    x, i = x.contiguous(), i.contiguous()
    y = torch.zeros(n, x.shape[1], device=x.device, dtype=x.dtype)
    if x.numel():
        _scatter[(x.shape[0],)](x, i, y, x.shape[0], x.shape[1], ATOMIC=atomic, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def scatter_rows(x, i, n):
    return _run_scatter(x, i, n, True)


def scatter_rows_race(x, i, n):
    return _run_scatter(x, i, n, False)


@triton.jit
def _topk(x_ptr, y_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    x = tl.sort(x, descending=True)
    tl.store(y_ptr + row * K + cols, x, mask=cols < K)


def top4(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], 4, dtype=x.dtype, device=x.device)
    if x.shape[0]:
        _topk[(x.shape[0],)](x, y, x.shape[1], K=4, BLOCK=triton.next_power_of_2(max(x.shape[1], 4)))
    return y


@triton.jit
def _shift(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i, mask=i < n, other=0.0)
    b = tl.load(x_ptr + i + 1, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.where(i + 1 < n, b - a, 0.0), mask=i < n)


def forward_difference(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _shift[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y



@triton.jit
def _relu_(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, tl.where(x < 0, 0.0, x), mask=i < n)


def relu_of_copy(x):
    y = x.clone(memory_format=torch.contiguous_format)
    if y.numel():
        _relu_[(triton.cdiv(y.numel(), 128),)](y, y.numel(), BLOCK=128)
    return y


def relu_of_argument(x):
    if x.numel():
        _relu_[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128)
    return x


@triton.jit
def _swap(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n - 1 - i, mask=i < n)
    tl.store(x_ptr + i, x, mask=i < n)


def flip_in_place(x):
    y = x.clone(memory_format=torch.contiguous_format)
    if y.numel():
        _swap[(triton.cdiv(y.numel(), 64),)](y, y.numel(), BLOCK=64)
    return y


