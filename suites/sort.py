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
