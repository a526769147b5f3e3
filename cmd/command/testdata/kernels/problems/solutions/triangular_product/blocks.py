import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(a, b, c, N, B: tl.constexpr):
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    if tl.program_id(0) < tl.program_id(1):
        tl.store(c + m[:, None] * N + n[None, :], tl.zeros((B, B), tl.float32), mask=(m[:, None] < N) & (n[None, :] < N))
        return
    acc = tl.zeros((B, B), tl.float32)
    for s in range(0, N, B):
        j = s + tl.arange(0, B)
        x = tl.load(a + m[:, None] * N + j[None, :], mask=(m[:, None] < N) & (j[None, :] < N), other=0.0)
        y = tl.load(b + j[:, None] * N + n[None, :], mask=(j[:, None] < N) & (n[None, :] < N), other=0.0)
        acc += tl.dot(x, y)
    acc = tl.where(m[:, None] >= n[None, :], acc, 0.0)
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < N) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        A, B = A.cuda().contiguous(), B.cuda().contiguous()
        c = torch.empty_like(A)
        n = A.shape[0]
        g = triton.cdiv(n, 32)
        k[(g, g)](A, B, c, n, B=32)
        return c
