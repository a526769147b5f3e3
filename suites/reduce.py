"""sum, mean, max.

A dimension is drawn below the number of dimensions, so that no case is out
of range. Maxima have ties in a quarter of the cases.
"""
import torch
from plumb import *


@autotest()
def test_sum():
    return torch.sum(random_tensor(ndim=random(0, 5), dim0=random(1, 6)))


@autotest()
def test_sum_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.sum(x, dim=random(-ndim, ndim).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_sum_dims():
    x = random_tensor(ndim=4, dim0=random(1, 6))
    return x.sum(dim=oneof((0, 1), (1, 3), (-1, 0), (0, 1, 2, 3)), keepdim=random_bool())


@autotest()
def test_sum_long():
    # long enough for the order of summation to matter
    return random_tensor(ndim=1, dim0=random(1000, 5000)).sum()


@autotest(auto_backward=False)
def test_sum_int():
    x = random_tensor(ndim=3, dim0=random(1, 6), dtype=int)
    return x.sum(), x.sum(dim=random(-3, 3).to(int))


@autotest()
def test_mean():
    return random_tensor(ndim=random(0, 5), dim0=random(1, 6)).mean()


@autotest()
def test_mean_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.mean(x, dim=random(-ndim, ndim).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_mean_dims():
    x = random_tensor(ndim=4, dim0=random(1, 6), dtype=torch.float64)
    return torch.mean(x, (2, 3), keepdim=random_bool())


@autotest()
def test_max():
    return torch.max(random_tensor(ndim=random(0, 5), dim0=random(1, 6)))


@autotest(auto_backward="auto")
def test_max_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.max(x, dim=random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest()
def test_max_dim_values():
    x = random_tensor(ndim=3, dim0=random(1, 6))
    values, indices = x.max(oneof(0, 1, 2, -1))
    return values


@autotest()
def test_max_pairwise():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b)
    return torch.max(x, y)


@autotest(auto_backward=False)
def test_max_int():
    x = random_tensor(ndim=2, dim0=random(1, 6), dtype=int)
    return x.max(), x.max(dim=1)


@autotest()
def test_variance_by_hand():
    x = random_tensor(ndim=2, dim0=random(2, 6), dim1=random(2, 30))
    centred = x - x.mean(dim=1, keepdim=True)
    return (centred * centred).sum(dim=1) / 7, x.max(dim=0).values
