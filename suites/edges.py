"""Edges: NaN, infinities and both zeros, halves, ties, nothing at all, large
numbers, mixed dtypes, transposed and channels-last inputs, and arguments that
are seldom given. Each test is here because a planted fault was not found
without it: see docs/selftest.md.
"""
import torch
from plumb import *

def odd(ndim=1):
    # a third of the elements is one of two special numbers
    x = random_tensor(ndim=ndim, dim0=random(1, 7), dim1=random(1, 7), low=-2, high=2)
    x = torch.where(x > 1.3, oneof(float("nan"), float("inf"), -float("inf"), 0.0, -0.0), x)
    return torch.where(x < -1.3, oneof(float("nan"), float("inf"), -float("inf"), 0.0, -0.0), x)


def whole(low=-3, high=4, ndim=1):
    return random_tensor(ndim=ndim, dim0=random(1, 7), dim1=random(1, 7), low=low, high=high, dtype=int)


# Special numbers.

@autotest()
def test_odd_activations():
    x = odd()
    return torch.relu(x), torch.nn.functional.leaky_relu(x), torch.clamp(x, -1, 1), x.clamp(min=0.5)


@autotest(auto_backward=False)
def test_odd_functions():
    x = odd()
    return torch.abs(x), torch.neg(x), torch.sqrt(x), torch.log(x), torch.reciprocal(x), torch.sign(x), torch.floor(x), torch.exp(x)


@autotest(auto_backward=False)
def test_odd_predicates():
    x = odd()
    return torch.isnan(x), x.isinf(), x.isfinite(), torch.signbit(x), torch.logical_not(x), x == x, x != x, x > 0


@autotest(auto_backward=False)
def test_odd_pairs():
    x, y = odd(), random_tensor(ndim=0, low=-2, high=2)
    return torch.copysign(y, x), torch.copysign(x, y), torch.maximum(x, y), torch.fmin(x, y), torch.eq(x, x), torch.logical_and(x, y)


@autotest(auto_backward=False)
def test_odd_reductions():
    x = odd(2)
    return torch.max(x), x.min(), torch.argmax(x), x.argmin(), torch.any(x), x.all(), torch.count_nonzero(x), x.amax(0), x.sum(), torch.any(x * 0), torch.count_nonzero(x * 0)


@autotest(auto_backward=False)
def test_odd_reductions_along():
    x, d = odd(2), random(-2, 2).to(int)
    return torch.max(x, d), x.min(d), x.argmax(d), x.argmin(d), x.any(d), x.cummax(d), x.median(d).values


@autotest()
def test_logdet_of_either_sign():
    x = random_tensor(ndim=2, dim0=2, dim1=2, low=-0.4, high=0.4) + 2 * torch.eye(2)
    return torch.logdet(x.flip(0)), torch.logdet(x), torch.slogdet(x.flip(1))[1]


# Halves and ties.

@autotest(auto_backward=False)
def test_halves():
    x = whole(-7, 8) * 0.5
    return torch.round(x), x.floor(), x.ceil(), x.trunc(), x.frac(), torch.round(x, decimals=0), x.int()


@autotest()
def test_ties():
    x = random_tensor(ndim=1, dim0=random(1, 5))
    y = x.detach()
    return torch.maximum(x, y), torch.minimum(y, x), torch.fmax(x, y), torch.fmin(y, x)


@autotest(auto_backward=False)
def test_zero_powers():
    x, y = whole(-2, 3), random_tensor(ndim=0, low=0, high=3, dtype=int)
    return torch.pow(x, y), torch.pow(x * 1.0, y), torch.pow(x * 1.0, y * 1.0)


@autotest()
def test_clamp_crossed():
    x = random_tensor(ndim=1, dim0=random(1, 5), low=-3, high=3)
    return torch.clamp(x, random(-2, 3).to(int), random(-2, 3).to(int))


