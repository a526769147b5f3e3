"""Special functions, and the numeric cleaning of one tensor.

Inputs keep away from poles; near a zero of a function that PyTorch computes by
a difference, its digits are few.
"""
import torch
from plumb import *


def tensor_of(low, high):
    return random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=low, high=high)


def integers(low=1, high=9):
    return random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=low, high=high, dtype=int)


def with_infinities():
    x = tensor_of(-3, 3)
    return x / torch.trunc(x)


@autotest()
def test_lgamma():
    return torch.lgamma(tensor_of(2.5, 20)), tensor_of(0.1, 0.8).lgamma()


@autotest()
def test_lgamma_negative():
    return torch.special.gammaln(tensor_of(-1.9, -1.1))


@autotest()
def test_digamma():
    return torch.digamma(tensor_of(2, 20)), tensor_of(0.2, 1).digamma()


@autotest()
def test_digamma_negative():
    return torch.special.psi(tensor_of(-1.9, -1.7)), torch.special.digamma(tensor_of(-2.4, -2.1))


@autotest()
def test_polygamma():
    return torch.polygamma(random(0, 5).to(int), tensor_of(2, 9))


@autotest()
def test_polygamma_method():
    return tensor_of(2, 9).polygamma(random(1, 4).to(int)), torch.special.polygamma(2, tensor_of(0.5, 2))


@autotest(auto_backward=False)
def test_zeta():
    a = random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=3, low=1.5, high=9)
    y = random_tensor(ndim=2, dim0=a, dim1=1, low=0.3, high=9)
    return torch.special.zeta(x, y), torch.special.zeta(3, y), torch.special.zeta(x, 2)


@autotest()
def test_zeta_of_number():
    return torch.special.zeta(random(2, 6).to(int), tensor_of(0.5, 9))


@autotest()
def test_erfinv():
    return torch.erfinv(tensor_of(-0.95, 0.95)), tensor_of(-0.5, 0.5).erfinv(), torch.special.erfinv(tensor_of(0.8, 0.98))


@autotest()
def test_i0():
    return torch.i0(tensor_of(-9, 9)), tensor_of(-2, 2).i0(), torch.special.i0(tensor_of(8, 20))


@autotest()
def test_i0e():
    return torch.special.i0e(tensor_of(-9, 9)), torch.special.i0e(tensor_of(20, 90))


@autotest()
def test_i1():
    return torch.special.i1(tensor_of(-9, 9)), torch.special.i1(tensor_of(8, 20))


@autotest()
def test_i1e():
    return torch.special.i1e(tensor_of(-9, 9)), torch.special.i1e(tensor_of(20, 90))


@autotest()
def test_sinc():
    return torch.sinc(tensor_of(-0.9, 0.9)), tensor_of(1.1, 1.9).sinc(), torch.special.sinc(tensor_of(-0.5, 0.5))


@autotest()
def test_sinc_complex():
    return torch.sinc(random_tensor(ndim=1, dim0=random(1, 6), low=0.1, high=0.8, dtype=torch.complex64))


@autotest()
def test_logit():
    return torch.logit(tensor_of(0.05, 0.95)), tensor_of(0.6, 0.9).logit(), torch.special.logit(tensor_of(0.1, 0.4))


@autotest()
def test_logit_eps():
    return torch.logit(tensor_of(-0.5, 1.5), eps=random(0.05, 0.3)), torch.logit(tensor_of(-0.5, 1.5), 0.125)


@autotest()
def test_nan_to_num():
    return torch.nan_to_num(tensor_of(-3, 3)), tensor_of(-3, 3).nan_to_num(1.0)


@autotest(auto_backward=False)
def test_nan_to_num_infinities():
    x = with_infinities()
    return torch.nan_to_num(x), torch.nan_to_num(x, nan=random(-3.0, 3.0), posinf=random(2.0, 9.0) | nothing(), neginf=random(-9.0, -2.0) | nothing())


@autotest(auto_backward=False)
def test_nan_to_num_integers():
    x = integers()
    return torch.nan_to_num(x), (x > 3).nan_to_num(), torch.nan_to_num(x * 0.5 / (x - 1))


@autotest()
def test_deg2rad():
    return torch.deg2rad(tensor_of(-360, 360)), tensor_of(-360, 360).deg2rad()


@autotest()
def test_rad2deg():
    return torch.rad2deg(tensor_of(-6, 6)), tensor_of(-6, 6).rad2deg()


@autotest()
def test_round_decimals():
    return torch.round(tensor_of(-90, 90), decimals=random(-2, 4).to(int)), torch.special.round(tensor_of(-9, 9), decimals=1)


@autotest()
def test_round_decimals_method():
    return tensor_of(-900, 900).round(decimals=random(-3, 3).to(int))


@autotest()
def test_ldexp():
    a = random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=3, low=-4, high=4)
    y = random_tensor(ndim=2, dim0=a, dim1=1, low=-4, high=4)
    return torch.ldexp(x, y), x.ldexp(random_tensor(ndim=1, dim0=3, low=-9, high=9, dtype=int))


@autotest(auto_backward=False)
def test_special_integers():
    x = integers()
    return (torch.lgamma(x), torch.digamma(x), torch.polygamma(1, x), torch.erfinv(x > 9), torch.i0(x), torch.logit(x < 0, 0.2),
            torch.deg2rad(x), torch.rad2deg(x), torch.ldexp(x, x), torch.special.entr(x), torch.special.ndtr(x))


@autotest()
def test_entr():
    return torch.special.entr(tensor_of(0.1, 3))


@autotest(auto_backward=False)
def test_entr_negative():
    return torch.special.entr(tensor_of(-3, 3))


@autotest()
def test_ndtr():
    return torch.special.ndtr(tensor_of(-3, 3)), torch.special.ndtr(tensor_of(0, 9))


@autotest()
def test_ldexp_complex():
    z = random_tensor(ndim=1, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64)
    return torch.ldexp(z, z.abs()), torch.ldexp(random_tensor(ndim=0, low=0.5, high=2, dtype=torch.complex64), z)
