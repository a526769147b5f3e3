"""Padding: the function in all modes, and the modules."""
import torch
from plumb import *


@autotest()
def test_pad_constant():
    x = random_tensor(ndim=random(1, 6).to(int), dim0=random(3, 6), dim1=random(3, 6), dim2=random(3, 6), dim3=random(3, 6))
    return torch.nn.functional.pad(x, (random(-1, 4).to(int), random(-1, 4).to(int)), value=random(-2, 2).to(float) | nothing())


@autotest()
def test_pad_constant_dims():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    pad = (1, random(-1, 3).to(int), random(-1, 3).to(int), 0, 2, random(0, 3).to(int))
    return torch.nn.functional.pad(x, pad, "constant", 1.5), torch.nn.functional.pad(x, (-1, -1)), torch.constant_pad_nd(x, [1, 1], 2)


@autotest()
def test_pad_channels_last():
    x = random_tensor(ndim=4, dim0=2, dim1=random(2, 4), dim2=random(3, 6), dim3=random(3, 6))
    y = x.contiguous(memory_format=torch.channels_last)
    mode = oneof("constant", "reflect", "replicate", "circular")
    return torch.nn.functional.pad(y, (1, 2, 0, 1), mode=mode), torch.nn.functional.pad(y, (-1, 0))


@autotest()
def test_pad_1d():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(4, 7))
    mode = oneof("reflect", "replicate", "circular")
    return torch.nn.functional.pad(x, (random(-1, 4).to(int), random(0, 4).to(int)), mode=mode)


@autotest()
def test_pad_2d():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(4, 7), dim3=random(4, 7))
    mode = oneof("reflect", "replicate", "circular")
    return torch.nn.functional.pad(x, (random(0, 4).to(int), 1, 0, random(-1, 4).to(int)), mode=mode)


@autotest()
def test_pad_3d():
    x = random_tensor(ndim=5, dim0=random(1, 3), dim1=random(1, 3), dim2=random(2, 4), dim3=random(2, 4), dim4=random(2, 4))
    mode = oneof("reflect", "replicate", "circular")
    return torch.nn.functional.pad(x, (1, 0, random(0, 2).to(int), 1, random(0, 2).to(int), 1), mode=mode)


@autotest(refusals=True)
def test_pad_refused():
    x = random_tensor(ndim=random(1, 6).to(int), dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 4), dim3=random(1, 4))
    mode = oneof("reflect", "replicate", "circular", "constant")
    pad = oneof((1, 1), (1, 0, 2, 1), (1, 1, 1), (3, 0), (-2, -2), (1, 1, 0, 0, 1, 1))
    return torch.nn.functional.pad(x, pad, mode=mode)


@autotest(auto_backward="auto")
def test_pad_integers():
    x = random_tensor(ndim=2, dim0=3, dim1=random(2, 5).to(int), dtype=oneof(int, torch.uint8, complex))
    return torch.nn.functional.pad(x, (1, 2)), torch.nn.functional.pad(x, (1, -1, 2, 0), value=1)


@autotest()
def test_constant_pad_modules():
    x = random_tensor(ndim=5, dim0=2, dim1=2, dim2=random(2, 4), dim3=random(2, 4), dim4=random(2, 4))
    v = random(-2, 2).to(float)
    one = torch.nn.ConstantPad1d(random(0, 3).to(int), v)
    two = torch.nn.ConstantPad2d((1, 0, random(0, 3).to(int), 2), value=v)
    three = torch.nn.ConstantPad3d(padding=1, value=v)
    zero = torch.nn.ZeroPad2d(oneof(1, (1, 0, 2, 1), (-1, 1, 0, 0)))
    return one(x[0, 0]), two(x[0]), three(x), zero(x[0])


@autotest()
def test_reflection_pad_modules():
    x = random_tensor(ndim=5, dim0=2, dim1=2, dim2=random(3, 5), dim3=random(3, 5), dim4=random(3, 5))
    one = torch.nn.ReflectionPad1d(random(0, 3).to(int))
    two = torch.nn.ReflectionPad2d((1, 0, random(0, 3).to(int), 2))
    three = torch.nn.ReflectionPad3d(padding=random(0, 2).to(int))
    return one(x[0, 0]), two(x[0]), three(x)


@autotest()
def test_replication_pad_modules():
    x = random_tensor(ndim=5, dim0=2, dim1=2, dim2=random(1, 4), dim3=random(1, 4), dim4=random(1, 4))
    one = torch.nn.ReplicationPad1d(random(0, 4).to(int))
    two = torch.nn.ReplicationPad2d((1, 0, random(0, 4).to(int), 2))
    three = torch.nn.ReplicationPad3d(padding=random(0, 3).to(int))
    return one(x[0, 0]), two(x[0]), three(x)
