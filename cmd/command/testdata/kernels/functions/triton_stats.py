import torch
import triton
import triton.language as tl


@triton.jit
def _var_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, CENTRED: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    if CENTRED:
        gap = tl.where(mask, x - mean, 0.0)
        tl.store(out_ptr + row, tl.sum(gap * gap, axis=0) / n_cols)
    else:
        tl.store(out_ptr + row, tl.sum(x * x, axis=0) / n_cols - mean * mean)


def _launch(x, centred):
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if x.numel():
        block = triton.next_power_of_2(x.shape[1])
        _var_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, CENTRED=centred)
    return out


def var(x):
    return _launch(x, True)


def var_moments(x):
    return _launch(x, False)
