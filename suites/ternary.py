"""masked_fill, addcmul, addcdiv, lerp, and clamp by tensors."""
import torch
from plumb import *


def triple(low=-2, high=2):
    # tensors that broadcast with each other
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=low, high=high)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b, low=low, high=high)
    z = random_tensor(ndim=1, dim0=b, low=low, high=high)
    return x, y, z


@autotest()
def test_masked_fill():
    x, y, _ = triple()
    return torch.masked_fill(x, y > 0, random(-3, 4).to(float) | random(-3, 4).to(int))


@autotest()
def test_masked_fill_method():
    x, y, _ = triple()
    return y.masked_fill(x > 0, random(-3, 4).to(float))


@autotest()
def test_masked_fill_tensor():
    x, y, _ = triple()
    return x.masked_fill(y > 0, random_tensor(ndim=0))


@autotest(auto_backward=False)
def test_masked_fill_integers():
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=4, dtype=int)
    return x.masked_fill(x > 0, 7), (x > 0).masked_fill(x < 2, True), x.masked_fill(x > 1, 2.5)


@autotest()
def test_addcmul():
    x, y, z = triple()
    return torch.addcmul(x, y, z, value=random(-2.0, 2.0).to(float) | nothing())


@autotest()
def test_addcmul_method():
    x, y, z = triple()
    return z.addcmul(x, y, value=random(-2, 3).to(int))


@autotest(auto_backward=False)
def test_addcmul_integers():
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=4, dtype=int)
    return torch.addcmul(x, x, x + 1, value=3), x.addcmul(x, x)


@autotest()
def test_addcdiv():
    x, y, z = triple(0.5, 2)
    return torch.addcdiv(x, y, z, value=random(-2.0, 2.0).to(float) | nothing())


@autotest()
def test_addcdiv_method():
    x, y, z = triple(0.5, 2)
    return y.addcdiv(x, z, value=random(-2, 3).to(int))


@autotest()
def test_lerp_scalar():
    x, y, _ = triple()
    return torch.lerp(x, y, random(-1.0, 2.0).to(float)), x.lerp(y, 1)


@autotest()
def test_lerp_tensor():
    x, y, z = triple()
    return torch.lerp(x, y, z)


@autotest()
def test_lerp_method():
    x, y, _ = triple()
    return y.lerp(x, random_tensor(ndim=0))


@autotest()
def test_addcmul_complex():
    a = random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=3, dtype=torch.complex64)
    y = random_tensor(ndim=2, dim0=a, dim1=1, dtype=torch.complex64)
    return torch.addcmul(x, y, x, value=0.5), torch.lerp(x, y, 0.25), torch.addcdiv(x, x, y + 3)


@autotest()
def test_clamp_tensors():
    x, y, z = triple()
    return torch.clamp(x, min=y, max=z)


@autotest()
def test_clamp_one_tensor():
    x, y, z = triple()
    return torch.clamp(x, min=y), x.clamp(max=z), x.clip(y, z)


@autotest()
def test_clamp_min_tensor():
    x, y, _ = triple()
    return torch.clamp_min(x, y), x.clamp_max(y)


@autotest(auto_backward=False)
def test_clamp_tensor_integers():
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=4, low=-9, high=9, dtype=int)
    y = random_tensor(ndim=1, dim0=4, low=-9, high=9, dtype=int)
    return torch.clamp(x, y, y + 3), x.clamp_min(y), torch.clip(x, max=y), torch.clamp(x, y / 2)
