"""Tensors from numbers, and complex numbers apart and together."""
import torch
from plumb import *


@autotest(auto_backward=False)
def test_zeros_and_ones():
    n = random(0, 4).to(int)
    d = oneof(torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64, torch.uint8)
    return torch.zeros(n, 3), torch.ones((2, n), dtype=d), torch.zeros(n), torch.ones(2, device="cpu"), torch.zeros(())


@autotest()
def test_created_in_arithmetic():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    return x * torch.ones(3) + torch.arange(3) - torch.eye(2, 3)


@autotest(auto_backward=False)
def test_tensor():
    a = random(-5, 5).to(int)
    return torch.tensor(oneof(1.5, 2, True)), torch.tensor([[a, 2], [3, 4]]), torch.tensor([1, a, 2.5]), torch.tensor([]), torch.tensor((a, 3), dtype=oneof(torch.float64, torch.int8, torch.bool))


@autotest()
def test_tensor_as_operand():
    x = random_tensor(ndim=2, dim0=2, dim1=2)
    return x * torch.tensor([[1.0, 2.0], [3.0, 4.0]]) + torch.tensor(2)


@autotest(auto_backward=False)
def test_vander():
    # PyTorch 1.13 cannot differentiate its own: it changes what the backward pass needs
    x = random_tensor(ndim=1, dim0=random(1, 5))
    return torch.vander(x), torch.vander(x, random(0, 5).to(int), increasing=random().to(bool)) * 2


@autotest(auto_backward=False)
def test_full():
    n = random(0, 4).to(int)
    return torch.full((2, n), oneof(1.5, 2, True)), torch.full((n,), 3, dtype=oneof(torch.float64, torch.int32, torch.bool))


@autotest(auto_backward=False)
def test_like():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5), dtype=oneof(float, int, complex))
    y = x.transpose(0, 2)
    return torch.ones_like(y), torch.zeros_like(x, dtype=torch.int64), torch.full_like(y, 3), torch.ones_like(x, dtype=torch.float64, device="cpu")


@autotest(auto_backward=False)
def test_like_formats():
    x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=2, dim3=2).contiguous(memory_format=torch.channels_last)
    return torch.ones_like(x), torch.zeros_like(x, memory_format=torch.contiguous_format), torch.full_like(x, 1.5)


@autotest(auto_backward=False)
def test_new():
    x = random_tensor(ndim=1, dim0=2, dtype=oneof(float, int, torch.float64))
    n = random(0, 4).to(int)
    return x.new_zeros(n, 2), x.new_ones((2, n)), x.new_full((n,), 2.5), x.new_ones(2, dtype=torch.int8), x.new_zeros(())


@autotest(auto_backward=False)
def test_arange():
    a, b = random(-5, 5).to(int), random(1, 8).to(int)
    return torch.arange(b), torch.arange(a, a + b), torch.arange(a, a + b, random(1, 4).to(int)), torch.arange(a + b, a, -1)


@autotest(auto_backward=False)
def test_arange_float():
    a, s = random(-5, 5).to(int), oneof(0.25, 0.5, 1.5)
    return torch.arange(2.5), torch.arange(a, a + 3.25, s), torch.arange(0, 5, dtype=oneof(torch.float64, torch.int32, torch.uint8, torch.bfloat16))


@autotest(auto_backward=False, refusals=True)
def test_arange_refused():
    return torch.arange(random(-3, 3).to(int), random(-3, 3).to(int), random(-2, 3).to(int))


@autotest(auto_backward=False)
def test_linspace():
    a, b = random(-5, 5).to(float), random(-5, 5).to(float)
    return torch.linspace(a, b, random(0, 12).to(int)), torch.linspace(0, 4, steps=5, dtype=oneof(torch.float64, torch.int64))


@autotest(auto_backward=False)
def test_logspace():
    a, b = random(-3, 3).to(float), random(-3, 3).to(float)
    return torch.logspace(a, b, random(0, 12).to(int)), torch.logspace(0, 4, steps=5, base=2.0, dtype=torch.float64)


@autotest(auto_backward=False)
def test_eye():
    n, m = random(0, 5).to(int), random(0, 5).to(int)
    return torch.eye(n), torch.eye(n, m), torch.eye(n, m=m, dtype=oneof(torch.int64, torch.bool, torch.float64))


@autotest(auto_backward=False)
def test_triangle_indices():
    n, m, k = random(0, 5).to(int), random(0, 5).to(int), random(-3, 4).to(int)
    return torch.tril_indices(n, m, k), torch.triu_indices(n, m, offset=k, dtype=oneof(torch.int32, torch.int64))


@autotest(auto_backward=False)
def test_scalar_tensor():
    return torch.scalar_tensor(random(-3, 3).to(float)), torch.scalar_tensor(2, dtype=torch.int64)


@autotest()
def test_complex():
    d = oneof(torch.float32, torch.float64)
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), dtype=d)
    y = random_tensor(ndim=2, dim0=1, dim1=1, dtype=d)
    return torch.complex(x, y), torch.complex(x.t(), x.t())


@autotest()
def test_polar():
    d = oneof(torch.float32, torch.float64)
    x = random_tensor(ndim=2, dim0=2, dim1=random(1, 5), low=0.1, dtype=d)
    return torch.polar(x, x * 3)


@autotest()
def test_parts():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), dtype=oneof(torch.complex64, torch.complex128))
    return torch.real(x), torch.imag(x), x.real * 2, x.imag, torch.view_as_real(x), torch.view_as_complex(torch.view_as_real(x)) * 2


@autotest(auto_backward=False)
def test_created_kwargs():
    n = random(0, 4).to(int)
    return torch.zeros(size=(n, 3)), torch.zeros(size=(2, 3)), torch.full(size=(2,), fill_value=2.0), torch.eye(n=3), torch.arange(start=0, end=5, step=2), torch.arange(end=5), torch.linspace(start=0, end=1, steps=3), torch.ones([2, 3]), torch.tensor(data=[1, 2]), torch.zeros(2, 3, dtype=torch.int32, device=torch.device("cpu"))


@autotest()
def test_angle():
    d = oneof(torch.float32, torch.float64, torch.complex64, torch.complex128)
    return torch.angle(random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), dtype=d))


@autotest(auto_backward=False)
def test_empty():
    # what they hold is undefined, what is written is not
    e = torch.empty(random(0, 4).to(int), 3, dtype=oneof(torch.float32, torch.int64))
    return e, torch.empty(2, 3, 4, 5, memory_format=torch.channels_last), torch.exp(torch.empty(2, 3).fill_(2.0))


@autotest()
def test_empty_like():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=3)
    y = torch.empty_like(x)
    y[...] = torch.tanh(x)
    return y, torch.empty_like(x, dtype=torch.float64), x.new_empty(2, 3)


@autotest(auto_backward=False)
def test_empty_strided():
    x = random_tensor(ndim=1, dim0=2, dtype=torch.float64, requires_grad=False)
    return torch.empty_strided((2, 3), (1, 2)), x.new_empty_strided((3, 2), (2, 1)), torch.empty_strided((2, 3), (1, 2)).zero_()
