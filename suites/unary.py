"""Elementwise functions of one tensor and the activations beyond activation.py.

Inputs keep away from poles; kinks and bounds are hit by the exact zeros and
repeated values that a quarter of the inputs hold.
"""
import torch
from plumb import *


def tensor_of(low, high):
    return random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=low, high=high)


def integers():
    return random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=-9, high=9, dtype=int)


@autotest()
def test_sin():
    return torch.sin(tensor_of(-6, 6))


@autotest()
def test_cos():
    return torch.cos(tensor_of(-6, 6))


@autotest()
def test_tan():
    return torch.tan(tensor_of(-1.4, 1.4))


@autotest()
def test_asin():
    return torch.asin(tensor_of(-1, 1))


@autotest()
def test_acos():
    return torch.acos(tensor_of(-1, 1))


@autotest()
def test_atan():
    return torch.atan(tensor_of(-9, 9))


@autotest()
def test_sinh():
    return torch.sinh(tensor_of(-4, 4))


@autotest()
def test_cosh():
    return torch.cosh(tensor_of(-4, 4))


@autotest()
def test_asinh():
    return torch.asinh(tensor_of(-9, 9))


@autotest()
def test_acosh():
    return torch.acosh(tensor_of(1.01, 9))


@autotest()
def test_atanh():
    return torch.atanh(tensor_of(-0.95, 0.95))


@autotest()
def test_log1p():
    return torch.log1p(tensor_of(-0.9, 9))


@autotest()
def test_log2():
    return torch.log2(tensor_of(0.01, 9))


@autotest()
def test_log10():
    return torch.log10(tensor_of(0.01, 9))


@autotest()
def test_expm1():
    return torch.expm1(tensor_of(-3, 3))


@autotest()
def test_exp2():
    return torch.exp2(tensor_of(-6, 6))


@autotest()
def test_erfc():
    return torch.erfc(tensor_of(-3, 3))


@autotest()
def test_reciprocal():
    return torch.reciprocal(tensor_of(0.2, 5))


@autotest()
def test_rsqrt():
    return torch.rsqrt(tensor_of(0.05, 5))


@autotest()
def test_square():
    return torch.square(tensor_of(-4, 4))


@autotest()
def test_floor():
    return torch.floor(tensor_of(-5, 5))


@autotest()
def test_ceil():
    return torch.ceil(tensor_of(-5, 5))


@autotest()
def test_round():
    return torch.round(tensor_of(-5, 5))


@autotest()
def test_trunc():
    return torch.trunc(tensor_of(-5, 5))


@autotest()
def test_frac():
    return torch.frac(tensor_of(-5, 5))


@autotest()
def test_arcsin():
    return torch.arcsin(tensor_of(-1, 1))


@autotest()
def test_arccos():
    return torch.arccos(tensor_of(-1, 1))


@autotest()
def test_arctan():
    return torch.arctan(tensor_of(-9, 9))


@autotest()
def test_arcsinh():
    return torch.arcsinh(tensor_of(-9, 9))


@autotest()
def test_arccosh():
    return torch.arccosh(tensor_of(1.01, 9))


@autotest()
def test_arctanh():
    return torch.arctanh(tensor_of(-0.95, 0.95))


@autotest()
def test_fix():
    return torch.fix(tensor_of(-5, 5))


@autotest()
def test_special_log1p():
    return torch.special.log1p(tensor_of(-0.9, 9))


@autotest()
def test_special_expm1():
    return torch.special.expm1(tensor_of(-3, 3))


@autotest()
def test_special_exp2():
    return torch.special.exp2(tensor_of(-6, 6))


@autotest()
def test_special_erfc():
    return torch.special.erfc(tensor_of(-3, 3))


@autotest()
def test_special_round():
    return torch.special.round(tensor_of(-5, 5))


@autotest()
def test_sin_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-6, high=6, dtype=torch.float64)
    return x.sin()


@autotest()
def test_acosh_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=1.01, high=9, dtype=torch.float64)
    return x.acosh()


@autotest()
def test_log2_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=0.01, high=9, dtype=torch.float64)
    return x.log2()


@autotest()
def test_rsqrt_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=0.05, high=5, dtype=torch.float64)
    return x.rsqrt()


@autotest()
def test_floor_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-5, high=5, dtype=torch.float64)
    return x.floor()


@autotest()
def test_square_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-4, high=4, dtype=torch.float64)
    return x.square()


@autotest()
def test_frac_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-5, high=5, dtype=torch.float64)
    return x.frac()


@autotest()
def test_arctan_method():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-3, high=3, dtype=torch.float64)
    return x.arctan()


