import torch
import triton
import triton.language as tl


@triton.jit
def _rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, T, half, step, gap, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mask = j < half
    cos = tl.load(cos_ptr + (row % T) * half + j, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + (row % T) * half + j, mask=mask, other=0.0)
    at = row * 2 * half + j * step
    a = tl.load(x_ptr + at, mask=mask, other=0.0)
    b = tl.load(x_ptr + at + gap, mask=mask, other=0.0)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + gap, b * cos + a * sin, mask=mask)


def _launch(x, cos, sin, step, gap):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    half = cos.shape[-1]
    if out.numel():
        grid = (out.numel() // (2 * half),)
        _rotary_kernel[grid](x, cos, sin, out, x.shape[-2], half, step, gap or half,
                             BLOCK=triton.next_power_of_2(half))
    return out


def rotary(x, cos, sin):
    return _launch(x, cos, sin, 1, None)


def rotary_interleaved(x, cos, sin):
    return _launch(x, cos, sin, 2, 1)
