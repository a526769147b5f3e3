"""add, sub, mul, div, neg, abs, pow, exp, log, sqrt, where.

Two tensors broadcast where a test draws "d | 1" for a dimension. Domains are
named where they matter: what a function does outside is a test of its own.
"""
import torch
from plumb import *


def pair(low=None, high=None):
    # same shape
    ndim = random(0, 5)
    a, b, c, d = random(1, 6), random(1, 6), random(1, 6), random(1, 6)
    x = random_tensor(ndim=ndim, dim0=a, dim1=b, dim2=c, dim3=d)
    y = random_tensor(ndim=ndim, dim0=a, dim1=b, dim2=c, dim3=d, low=low, high=high)
    return x, y


def broadcast_pair(low=None, high=None):
    # any dimension may be 1 on one side or both
    a, b, c = random(1, 6), random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=a | constant(1), dim1=b | constant(1), dim2=c)
    y = random_tensor(ndim=3, dim0=a | constant(1), dim1=b, dim2=c | constant(1), low=low, high=high)
    return x, y


@autotest()
def test_add():
    x, y = pair()
    return torch.add(x, y)


@autotest()
def test_add_alpha():
    x, y = pair()
    return torch.add(x, y, alpha=random(-3, 4).to(float) | nothing())


@autotest()
def test_add_broadcast():
    x, y = broadcast_pair()
    return x + y


@autotest()
def test_add_fewer_dimensions():
    b, c = random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=random(1, 6), dim1=b, dim2=c)
    return x + random_tensor(ndim=1, dim0=c) + random_tensor(ndim=0)


@autotest()
def test_add_scalar():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6))
    return 2 + x + random(-2, 3).to(float)


@autotest(auto_backward=False)
def test_add_int():
    a = random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dtype=int)
    y = random_tensor(ndim=1, dim0=1, dtype=int)
    return x + y, x - y, x * y


@autotest()
def test_sub():
    x, y = pair()
    return torch.sub(x, y, alpha=random(1, 4).to(int) | nothing())


@autotest()
def test_sub_broadcast():
    x, y = broadcast_pair()
    return x - y


@autotest()
def test_sub_scalar():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6))
    return 1 - x, x - 0.5


@autotest()
def test_mul():
    x, y = pair(-2, 2)
    return torch.mul(x, y)


@autotest()
def test_mul_broadcast():
    x, y = broadcast_pair()
    return x * y


@autotest()
def test_mul_method():
    x, y = pair()
    return x.mul(y) * 3


@autotest()
def test_mul_double():
    a = random(1, 8)
    x = random_tensor(ndim=2, dim0=a, dim1=4, dtype=torch.float64)
    y = random_tensor(ndim=2, dim0=a, dim1=1, dtype=torch.float64)
    return x * y


@autotest()
def test_div():
    # away from zero: near it a rounding difference of y is a difference without bound
    x, y = pair(0.5, 3)
    return torch.div(x, y)


@autotest()
def test_div_broadcast():
    x, y = broadcast_pair(-3, -0.5)
    return x / y


@autotest()
def test_div_scalar():
    x = random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=0.5, high=2)
    return 1 / x, x / random(2, 5).to(float)


@autotest(auto_backward=False)
def test_div_rounding_mode():
    x, y = pair(0.5, 3)
    return torch.div(x, y, rounding_mode=oneof("floor", "trunc"))


@autotest()
def test_neg():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6))
    return -x


@autotest()
def test_neg_function():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6))
    return torch.neg(x) + x.neg()


@autotest()
def test_abs():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6))
    return torch.abs(x)


@autotest()
def test_abs_method():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=-5, high=5)
    return x.abs() * abs(x)


@autotest(auto_backward=False)
def test_abs_int():
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), dtype=int)
    return torch.abs(x), -x


@autotest()
def test_pow_scalar():
    # a positive base has a power for every exponent
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=0.2, high=2)
    return torch.pow(x, random(-2, 4).to(float))


@autotest()
def test_pow_integer_exponent():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=-2, high=2)
    return x ** random(2, 5).to(int)


@autotest()
def test_pow_tensor():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b, low=0.2, high=2)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b, low=-2, high=3)
    return x ** y


@autotest()
def test_pow_of_scalar():
    y = random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=-2, high=2)
    return torch.pow(random(1, 4).to(float), y)


@autotest()
def test_exp():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=-5, high=5)
    return torch.exp(x)


@autotest()
def test_exp_method():
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), dtype=torch.float64)
    return x.exp()


@autotest()
def test_log():
    # positive numbers; log has no value at zero and below
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=0.05, high=5)
    return torch.log(x)


@autotest()
def test_log_method():
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), low=0.5, high=1.5)
    return x.log()


@autotest()
def test_sqrt():
    # positive numbers; the slope at zero is infinite
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=0.05, high=4)
    return torch.sqrt(x)


@autotest()
def test_sqrt_method():
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), low=0.5, high=1.5, dtype=torch.float64)
    return x.sqrt()


@autotest()
def test_where():
    x, y = pair()
    return torch.where(x > 0, x, y)


@autotest()
def test_where_broadcast():
    a, b = random(1, 6), random(1, 6)
    condition = random_tensor(ndim=2, dim0=a, dim1=b | constant(1), dtype=torch.bool)
    x = random_tensor(ndim=2, dim0=a | constant(1), dim1=b)
    y = random_tensor(ndim=1, dim0=b | constant(1))
    return torch.where(condition, x, y)


@autotest()
def test_where_method():
    x, y = pair()
    return x.where(x <= y, y)


@autotest(auto_backward=False)
def test_foreach():
    x, y = pair()
    xs, ys = [x, x * x], [y, x - y]
    k = oneof(2, -1.5, 0)
    return (*torch._foreach_add(xs, k), *torch._foreach_add(xs, ys, alpha=k), *torch._foreach_mul(xs, k), *torch._foreach_mul(xs, ys))


@autotest()
def test_arithmetic_chained():
    x, y = pair(0.5, 2)
    z = (x - y) * 2 / (x.abs() + y) + x ** 2
    return torch.log(torch.exp(z) + 1)


@autotest()
def test_one_value_used_often():
    # its gradient is the sum over all uses
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), low=0.1, high=2)
    return x * x + x / (x + 1) - torch.sqrt(x)
