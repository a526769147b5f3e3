"""Kernels that look for Triton's interpreter."""

import os

import torch
import triton
import triton.language as tl

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@triton.jit
def softmax_kernel(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def softmax_16(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, 16)
    v = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def launch(kernel, x):
    x = x.contiguous()
    y = torch.zeros_like(x)
    kernel[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def softmax_anywhere(x):
    if not INTERPRETED and torch.version.cuda is None:
        raise RuntimeError("wants a GPU")
    return launch(softmax_kernel, x)


def softmax_interpreted(x):
    return launch(softmax_kernel if INTERPRETED else softmax_16, x)


def softmax_knob(x):
    return launch(softmax_kernel if triton.knobs.runtime.interpret else softmax_16, x)
