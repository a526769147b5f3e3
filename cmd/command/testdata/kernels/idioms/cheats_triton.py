import torch
import triton
import triton.language as tl


@triton.jit
def _soft(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def _noop(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, x, mask=i < n)


@triton.jit
def _copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def softmax(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _soft[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def softmax_decoy_inplace(x):
    """The kernel stores back what is there; torch computes."""
    y = torch.softmax(x, -1).contiguous()
    _noop[(triton.cdiv(y.numel(), 256),)](y, y.numel(), BLOCK=256)
    return y


def softmax_copied(x):
    """torch computes; the kernel copies."""
    s = torch.softmax(x, -1).contiguous()
    y = torch.empty_like(s)
    _copy[(triton.cdiv(y.numel(), 256),)](s, y, y.numel(), BLOCK=256)
    return y


def softmax_small_fallback(x):
    """torch computes what is not a multiple of 8."""
    if x.shape[-1] % 8 or not x.is_contiguous():
        return torch.softmax(x, -1)
    return softmax(x)


_seen = {}


def softmax_triton_by_shape(x):
    if x.shape not in _seen:
        _seen[x.shape] = softmax(x)
    return _seen[x.shape].clone()


_out = {}


def softmax_buffer(x):
    x = x.contiguous()
    if x.shape not in _out:
        _out[x.shape] = torch.empty_like(x)
    y = _out[x.shape]
    _soft[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def softmax_fixed_block(x):
    """512 columns and no more."""
    x = x.contiguous()
    y = torch.empty_like(x)
    _soft[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
    return y


def softmax_few_rows(x):
    """Rows of a grid that is rounded down."""
    x = x.contiguous()
    y = torch.zeros_like(x)
    rows = max(x.shape[0] // 4 * 4, 1)
    _soft[(rows,)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def _stencil(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(x_ptr + row * n + i - 1, mask=m & (i > 0), other=0.0)
    b = tl.load(x_ptr + row * n + i, mask=m, other=0.0)
    c = tl.load(x_ptr + row * n + i + 1, mask=m & (i + 1 < n), other=0.0)
    tl.store(y_ptr + row * n + i, (a + b + c) / 3, mask=m)


def stencil(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _stencil[(x.shape[0], triton.cdiv(x.shape[1], 64))](x, y, x.shape[1], BLOCK=64)
    return y


def stencil_in_place(x):
    """Programs read what their neighbours have written."""
    y = x.clone(memory_format=torch.contiguous_format)
    _stencil[(x.shape[0], triton.cdiv(x.shape[1], 64))](y, y, x.shape[1], BLOCK=64)
    return y


@triton.jit
def _stencil_wrap(x_ptr, y_ptr, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < total
    a = tl.load(x_ptr + i - 1, mask=m & (i > 0), other=0.0)
    b = tl.load(x_ptr + i, mask=m, other=0.0)
    c = tl.load(x_ptr + i + 1, mask=m & (i + 1 < total), other=0.0)
    tl.store(y_ptr + i, (a + b + c) / 3, mask=m)


def stencil_across_rows(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    _stencil_wrap[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), x.shape[1], BLOCK=64)
    return y


@triton.jit
def _overlap(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.maximum(x, 0.0) * tl.maximum(x, 0.0), mask=i < n)


def relu2_overlap(x):
    """Blocks overlap by an element, to which two programs store the same number."""
    x = x.contiguous()
    y = torch.empty_like(x)
    _overlap[(triton.cdiv(x.numel(), 127),)](x, y, x.numel(), BLOCK=128)
    return y


@triton.jit
def _two(x_ptr, t_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(t_ptr + pid, tl.sum(x, 0))
    if pid == tl.num_programs(0) - 1:
        s = 0.0
        for k in range(tl.num_programs(0)):
            s += tl.load(t_ptr + k)
        tl.store(y_ptr, s)


def total_unsynchronised(x):
    """The last program reads what the others may not have written yet."""
    x = x.contiguous()
    n = max(triton.cdiv(x.numel(), 64), 1)
    t, y = torch.empty(n), torch.empty(())
    _two[(n,)](x, t, y, x.numel(), BLOCK=64)
    return y
