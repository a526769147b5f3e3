import pathlib

import torch
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding
from torch.utils.cpp_extension import load

load(name="mylib", sources=[str(pathlib.Path(__file__).parent / "leaky_relu_yzh.cpp")])


@torch.library.register_fake("mylib::leaky_relu_yzh")
def _(x, alpha=0.01):
    torch._check(x.is_floating_point())
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def setup_context(ctx, inputs, output):
    x, ctx.alpha = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return torch.where(x > 0, grad, grad * ctx.alpha), None


torch.library.register_autograd("mylib::leaky_relu_yzh", backward, setup_context=setup_context)


@torch.library.register_vmap("mylib::leaky_relu_yzh")
def _(info, in_dims, x, alpha=0.01):
    return torch.ops.mylib.leaky_relu_yzh(x, alpha), in_dims[0]


@register_sharding(torch.ops.mylib.leaky_relu_yzh.default)
def _(x, alpha=0.01):
    every = [([Shard(axis)], [Shard(axis), None]) for axis in range(x.ndim)]
    return every + [([Replicate()], [Replicate(), None])]


def leaky_relu_yzh(x, alpha=0.01):
    return torch.ops.mylib.leaky_relu_yzh(x, alpha)


class LeakyReLUYzh(torch.nn.Module):
    def __init__(self, alpha=0.01):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return leaky_relu_yzh(x, self.alpha)
