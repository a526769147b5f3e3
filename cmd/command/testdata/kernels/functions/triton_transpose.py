import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(x_ptr, out_ptr, M, N, sm, sn, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (m[:, None] < M) & (n[None, :] < N)
    x = tl.load(x_ptr + m[:, None] * sm + n[None, :] * sn, mask=mask)
    tl.store(out_ptr + n[None, :] * M + m[:, None], x, mask=mask)


def transpose(x):
    out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype, device=x.device)
    if x.numel():
        grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))
        _transpose_kernel[grid](x, out, x.shape[0], x.shape[1], x.stride(0), x.stride(1), BLOCK=32)
    return out


_saved = {}


def transpose_cached(x):
    key = (tuple(x.shape), x.dtype)
    if key not in _saved:
        _saved[key] = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype, device=x.device)
    out = _saved[key]
    if x.numel():
        grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))
        _transpose_kernel[grid](x, out, x.shape[0], x.shape[1], x.stride(0), x.stride(1), BLOCK=32)
    return out