@autotest(auto_backward=False)
def test_sin_integers():
    return torch.sin(integers())


@autotest(auto_backward=False)
def test_atan_integers():
    return torch.atan(integers())


@autotest(auto_backward=False)
def test_sinh_integers():
    return torch.sinh(integers())


@autotest(auto_backward=False)
def test_exp2_integers():
    return torch.exp2(integers())


@autotest(auto_backward=False)
def test_erfc_integers():
    return torch.erfc(integers())


@autotest(auto_backward=False)
def test_square_integers():
    return torch.square(integers())


@autotest(auto_backward=False)
def test_floor_integers():
    return torch.floor(integers())


@autotest(auto_backward=False)
def test_ceil_integers():
    return torch.ceil(integers())


@autotest(auto_backward=False)
def test_round_integers():
    return torch.round(integers())


@autotest(auto_backward=False)
def test_trunc_integers():
    return torch.trunc(integers())


@autotest()
def test_sin_complex():
    return torch.sin(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_cos_complex():
    return torch.cos(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_tan_complex():
    return torch.tan(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_asin_complex():
    return torch.asin(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_acos_complex():
    return torch.acos(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_atan_complex():
    return torch.atan(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_sinh_complex():
    return torch.sinh(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_cosh_complex():
    return torch.cosh(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_asinh_complex():
    return torch.asinh(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_acosh_complex():
    return torch.acosh(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_atanh_complex():
    return torch.atanh(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_log2_complex():
    return torch.log2(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_log10_complex():
    return torch.log10(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_reciprocal_complex():
    return torch.reciprocal(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_rsqrt_complex():
    return torch.rsqrt(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_square_complex():
    return torch.square(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_clamp():
    return torch.clamp(tensor_of(-3, 3), min=random(-2.0, 0.0).to(float) | nothing(), max=random(0.0, 2.0).to(float))


@autotest()
def test_clamp_at_the_bounds():
    # a quarter of the elements are zero
    return torch.clamp(tensor_of(-3, 3), min=0, max=random(0, 3).to(int))


@autotest()
def test_clip_method():
    return tensor_of(-3, 3).clip(random(-2.0, 2.0).to(float))


@autotest()
def test_clamp_min():
    return torch.clamp_min(tensor_of(-3, 3), random(-2.0, 2.0).to(float))


@autotest()
def test_clamp_max_method():
    return tensor_of(-3, 3).clamp_max(random(-2.0, 2.0).to(float))


@autotest(auto_backward=False)
def test_clamp_integers():
    return torch.clamp(integers(), random(-5, 0).to(int), random(0, 5).to(int) | random(0.0, 5.0).to(float))


@autotest()
def test_relu6():
    return torch.nn.functional.relu6(tensor_of(-3, 9))


@autotest()
def test_silu():
    return torch.nn.functional.silu(tensor_of(-6, 6))


@autotest()
def test_mish():
    return torch.nn.functional.mish(tensor_of(-6, 6))


@autotest()
def test_softplus():
    return torch.nn.functional.softplus(tensor_of(-6, 25))


@autotest()
def test_softsign():
    return torch.nn.functional.softsign(tensor_of(-4, 4))


@autotest()
def test_hardtanh():
    return torch.nn.functional.hardtanh(tensor_of(-2, 2))


@autotest()
def test_hardswish():
    # never 3, where PyTorch's gradient is 1 or 1.5 by the element's place
    return torch.nn.functional.hardswish(tensor_of(-5, 5) * 0.9)


@autotest()
def test_hardsigmoid():
    return torch.nn.functional.hardsigmoid(tensor_of(-5, 5))


@autotest()
def test_elu():
    return torch.nn.functional.elu(tensor_of(-3, 3))


@autotest()
def test_celu():
    return torch.nn.functional.celu(tensor_of(-3, 3))


@autotest()
def test_selu():
    return torch.nn.functional.selu(tensor_of(-3, 3))


@autotest()
def test_softshrink():
    return torch.nn.functional.softshrink(tensor_of(-2, 2))


@autotest()
def test_hardshrink():
    return torch.nn.functional.hardshrink(tensor_of(-2, 2))


@autotest()
def test_logsigmoid():
    return torch.nn.functional.logsigmoid(tensor_of(-6, 6))


@autotest()
def test_tanhshrink():
    return torch.nn.functional.tanhshrink(tensor_of(-4, 4))


@autotest()
def test_threshold():
    return torch.nn.functional.threshold(tensor_of(-2, 2), random(-1.0, 1.0).to(float), random(-9.0, 9.0).to(float))


@autotest()
def test_threshold_torch():
    return torch.threshold(tensor_of(-2, 2), 0, random(-9, 9).to(int))


@autotest()
def test_softplus_parameters():
    return torch.nn.functional.softplus(tensor_of(-4, 4), beta=random(0.5, 3.0).to(float), threshold=random(5, 20).to(int))


@autotest()
def test_hardtanh_parameters():
    return torch.nn.functional.hardtanh(tensor_of(-3, 3), random(-2.0, 0.0).to(float), random(0.5, 2.0).to(float))


@autotest(auto_backward=False)
def test_hardtanh_integers():
    return torch.nn.functional.hardtanh(integers(), -3, random(0, 5).to(int))


@autotest()
def test_elu_alpha():
    return torch.nn.functional.elu(tensor_of(-3, 3), alpha=random(0.1, 3.0).to(float))


@autotest()
def test_celu_alpha():
    return torch.celu(tensor_of(-3, 3), alpha=random(0.1, 3.0).to(float))


@autotest()
def test_selu_torch():
    return torch.selu(tensor_of(-3, 3))


@autotest()
def test_softshrink_lambd():
    return torch.nn.functional.softshrink(tensor_of(-2, 2), random(0.0, 1.0).to(float))


@autotest()
def test_hardshrink_lambd():
    return torch.hardshrink(tensor_of(-2, 2), lambd=random(0.0, 1.0).to(float))


@autotest()
def test_hardshrink_method():
    return tensor_of(-2, 2).hardshrink()


@autotest(auto_backward=False)
def test_relu6_integers():
    return torch.nn.functional.relu6(integers())


@autotest()
def test_relu6_module():
    m = torch.nn.ReLU6()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_silu_module():
    m = torch.nn.SiLU()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_mish_module():
    m = torch.nn.Mish()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_softplus_module():
    m = torch.nn.Softplus(beta=random(0.5, 3.0) | nothing(), threshold=random(5, 30) | nothing())
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_softsign_module():
    m = torch.nn.Softsign()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_hardtanh_module():
    m = torch.nn.Hardtanh(min_val=random(-2.0, 0.0) | nothing(), max_val=random(0.5, 3.0) | nothing())
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_hardswish_module():
    m = torch.nn.Hardswish()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4) * 0.9)


@autotest()
def test_hardsigmoid_module():
    m = torch.nn.Hardsigmoid()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_elu_module():
    m = torch.nn.ELU(alpha=random(0.1, 3.0) | nothing())
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_celu_module():
    m = torch.nn.CELU(alpha=random(0.1, 3.0) | nothing())
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_selu_module():
    m = torch.nn.SELU()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_softshrink_module():
    m = torch.nn.Softshrink(lambd=random(0.0, 1.0) | nothing())
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_hardshrink_module():
    m = torch.nn.Hardshrink(lambd=random(0.0, 1.0) | nothing())
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_threshold_module():
    m = torch.nn.Threshold(random(-1.0, 1.0), random(-5.0, 5.0))
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_logsigmoid_module():
    m = torch.nn.LogSigmoid()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_tanhshrink_module():
    m = torch.nn.Tanhshrink()
    m.train(random())
    return m(random_tensor(ndim=random(1, 5), dim0=random(1, 6), low=-4, high=4))


@autotest()
def test_chained():
    x = tensor_of(-2, 2)
    y = torch.nn.functional.silu(torch.sin(x))
    return torch.nn.functional.elu(y) * torch.atan(x) + torch.nn.functional.softplus(y)


@autotest(auto_backward=False)
def test_predicates():
    x = 1 / torch.trunc(tensor_of(-3, 3))
    return torch.isnan(x * 0), torch.isinf(x), torch.isfinite(x), torch.signbit(x), torch.logical_not(x)


@autotest(auto_backward=False)
def test_predicates_integers():
    x = integers()
    return torch.isnan(x), x.isinf(), x.isfinite(), x.signbit(), torch.logical_not(x)


@autotest()
def test_sign():
    x = tensor_of(-6, 6)
    return torch.sign(x), x.sgn()


@autotest()
def test_sgn_complex():
    return torch.sgn(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64))


@autotest()
def test_conj():
    return torch.conj(random_tensor(ndim=2, dim0=random(1, 6), low=-2, high=2, dtype=torch.complex64)) * 2


@autotest()
def test_erf():
    return torch.erf(tensor_of(-3, 3))


@autotest()
def test_identity_module():
    m = torch.nn.Identity()
    m.train(random())
    return m(tensor_of(-3, 3)) * 2
