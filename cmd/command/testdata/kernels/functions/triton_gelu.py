import torch
import triton
import triton.language as tl


@triton.jit
def _gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EXACT: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if EXACT:
        y = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    else:
        z = 1.5957691216057308 * (x + 0.044715 * x * x * x)
        y = x / (1 + tl.exp(-z))
    tl.store(out_ptr + i, y, mask=i < n)


def _launch(x, exact):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        _gelu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256, EXACT=exact)
    return out


def gelu(x):
    return _launch(x, True)


def gelu_quick(x):
    return _launch(x, False)
