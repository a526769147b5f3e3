"""Elementwise functions of two tensors beyond arithmetic.py.

Divisors keep away from zero, and quotients of rounded numbers may be integers:
where a rounding difference would jump, operands are multiples of a quarter.
"""
import torch
from plumb import *


def pair(low=-4, high=4):
    # dimensions may be 1 on either side
    a, b, c = random(1, 6), random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=a, dim1=b | constant(1), dim2=c, low=low, high=high)
    y = random_tensor(ndim=3, dim0=a | constant(1), dim1=b, dim2=c, low=low, high=high)
    return x, y


def flat(low=-4, high=4):
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=low, high=high)
    y = random_tensor(ndim=2, dim0=a, dim1=b, low=low, high=high)
    return x, y


def integers(low=-9, high=9):
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=low, high=high, dtype=int)
    y = random_tensor(ndim=1, dim0=b, low=low, high=high, dtype=int)
    return x, y


def divisors():
    # quarters, never zero
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=-40, high=40, dtype=int)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b, low=1, high=9, dtype=int)
    return x / 4, y / 4


@autotest()
def test_minimum():
    x, y = pair()
    return torch.minimum(x, y)


@autotest()
def test_minimum_method():
    x, y = flat()
    return x.minimum(y), torch.min(x, y), x.min(y)


@autotest(auto_backward=False)
def test_minimum_integers():
    x, y = integers()
    return torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y), torch.minimum(x > 0, y > 0)


@autotest()
def test_fmax():
    x, y = pair()
    return torch.fmax(x, y), x.fmax(y)


@autotest()
def test_fmin():
    x, y = pair()
    return torch.fmin(x, y), x.fmin(y)


@autotest(auto_backward=False)
def test_extrema_of_nan():
    x, y = flat()
    x, y = x / torch.trunc(x) * 0, y / torch.trunc(y)
    return torch.fmax(x, y), torch.fmin(x, y), torch.minimum(x, y), torch.maximum(x, y)


@autotest()
def test_fmod():
    x, _ = pair()
    return torch.fmod(x, random_tensor(ndim=1, dim0=1, low=0.5, high=3))


@autotest()
def test_fmod_scalar():
    return random_tensor(ndim=random(0, 4), dim0=random(1, 5), low=-9, high=9).fmod(random(0.5, 3.0).to(float))


@autotest()
def test_remainder():
    x, _ = pair()
    return torch.remainder(x, random_tensor(ndim=1, dim0=1, low=0.5, high=3))


@autotest()
def test_remainder_method():
    x = random_tensor(ndim=random(0, 4), dim0=random(1, 5), low=-9, high=9)
    return x.remainder(random(-3.0, -0.5).to(float)), x % 2.5


@autotest(auto_backward=False)
def test_remainder_of_scalar():
    y = random_tensor(ndim=random(0, 4), dim0=random(1, 5), low=0.5, high=3)
    return torch.remainder(random(1, 9).to(int), y), 7 % y


@autotest(auto_backward=False)
def test_remainder_integers():
    x, y = integers(1, 9)
    x = x - 5
    return torch.fmod(x, y), torch.remainder(x, -y), x % 3, -7 % y, x // y, torch.fmod(x, -3), x % 2.5


@autotest(auto_backward=False)
def test_floor_divide():
    x, y = divisors()
    return torch.floor_divide(x, y), x.floor_divide(-y), x // y, x // 2, 9 // y


@autotest(auto_backward=False)
def test_div_rounding_modes():
    x, y = divisors()
    return torch.div(x, y, rounding_mode="trunc"), x.div(-y, rounding_mode="floor"), torch.divide(x, y, rounding_mode=None)


@autotest()
def test_true_divide():
    x, y = pair(0.5, 4)
    return torch.true_divide(x, y), x.true_divide(3), torch.divide(2, y)


@autotest()
def test_rsub():
    x, y = pair()
    return torch.rsub(x, y), torch.rsub(x, random(-3, 4).to(float), alpha=random(-3, 4).to(int) | nothing())


@autotest()
def test_atan2():
    x, y = pair(0.2, 4)
    return torch.atan2(x, y)


@autotest()
def test_atan2_quadrants():
    x, y = flat(0.2, 3)
    return x.atan2(-y), torch.arctan2(-x, y), x.arctan2(y) * torch.atan2(-x, -y)


@autotest(auto_backward=False)
def test_atan2_integers():
    x, y = integers()
    return torch.atan2(x, y), torch.xlogy(x, y.abs()), torch.copysign(x, y)


@autotest()
def test_hypot():
    x, y = pair(0.2, 4)
    return torch.hypot(x, y), x.hypot(-y)


@autotest()
def test_logaddexp():
    x, y = pair()
    return torch.logaddexp(x, y)


@autotest()
def test_logaddexp2():
    x, y = pair()
    return torch.logaddexp2(x, y), x.logaddexp(y), x.logaddexp2(y)


@autotest()
def test_xlogy():
    x, y = pair(0.3, 3)
    return torch.xlogy(x, y), x.xlogy(2), torch.xlogy(1.5, y), torch.special.xlogy(-x, y)


@autotest()
def test_xlogy_zero():
    x, y = flat(-2, 2)
    return torch.xlogy(x, y.abs() + 0.5)


@autotest()
def test_xlog1py():
    x, y = pair(0.3, 3)
    return torch.special.xlog1py(x, y), torch.special.xlog1py(x, 2), torch.special.xlog1py(1.5, y)


@autotest()
def test_copysign():
    x, y = pair()
    return torch.copysign(x, y), x.copysign(random(-2, 3).to(int))


@autotest()
def test_float_power():
    x, y = pair(0.3, 2)
    return torch.float_power(x, y), x.float_power(random(-2, 4).to(int)), torch.float_power(2, y)


@autotest(auto_backward=False)
def test_float_power_integers():
    x, y = integers(1, 5)
    return torch.float_power(x, y), x.float_power(2)


@autotest(auto_backward=False)
def test_heaviside():
    x, y = flat()
    return torch.heaviside(x, y), x.heaviside(torch.trunc(y)), torch.heaviside(x * 0, y)


@autotest(auto_backward=False)
def test_nextafter():
    x, y = flat()
    return torch.nextafter(x, y), y.nextafter(x)


@autotest(auto_backward=False)
def test_gcd():
    x, y = integers(-60, 60)
    return torch.gcd(x, y), x.gcd(y)


@autotest(auto_backward=False)
def test_lcm():
    x, y = integers(-60, 60)
    return torch.lcm(x, y), x.lcm(y)


@autotest(auto_backward=False)
def test_comparison_names():
    x, y = pair()
    return (torch.not_equal(x, y), torch.greater(x, y), torch.greater_equal(x, y), torch.less(x, y),
            torch.less_equal(x, y), x.not_equal(0), x.greater(0), x.greater_equal(0), x.less(0), x.less_equal(0))


@autotest()
def test_binary_chained():
    x, y = flat(0.5, 2)
    return torch.atan2(torch.minimum(x, y), torch.hypot(x, y)) + torch.logaddexp(x, torch.copysign(y, x))
