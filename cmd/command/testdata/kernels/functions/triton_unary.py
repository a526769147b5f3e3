import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def _silu_wide_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x * tl.sigmoid(x), mask=i < n)


@triton.jit
def _silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x / (1 + tl.exp(-x))), mask=i < n)


@triton.jit
def _relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x, mask=(i < n) & (x > 0))


def _run(kernel, x, out):
    if x.numel():
        kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
    return out


def silu(x):
    x = x.contiguous()
    return _run(_silu_kernel, x, torch.empty_like(x))


def silu_wide(x):
    x = x.contiguous()
    return _run(_silu_wide_kernel, x, torch.empty_like(x))


def relu(x):
    x = x.contiguous()
    return _run(_relu_kernel, x, torch.empty_like(x))


def relu_cleared(x):
    x = x.contiguous()
    return _run(_relu_kernel, x, torch.zeros_like(x))
