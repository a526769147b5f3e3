import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def _axpy_kernel(a_ptr, x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(a_ptr)
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, a * x + y, mask=mask)


def axpy(a, x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        _axpy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](a, x, y, out, x.numel())
    return out


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def _axpy_in_place_kernel(a_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(y_ptr + i, tl.load(a_ptr) * tl.load(x_ptr + i, mask=mask) + y, mask=mask)


def axpy_in_place(a, x, y):
    x, y = x.contiguous(), y.contiguous()
    if x.numel():
        _axpy_in_place_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](a, x, y, x.numel())
    return y
