import torch
import triton
import triton.language as tl


@triton.jit
def _int8_kernel(x_ptr, w_ptr, s_ptr, out_ptr, K, O, BK: tl.constexpr, BO: tl.constexpr, SIGNED: tl.constexpr):
    row = tl.program_id(0)
    o = tl.program_id(1) * BO + tl.arange(0, BO)
    acc = tl.zeros((BO,), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + row * K + k, mask=k < K, other=0.0)
        w = tl.load(w_ptr + o[:, None] * K + k[None, :], mask=(o[:, None] < O) & (k[None, :] < K), other=0)
        if not SIGNED:
            w = w.to(tl.uint8)
        acc += tl.sum(w.to(tl.float32) * x[None, :], axis=1)
    scale = tl.load(s_ptr + o, mask=o < O, other=0.0)
    tl.store(out_ptr + row * O + o, acc * scale, mask=o < O)


def _launch(x, w, scale, signed):
    x, w, scale = x.contiguous(), w.contiguous(), scale.contiguous()
    out = torch.empty(x.shape[0], w.shape[0], dtype=x.dtype, device=x.device)
    if out.numel():
        grid = (x.shape[0], triton.cdiv(w.shape[0], 32))
        _int8_kernel[grid](x, w, scale, out, x.shape[1], w.shape[0], BK=32, BO=32, SIGNED=signed)
    return out


def int8_linear(x, w, scale):
    return _launch(x, w, scale, True)


def int8_linear_bytes(x, w, scale):
    return _launch(x, w, scale, False)
