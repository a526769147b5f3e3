import torch
import triton
import triton.language as tl


@triton.jit
def _logsumexp_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, RESCALE: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        new = tl.maximum(top, tl.max(x, axis=0))
        if RESCALE:
            total = total * tl.exp(top - new)
        total += tl.sum(tl.exp(x - new), axis=0)
        top = new
    tl.store(out_ptr + row, top + tl.log(total))


@triton.jit
def _argmax_kernel(x_ptr, out_ptr, n_cols, fill, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=fill)
    tl.store(out_ptr + row, tl.argmax(x, axis=0, tie_break_left=True).to(tl.int64))


def logsumexp(x):
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    _logsumexp_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64, RESCALE=True)
    return out


def logsumexp_blocks(x):
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    _logsumexp_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=64, RESCALE=False)
    return out


def argmax(x):
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    _argmax_kernel[(x.shape[0],)](x, out, x.shape[1], -float("inf"), BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def argmax_padded(x):
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    _argmax_kernel[(x.shape[0],)](x, out, x.shape[1], 0.0, BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
