"""sort, topk and what else orders elements.

The order of equal elements is unspecified except in a stable sort, so that
elements are made distinct where places are compared or a gradient follows them.
"""
import torch
from plumb import *


def shaped(low=-3, high=3):
    return random_tensor(ndim=3, dim0=random(1, 6), dim1=random(2, 6), dim2=random(1, 6), low=low, high=high)


def distinct():
    # ranks along dimension 1 differ, and x adds less than half of a step
    x = shaped(0, 1)
    ranks = torch.argsort(torch.argsort(x, stable=True, dim=1), stable=True, dim=1)
    return ranks + x * 0.5


@autotest()
def test_sort_stable():
    return torch.sort(shaped(), stable=True, dim=random(-3, 3), descending=random_bool())[0]


@autotest()
def test_sort():
    return torch.sort(distinct(), 1, random_bool())[0]


@autotest(auto_backward=False)
def test_sort_method():
    return distinct().sort(dim=1, descending=random_bool())


@autotest()
def test_sort_method_stable():
    return shaped().sort(stable=True)[0]


@autotest(auto_backward=False)
def test_sort_integers():
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), low=-9, high=9, dtype=int)
    return torch.sort(x, stable=True, descending=random_bool()), torch.sort(x > 0, stable=True, dim=0)


@autotest()
def test_sort_transposed():
    return torch.sort(shaped().transpose(0, 2), stable=True, dim=random(-3, 3))[0]


@autotest(auto_backward=False)
def test_argsort():
    return torch.argsort(distinct(), 1, random_bool())


@autotest(auto_backward=False)
def test_argsort_stable():
    return shaped().argsort(stable=True, dim=random(-3, 3), descending=random_bool())


@autotest(auto_backward=False)
def test_sort_nan():
    x = shaped()
    y = x / torch.trunc(x) * 0 + x
    return torch.sort(y, stable=True, dim=1, descending=random_bool())


@autotest(auto_backward=False)
def test_msort():
    return torch.msort(shaped()), shaped().msort()


@autotest()
def test_msort_distinct():
    return torch.msort(distinct().transpose(0, 1))


@autotest()
def test_topk():
    return torch.topk(distinct(), random(1, 3).to(int), dim=1, largest=random_bool())[0]


@autotest(auto_backward=False)
def test_topk_method():
    return distinct().topk(random(0, 3).to(int), -2, random_bool(), True)


@autotest()
def test_topk_unsorted():
    # the order is unspecified, so that there is one element
    return torch.topk(distinct(), 1, dim=1, sorted=False)[0]


@autotest(auto_backward=False)
def test_topk_integers():
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=random(2, 6), low=-9, high=9, dtype=int)
    places = torch.argsort(x, stable=True, dim=1)
    return places.topk(random(1, 3).to(int), largest=random_bool()), places.kthvalue(2)


@autotest()
def test_kthvalue():
    return torch.kthvalue(distinct(), random(1, 3).to(int), dim=1, keepdim=random_bool())[0]


@autotest(auto_backward=False)
def test_kthvalue_method():
    return distinct().kthvalue(random(1, 3).to(int), -2)


@autotest()
def test_sort_scalar():
    x = random_tensor(ndim=0, dim0=1)
    return torch.sort(x)[0], x.topk(1)[0], x.kthvalue(1)[0], x.msort()


@autotest(auto_backward=False)
def test_sort_no_elements():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=0)
    return torch.sort(x, stable=True, dim=random(0, 2)), x.argsort(), x.msort(), x.topk(0)[0]


@autotest()
def test_sort_channels_last():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 4), dim3=random(1, 4))
    return torch.sort(x.contiguous(memory_format=torch.channels_last), stable=True, dim=random(-4, 4))[0]


def repeated():
    return random_tensor(ndim=2, dim0=random(1, 6), dim1=random(1, 6), low=-2, high=3, dtype=int, requires_grad=False)


@autotest(auto_backward=False)
def test_unique():
    x = repeated()
    return torch.unique(x), x.unique(return_inverse=True), torch.unique(x, return_counts=True), x.unique(return_inverse=True, return_counts=True)


@autotest(auto_backward=False)
def test_unique_flags():
    x, inverse, counts = repeated(), random_bool(), random_bool()
    by_position = torch.unique(x, True, inverse, counts)
    return by_position, torch.unique(x, return_inverse=inverse, return_counts=counts), torch.unique_consecutive(x, return_inverse=inverse, return_counts=counts)


@autotest(auto_backward=False)
def test_unique_floats():
    # without -0, which PyTorch 1.13 takes for another number than 0 in bfloat16 alone
    x = torch.trunc(random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=-3, high=3, requires_grad=False)) + 0.0
    return torch.unique(x, True), torch.unique_consecutive(x, return_inverse=True, return_counts=True)


@autotest(auto_backward=False)
def test_unique_dim():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 4), low=0, high=2, dtype=int)
    return torch.unique(x, dim=random(-3, 3), return_inverse=True, return_counts=True), torch.unique(x > 0, dim=0)


@autotest(auto_backward=False)
def test_unique_consecutive():
    x = repeated()
    return torch.unique_consecutive(x), x.unique_consecutive(return_counts=True), x.unique_consecutive(return_inverse=True, dim=random(0, 2))


@autotest(auto_backward=False)
def test_searchsorted():
    n = random(1, 6)
    seq = random_tensor(ndim=2, dim0=3, dim1=n, requires_grad=False).sort(stable=True)[0]
    values = random_tensor(ndim=2, dim0=3, dim1=random(1, 6), requires_grad=False)
    return torch.searchsorted(seq, values, right=random_bool(), out_int32=random_bool()), torch.searchsorted(seq, seq, side=oneof("left", "right"))


@autotest(auto_backward=False)
def test_searchsorted_vector():
    x = random_tensor(ndim=1, dim0=random(1, 6), requires_grad=False)
    order = torch.argsort(x, stable=True)
    return torch.searchsorted(x, random_tensor(ndim=2, requires_grad=False), sorter=order), torch.searchsorted(x.sort(stable=True)[0], random(-1.0, 1.0).to(float))


@autotest(auto_backward=False)
def test_searchsorted_integers():
    seq = random_tensor(ndim=1, dim0=random(1, 6), low=-9, high=9, dtype=int).sort(stable=True)[0]
    return torch.searchsorted(seq, repeated(), right=random_bool()), torch.searchsorted(seq, random_tensor(ndim=1, requires_grad=False))


@autotest(auto_backward=False)
def test_bucketize():
    bounds = random_tensor(ndim=1, dim0=random(1, 6), requires_grad=False).sort(stable=True)[0]
    x = random_tensor(ndim=2, requires_grad=False)
    return torch.bucketize(x, bounds, out_int32=random_bool(), right=random_bool()), torch.bucketize(0.5, bounds), torch.bucketize(x.t(), bounds)


@autotest(auto_backward=False)
def test_isin():
    x, y = repeated(), repeated()
    return torch.isin(x, y, invert=random_bool()), torch.isin(x.t(), 1), torch.isin(2, y, assume_unique=False)


@autotest(auto_backward=False)
def test_isin_floats():
    # PyTorch lacks it for half-precision types
    x = torch.trunc(random_tensor(ndim=2, low=-3, high=3, requires_grad=False)).double()
    return torch.isin(x, x.t()), torch.isin(x, 1.0, invert=random_bool())
