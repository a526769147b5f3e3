import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _scan(x_ptr, m_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = tl.zeros((1,), tl.float32)
    for start in range(0, n, BLOCK):
        c = start + tl.arange(0, BLOCK)
        k = c < n
        x = tl.load(x_ptr + row * n + c, mask=k, other=0.0)
        m = tl.load(m_ptr + row * n + c, mask=k, other=0)
        v = x * m.to(tl.float32)
        tl.store(y_ptr + row * n + c, tl.cumsum(v, 0) + carry, mask=k)
        carry += tl.sum(v, 0)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        assert self.dim == x.dim() - 1
        x = x.contiguous()
        mask = mask.contiguous().to(torch.int8)
        y = torch.empty_like(x)
        n = x.shape[-1]
        if x.numel():
            _scan[(x.numel() // n,)](x, mask, y, n, BLOCK=1024)
        return y
