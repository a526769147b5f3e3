"""Running sums, products and extremes along a dimension."""
import torch
from plumb import *


def scanned(low=-2, high=2):
    return random_tensor(ndim=4, dim0=random(1, 6), dim1=random(1, 6), dim2=random(1, 4), dim3=random(1, 4), low=low, high=high)


@autotest()
def test_cumsum():
    return torch.cumsum(scanned(), dim=random(-4, 4))


@autotest()
def test_cumsum_long():
    return random_tensor(ndim=2, dim0=random(100, 300), dim1=random(1, 4)).cumsum(0)


@autotest(auto_backward=False)
def test_cumsum_int():
    x = random_tensor(ndim=2, dim0=random(1, 6), low=-9, high=9, dtype=oneof(int, torch.bool, torch.int32, torch.uint8))
    return x.cumsum(1), torch.cumsum(x, 0, dtype=oneof(torch.float32, torch.int16))


@autotest()
def test_cumsum_complex():
    return random_tensor(ndim=2, dim0=random(1, 6), dtype=torch.complex64).cumsum(1).abs()


@autotest()
def test_cumsum_scalar():
    x = random_tensor(ndim=0)
    return x.cumsum(0), x.cumprod(-1), x.logcumsumexp(0), x.cummax(0).values


@autotest()
def test_cumprod():
    return torch.cumprod(scanned(), dim=random(-4, 4))


@autotest()
def test_cumprod_of_transposed():
    return random_tensor(ndim=2, dim0=random(1, 8), dim1=random(1, 8)).t().cumprod(1)


@autotest(auto_backward=False)
def test_cumprod_int():
    x = random_tensor(ndim=2, dim0=random(1, 6), low=-4, high=4, dtype=oneof(int, torch.int32))
    return x.cumprod(1), torch.cumprod(x, 0, dtype=torch.float64)


@autotest()
def test_logcumsumexp():
    return torch.logcumsumexp(scanned(-8, 8), dim=random(-4, 4))


@autotest()
def test_logcumsumexp_method():
    return random_tensor(ndim=1, dim0=random(1, 40)).logcumsumexp(0)


@autotest(auto_backward="auto")
def test_cummax():
    return torch.cummax(scanned(), dim=random(-4, 4))


@autotest()
def test_cummax_values():
    return scanned().cummax(oneof(0, 1, 2, -1)).values


@autotest(auto_backward="auto")
def test_cummin():
    return torch.cummin(scanned(), dim=random(-4, 4))


@autotest()
def test_cummin_values():
    return scanned().cummin(oneof(0, 1, 2, -1)).values


@autotest(auto_backward=False)
def test_cumextreme_int():
    x = random_tensor(ndim=2, dim0=random(1, 6), low=-9, high=9, dtype=oneof(int, torch.bool))
    return x.cummax(0), torch.cummin(x, 1)
