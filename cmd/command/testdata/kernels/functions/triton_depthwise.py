import torch
import triton
import triton.language as tl


@triton.jit
def _depthwise_kernel(x_ptr, w_ptr, out_ptr, C, L, K, PAD, BLOCK: tl.constexpr, LEFT: tl.constexpr):
    row = tl.program_id(0)
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, K):
        at = t + k - PAD
        mask = at < L
        if LEFT:
            mask = mask & (at >= 0)
        x = tl.load(x_ptr + row * L + at, mask=mask, other=0.0)
        w = tl.load(w_ptr + (row % C) * K + k)
        acc += tl.where(at >= 0, x, 0.0) * w
    tl.store(out_ptr + row * L + t, acc, mask=t < L)


def _launch(x, w, left):
    x, w = x.contiguous(), w.contiguous()
    out = torch.empty_like(x)
    n, c, length = x.shape
    if out.numel():
        grid = (n * c, triton.cdiv(length, 64))
        _depthwise_kernel[grid](x, w, out, c, length, w.shape[1], w.shape[1] // 2, BLOCK=64, LEFT=left)
    return out


def depthwise_conv1d(x, w):
    return _launch(x, w, True)


def depthwise_conv1d_edge(x, w):
    return _launch(x, w, False)