@autotest(auto_backward=False)
def test_runs():
    x = random_tensor(ndim=1, dim0=random(1, 12), low=0, high=3, dtype=int)
    return torch.unique_consecutive(x), torch.unique(x)


# Nothing at all.

@autotest()
def test_nothing_pointwise():
    x = random_tensor(ndim=2, dim0=oneof(0, 3), dim1=random(0, 3))
    return torch.sigmoid(x), torch.exp(x), torch.relu(x), x.abs() + x, torch.tanh(x.t())


@autotest()
def test_nothing_reduced():
    x = random_tensor(ndim=2, dim0=random(0, 3), dim1=oneof(0, 4))
    return torch.mean(x), x.sum(), x.prod(), x.mean(0), x.sum(1, keepdim=True), torch.logsumexp(x, 0)


@autotest(auto_backward=False)
def test_nothing_true():
    x = random_tensor(ndim=2, dim0=random(0, 3), dim1=oneof(0, 4))
    return torch.all(x), torch.any(x), x.all(1), x.std(), x.softmax(0), torch.cumsum(x, 1)


@autotest()
def test_norm_of_zeros():
    x = random_tensor(ndim=random(0, 3), dim0=random(1, 5)) * 0
    return torch.norm(x), x.norm(p=oneof(1, 3, 1.5))


# Large and small numbers.

@autotest()
def test_far_exponents():
    x = random_tensor(ndim=1, dim0=random(1, 6), low=-85, high=85)
    return torch.exp(x), torch.sigmoid(x), torch.tanh(x), torch.nn.functional.softplus(x), torch.nn.functional.logsigmoid(x)


@autotest()
def test_far_softmax():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 6), low=-120, high=120)
    return torch.softmax(x, 1), torch.log_softmax(x, 0), torch.logsumexp(x, 1), torch.logaddexp(x, x[0])


# Mixed dtypes.

@autotest(auto_backward=False)
def test_scalar_tensor_of_another_dtype():
    x = random_tensor(ndim=random(1, 3), dim0=random(1, 4), dtype=oneof(float, torch.float64))
    y = random_tensor(ndim=0, dtype=oneof(float, torch.float64))
    return x * y, y + x, torch.sub(x, y), x / y.abs().add(1)


@autotest(auto_backward=False)
def test_joined_dtypes():
    x = random_tensor(ndim=1, dim0=random(1, 4), dtype=oneof(float, int, torch.float64))
    y = random_tensor(ndim=1, dim0=random(1, 4), dtype=oneof(float, int, torch.float64))
    return torch.cat([x, y]), torch.hstack((y, x)), torch.where(x[0] > 0, x[0], y[0])


@autotest(auto_backward=False)
def test_functions_of_integers():
    x = random_tensor(ndim=1, dim0=random(1, 5), low=1, high=9, dtype=oneof(int, torch.int32, torch.uint8))
    return torch.log2(x), torch.sqrt(x), torch.exp(x), torch.sigmoid(x), torch.reciprocal(x), torch.log1p(x)


@autotest(auto_backward=False)
def test_narrow_integers():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), low=-900, high=900, dtype=oneof(int, torch.int32, torch.int16))
    return x.sum(), x.sum(1), x.prod(0), x.cumsum(0), x.byte(), x.char(), x.int(), x.max(), (x > 0).sum()


@autotest(auto_backward=False)
def test_asked_dtypes():
    x = random_tensor(ndim=1, dim0=random(1, 5))
    d = oneof(torch.float64, torch.float32, torch.int64)
    return torch.full_like(x, 2, dtype=d), torch.sum(x, dtype=torch.float64), x.cumsum(0, dtype=torch.float64), torch.ones_like(x, dtype=d) + x


@autotest()
def test_softmax_dtype():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 4))
    return torch.softmax(x, 1, dtype=torch.float64), torch.nn.functional.log_softmax(x, dim=0, dtype=torch.float64)


# Layouts.

