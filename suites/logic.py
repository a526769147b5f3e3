"""Logical and bitwise operators, shifts, and closeness. Results that are Python
bools count like tensors."""
import torch
from plumb import *


def pair():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b)
    return x, y


def integers(low=-9, high=9):
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=low, high=high, dtype=int)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b, low=low, high=high, dtype=int)
    return x, y


@autotest(auto_backward=False)
def test_logical():
    x, y = pair()
    return torch.logical_and(x, y), torch.logical_or(x, y), torch.logical_xor(x, y)


@autotest(auto_backward=False)
def test_logical_methods():
    x, y = integers(-1, 2)
    return x.logical_and(y), x.logical_or(y), x.logical_xor(y), x.logical_and(y / 2), (x > 0).logical_or(y)


@autotest(auto_backward=False)
def test_bitwise():
    x, y = integers()
    return torch.bitwise_and(x, y), torch.bitwise_or(x, y), torch.bitwise_xor(x, y), torch.bitwise_not(x)


@autotest(auto_backward=False)
def test_bitwise_methods():
    x, y = integers()
    return x.bitwise_and(3), x.bitwise_or(y), x.bitwise_xor(random(-9, 9).to(int)), x.bitwise_not()


@autotest(auto_backward=False)
def test_bitwise_operators():
    x, y = integers()
    return x & y, x | y, x ^ y, ~x, x & 6, 5 | x, 3 ^ y


@autotest(auto_backward=False)
def test_bitwise_bool():
    x, y = pair()
    p, q = x > 0, y < 0.5
    return p & q, p | q, p ^ q, ~p, torch.bitwise_and(p, True), torch.bitwise_xor(p, q)


@autotest(auto_backward=False)
def test_bitwise_bytes():
    a = random(1, 9)
    x = random_tensor(ndim=1, dim0=a, low=0, high=100, dtype=torch.uint8)
    y = random_tensor(ndim=1, dim0=a, low=-99, high=99, dtype=torch.int8)
    return ~x, ~y, x & y, x | 129, x ^ x, x << 3, y >> 2, x >> 1


@autotest(auto_backward=False)
def test_shifts():
    x, y = integers(0, 9)
    return torch.bitwise_left_shift(x, y), torch.bitwise_right_shift(x * 97, y), x << y, (x * 97) >> 2, 5 << y


@autotest(auto_backward=False)
def test_shift_methods():
    x, y = integers(0, 9)
    return (-x).bitwise_left_shift(y), (-x).bitwise_right_shift(2)


@autotest(auto_backward=False)
def test_isclose():
    x, y = pair()
    return torch.isclose(x, y, rtol=random(0.0, 1.0) | nothing(), atol=random(0.0, 0.5) | nothing()), x.isclose(x)


@autotest(auto_backward=False)
def test_isclose_nan():
    x, y = pair()
    x, y = x / torch.trunc(x), y / torch.trunc(y)
    return torch.isclose(x, y, equal_nan=random_bool()), torch.isclose(x, x, equal_nan=True)


@autotest(auto_backward=False)
def test_isclose_integers():
    x, y = integers()
    return torch.isclose(x, y, 0.5, 0.25), x.isclose(y), torch.isclose(x, y, atol=0.0, rtol=0.0)


@autotest(auto_backward=False)
def test_allclose():
    x, y = pair()
    return torch.allclose(x, y, rtol=random(0.0, 3.0), atol=random(0.0, 4.0)), x.allclose(x + 0.0001, atol=0.1)


@autotest(auto_backward=False)
def test_equal():
    x, y = pair()
    return torch.equal(x, y), x.equal(x), torch.equal(x, x + 0), torch.equal(x > 9, x > 8)


@autotest(auto_backward=False)
def test_equal_integers():
    x, y = integers(0, 2)
    return x.equal(y), torch.equal(x, x * 1)


@autotest(auto_backward=False)
def test_infinities():
    x, _ = pair()
    x = x / torch.trunc(x)
    return torch.isposinf(x), x.isneginf(), torch.isreal(x), torch.isposinf(x > 0)


@autotest(auto_backward=False)
def test_isreal_complex():
    z = random_tensor(ndim=1, dim0=random(1, 6), dtype=torch.complex64)
    return torch.isreal(z), z.isreal(), torch.logical_and(z, z), torch.equal(z, z), torch.isclose(z, z)


@autotest(auto_backward=False)
def test_comparisons():
    x, y = integers(-2, 3)
    return torch.eq(x, y), x.ne(y), torch.ge(x, 1), x == y, x != 1, x >= y


@autotest(auto_backward=False)
def test_comparisons_reversed():
    x, y = integers(-2, 3)
    return 1 == x, 1 != x, 1 >= x, 1 <= y, 1 > y, 1 < y
