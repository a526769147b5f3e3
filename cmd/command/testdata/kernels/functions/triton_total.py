import torch
import triton
import triton.language as tl


@triton.jit
def _total_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0)
    if ATOMIC:
        tl.atomic_add(out_ptr, part)
    else:
        tl.store(out_ptr, tl.load(out_ptr) + part)


@triton.jit
def _scatter_kernel(x_ptr, index_ptr, out_ptr, C, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * C + c, mask=c < C, other=0.0)
    at = out_ptr + tl.load(index_ptr + row) * C + c
    if ATOMIC:
        tl.atomic_add(at, x, mask=c < C)
    else:
        tl.store(at, tl.load(at, mask=c < C, other=0.0) + x, mask=c < C)


def _total(x, atomic):
    x = x.contiguous()
    out = torch.zeros(1, dtype=x.dtype, device=x.device)
    if x.numel():
        _total_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64, ATOMIC=atomic)
    return out


def _scatter(x, index, atomic):
    x, index = x.contiguous(), index.contiguous()
    out = torch.zeros(8, x.shape[1], dtype=x.dtype, device=x.device)
    if x.numel():
        block = triton.next_power_of_2(x.shape[1])
        _scatter_kernel[(x.shape[0],)](x, index, out, x.shape[1], BLOCK=block, ATOMIC=atomic)
    return out


def total(x):
    return _total(x, True)


def total_add(x):
    return _total(x, False)


def scatter_rows(x, index):
    return _scatter(x, index, True)


def scatter_rows_add(x, index):
    return _scatter(x, index, False)