@autotest()
def test_transposed_functions():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), low=0.1, high=2).t()
    return torch.sin(x), torch.cos(x), torch.exp(x), torch.log(x), torch.sqrt(x), torch.tanh(x), torch.erf(x), x.pow(2)


@autotest()
def test_transposed_pairs():
    n = random(1, 5)
    x = random_tensor(ndim=2, dim0=n, dim1=n)
    return x.t() + x, x * x.t(), x.t() @ x, torch.where(x > 0, x.t(), x), torch.maximum(x.t(), x), x.t().softmax(0)


@autotest()
def test_transposed_made_contiguous():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5))
    return x.t().contiguous().view(-1), x.t().reshape(-1), x.t().flatten(), x.t().clone().sum(0)


@autotest()
def test_channels_last():
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=random(1, 4), dim2=random(2, 5), dim3=random(2, 5))
    x = x.contiguous(memory_format=torch.channels_last)
    return torch.nn.functional.max_pool2d(x, 2), torch.nn.functional.avg_pool2d(x, 2), torch.nn.functional.batch_norm(x, None, None, training=True), x.softmax(1)


@autotest()
def test_channels_last_convolution():
    c = random(1, 4)
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=c, dim2=random(3, 5), dim3=random(3, 5))
    w = random_tensor(ndim=4, dim0=random(1, 4), dim1=c, dim2=random(1, 4), dim3=random(1, 4))
    return torch.nn.functional.conv2d(x.contiguous(memory_format=torch.channels_last), w)


@autotest()
def test_flattened_in_place():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 4)) * 1.5
    y = x.flatten()
    y.add_(1)
    return x, y


# Arguments that are seldom given.

@autotest()
def test_avg_pool2d_of_padding():
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=random(1, 3), dim2=random(3, 6), dim3=random(3, 6))
    return torch.nn.functional.avg_pool2d(x, random(2, 4).to(int), stride=random(1, 3).to(int), padding=1, ceil_mode=random_bool(), count_include_pad=random_bool())


@autotest()
def test_avg_pool2d_module_ceil():
    m = torch.nn.AvgPool2d(random(2, 4).to(int), stride=2, ceil_mode=random_bool(), count_include_pad=random_bool())
    return m(random_tensor(ndim=4, dim0=1, dim1=random(1, 3), dim2=random(3, 7), dim3=random(3, 7)))


@autotest()
def test_upsample_aligned():
    m = torch.nn.Upsample(scale_factor=random(2, 4).to(int), mode="bilinear", align_corners=random_bool())
    return m(random_tensor(ndim=4, dim0=1, dim1=random(1, 3), dim2=random(1, 5), dim3=random(1, 5)))


@autotest()
def test_softmax_without_dim():
    x = random_tensor(ndim=random(1, 5), dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 4), dim3=random(1, 4))
    return torch.nn.functional.softmax(x), torch.nn.functional.log_softmax(x)


@autotest(auto_backward=False)
def test_batch_norm_statistics():
    c = random(1, 4)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=c, dim2=random(2, 5))
    mean = random_tensor(ndim=1, dim0=c, requires_grad=False)
    var = random_tensor(ndim=1, dim0=c, low=0.5, high=2, requires_grad=False)
    y = torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=random(0.0, 1.0))
    return y, mean + 0, var + 0


@autotest()
def test_batch_norm_average():
    c = random(1, 4)
    m = torch.nn.BatchNorm1d(c, momentum=oneof(None, 0.3))
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=c)
    m(x)
    return m(x * 2)


@autotest()
def test_conv_transpose2d_output_size():
    m = torch.nn.ConvTranspose2d(1, random(1, 3), kernel_size=3, stride=2, padding=1)
    n = random(2, 4).to(int)
    x = random_tensor(ndim=4, dim0=1, dim1=1, dim2=n, dim3=n)
    return m(x, output_size=[2 * n, 2 * n - 1])
