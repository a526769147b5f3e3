import torch
import triton
import triton.language as tl


@triton.jit
def _pool_kernel(x_ptr, out_ptr, n_cols, fill, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    best = tl.load(x_ptr + row * n_cols + j, mask=j < n_cols, other=0.0)
    for step in tl.static_range(-1, 2, 2):
        at = j + step
        x = tl.load(x_ptr + row * n_cols + at, mask=(at >= 0) & (at < n_cols), other=fill)
        best = tl.where((x > best) | (x != x), x, best)
    tl.store(out_ptr + row * n_cols + j, best, mask=j < n_cols)


def _launch(x, fill):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        _pool_kernel[(x.shape[0], triton.cdiv(x.shape[1], 32))](x, out, x.shape[1], fill, BLOCK=32)
    return out


def max_pool3(x):
    return _launch(x, float("-inf"))


def max_pool3_zero(x):
    return _launch(x, 0.0)
