"""Indexing by tensors, lists and masks, beside ints, slices, None and an ellipsis."""
import torch
from plumb import *


def rows(n):
    # numbers of a dimension of 3 entries or more, from either end
    return random_tensor(ndim=1, dim0=n, low=-3, high=3, dtype=int)


def volume():
    return random_tensor(ndim=3, dim0=random(3, 6), dim1=random(3, 6), dim2=random(3, 6))


@autotest()
def test_getitem_index():
    x = volume()
    return x[rows(6).reshape(2, 3)], x[:, rows(random(0, 4))]


@autotest()
def test_getitem_two_indices():
    x = volume()
    i, j = rows(4), rows(2).unsqueeze(1)
    return x[i, i], x[i, :, j], x[..., i, j], x[:, i, 1]


@autotest()
def test_getitem_new_dimensions():
    x = volume()
    i = rows(random(1, 5))
    return x[None, i], x[i, None, 1:], x[i, 1], x[..., i]


@autotest()
def test_getitem_lists():
    x = volume()
    return x[[0, -1, 2, 0]], x[:, [1, 2]], x[..., [0], 1:]


@autotest()
def test_getitem_mask():
    x = volume()
    return x[x > 0], x[x[:, 0, 0] > 0], x[:, x[0] > 0]


@autotest()
def test_getitem_complex():
    x = random_tensor(ndim=2, dim0=4, dim1=3, dtype=torch.complex64)
    return x[rows(5)]


@autotest(auto_backward=False)
def test_getitem_integers():
    x = random_tensor(ndim=2, dim0=4, dim1=3, low=-9, high=9, dtype=torch.int64)
    return x[rows(5)], x[x > 0]


@autotest(auto_backward=False)
def test_getitem_outside():
    x = volume()
    return x[rows(3) + oneof(0, 2, 0, -1)]


@autotest()
def test_getitem_bool():
    x = volume()
    return torch.cat([x[True], x[False], x[None]]), x[:, True, 0], x[True, True, 1:], x[True, rows(4)], x[rows(4), :, True]


@autotest()
def test_setitem_bool():
    x, y = volume() * 2, volume() * 2
    x[1:][True] = random_tensor(ndim=0).to(torch.float64)
    x[False] = random_tensor(ndim=1, dim0=7)
    y[1, True, 0] = random_tensor(ndim=0)
    y[False, 2] = 1.5
    view = y[2:]
    view[True, :, 1] = random_tensor(ndim=0)
    return x, y


@autotest(refusals=True)
def test_setitem_bool_of_another_dtype():
    x = volume() * 2
    x[1:][oneof(True, (True, 0))] = random_tensor(ndim=0).to(torch.float64)
    return x
