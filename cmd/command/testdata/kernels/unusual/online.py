"""Row operators in Triton: one pass with a running maximum, Welford's update, a persistent grid."""
import torch
import triton
import triton.language as tl


@triton.jit
def _softmax_online(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    m = tl.full((), -float("inf"), tl.float32)
    s = tl.full((), 0.0, tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * stride + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), axis=0)
        m = new
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * stride + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * n + start + cols, (tl.exp(x - m) / s).to(y_ptr.dtype.element_ty), mask=mask)


def softmax_online(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _softmax_online[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=128)
    return y


@triton.jit
def _softmax_unscaled(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    m = tl.full((), -float("inf"), tl.float32)
    s = tl.full((), 0.0, tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * stride + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        s = s + tl.sum(tl.exp(x - new), axis=0)
        m = new
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * stride + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * n + start + cols, (tl.exp(x - m) / s).to(y_ptr.dtype.element_ty), mask=mask)


def softmax_unscaled(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _softmax_unscaled[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=128)
    return y


@triton.jit
def _combine(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    share = tl.where(n > 0, n_b / n, 0.0)
    d = mean_b - mean_a
    return mean_a + d * share, m2_a + m2_b + d * d * n_a * share, n


@triton.jit
def _layer_norm_welford(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * n + start + cols, mask=mask, other=0.0).to(tl.float32)
        count_new = count + 1
        d = x - mean
        mean_new = mean + d / count_new
        m2_new = m2 + d * (x - mean_new)
        mean = tl.where(mask, mean_new, mean)
        m2 = tl.where(mask, m2_new, m2)
        count = tl.where(mask, count_new, count)
    mean, m2, count = tl.reduce((mean, m2, count), 0, _combine)
    rstd = 1.0 / tl.sqrt(m2 / count + eps)
    for start in range(0, n, BLOCK):
        mask = start + cols < n
        x = tl.load(x_ptr + row * n + start + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * n + start + cols, ((x - mean) * rstd * w + b).to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm_welford(x, w, b, eps=1e-5):
    x, w, b = x.contiguous(), w.contiguous(), b.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _layer_norm_welford[(x.shape[0],)](x, w, b, y, x.shape[1], eps, BLOCK=64)
    return y


@triton.jit
def _layer_norm_padded(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n
    d = x - mean
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n + cols, (d * rstd * w + b).to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm_padded(x, w, b, eps=1e-5):
    x, w, b = x.contiguous(), w.contiguous(), b.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _layer_norm_padded[(x.shape[0],)](x, w, b, y, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def _row_max(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        best = tl.full((BLOCK,), -float("inf"), tl.float32)
        for start in range(0, n, BLOCK):
            x = tl.load(x_ptr + row * n + start + cols, mask=start + cols < n, other=-float("inf"))
            best = tl.maximum(best, x, propagate_nan=tl.PropagateNan.ALL)
        bad = tl.max((best != best).to(tl.int32), 0)
        tl.store(y_ptr + row, tl.where(bad > 0, float("nan"), tl.max(best, 0)))


def row_max_persistent(x):
    x = x.contiguous()
    y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if x.shape[0]:
        _row_max[(min(4, x.shape[0]),)](x, y, x.shape[0], x.shape[1], BLOCK=64)
    return y


@triton.jit
def _row_max_once(x_ptr, y_ptr, rows, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        best = tl.maximum(best, tl.load(x_ptr + row * n + start + cols, mask=start + cols < n, other=-float("inf")))
    tl.store(y_ptr + row, tl.max(best, 0))


def row_max_few_programs(x):
    x = x.contiguous()
    y = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
    if x.shape[0]:
        _row_max_once[(min(4, x.shape[0]),)](x, y, x.shape[0], x.shape[1], BLOCK=64)
    return y


@triton.jit
def _lse(x_ptr, m_ptr, l_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    m = -float("inf")
    s = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + cols, mask=start + cols < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    tl.store(m_ptr + row, m)
    tl.store(l_ptr + row, m + tl.log(s))


def max_and_lse(x):
    x = x.contiguous()
    m = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    lse = torch.empty_like(m)
    _lse[(x.shape[0],)](x, m, lse, x.shape[1], BLOCK=32)
    return m, lse
