import torch
import triton
import triton.language as tl


@triton.jit
def _glu_kernel(x_ptr, out_ptr, half, gate_at, up_at, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = j < half
    gate = tl.load(x_ptr + row * 2 * half + gate_at + j, mask=mask, other=0.0)
    up = tl.load(x_ptr + row * 2 * half + up_at + j, mask=mask, other=0.0)
    tl.store(out_ptr + row * half + j, gate / (1 + tl.exp(-gate)) * up, mask=mask)


def _launch(x, swapped):
    x = x.contiguous()
    half = x.shape[-1] // 2
    out = torch.empty(*x.shape[:-1], half, dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (out.numel() // half, triton.cdiv(half, 128))
        gate_at, up_at = (half, 0) if swapped else (0, half)
        _glu_kernel[grid](x, out, half, gate_at, up_at, BLOCK=128)
    return out


def swiglu(x):
    return _launch(x, False)


def swiglu_packed(x):
    return _launch(x, True)
