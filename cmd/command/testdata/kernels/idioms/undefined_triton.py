"""Lanes that a load leaves undefined, and sums of bfloat16."""
import torch
import triton
import triton.language as tl


@triton.jit
def _row_max(x, y, N, OTHER: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    if OTHER:
        v = tl.load(x + row * N + c, mask=c < N, other=-float("inf"))
    else:
        v = tl.load(x + row * N + c, mask=c < N)
    tl.store(y + row, tl.max(v, 0))


def _run(x, other):
    x = x.contiguous()
    y = torch.empty(x.shape[0])
    _row_max[(x.shape[0],)](x, y, x.shape[1], OTHER=other, B=triton.next_power_of_2(x.shape[1]))
    return y


def row_max(x): return _run(x, True)
def row_max_no_other(x): return _run(x, False)


@triton.jit
def _bias_grad(g, y, N, C, BN: tl.constexpr):
    c = tl.program_id(0)
    acc = tl.zeros((1,), tl.float32)
    for n in range(0, N, BN):
        at = n + tl.arange(0, BN)
        v = tl.load(g + at * C + c, mask=at < N, other=0.0)
        acc += tl.sum(v, 0)
    tl.store(y + c + tl.arange(0, 1), acc.to(y.dtype.element_ty))


def column_sums(x):
    x = x.contiguous()
    y = torch.empty(x.shape[1], dtype=x.dtype)
    _bias_grad[(x.shape[1],)](x, y, x.shape[0], x.shape[1], BN=8)
    return y
