import torch
import triton
import triton.language as tl


@triton.jit
def _smooth_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = x_ptr + row * n_cols + j
    left = tl.load(base - 1, mask=(j > 0) & (j <= n_cols), other=0.0)
    here = tl.load(base, mask=j < n_cols, other=0.0)
    right = tl.load(base + 1, mask=j + 1 < n_cols, other=0.0)
    tl.store(out_ptr + row * n_cols + j, 0.25 * left + 0.5 * here + 0.25 * right, mask=j < n_cols)


def _launch(x, out):
    if x.numel():
        grid = (triton.cdiv(x.shape[1], 32), x.shape[0])
        _smooth_kernel[grid](x, out, x.shape[1], BLOCK=32)
    return out


def smooth(x):
    x = x.contiguous()
    return _launch(x, torch.empty_like(x))


def smooth_copy(x):
    work = x.clone(memory_format=torch.contiguous_format)
    return _launch(work, work)
