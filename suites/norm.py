"""batch_norm, layer_norm.

Each statistic is taken over at least eight elements: over one or two that are
nearly equal, rounding is all that remains of them.
"""
import torch
from plumb import *


@autotest()
def test_batch_norm2d_module():
    channels = random(1, 6)
    m = torch.nn.BatchNorm2d(
        num_features=channels,
        eps=random(0.00001, 0.001).to(float) | nothing(),
        momentum=random(0.0, 1.0) | nothing(),
        affine=random_bool() | nothing(),
        track_running_stats=random_bool() | nothing(),
    )
    m.train(random())
    x = random_tensor(ndim=4, dim0=random(2, 5), dim1=channels, dim2=random(2, 6), dim3=random(2, 6))
    return m(x)


@autotest()
def test_batch_norm1d_module():
    channels = random(1, 6)
    m = torch.nn.BatchNorm1d(channels)
    m.train(random())
    return m(random_tensor(ndim=2, dim0=random(8, 20), dim1=channels))


@autotest()
def test_batch_norm2d_twice():
    # the second call starts from the statistics that the first left
    channels = random(1, 4)
    m = torch.nn.BatchNorm2d(channels, momentum=random(0.0, 1.0) | nothing())
    x = random_tensor(ndim=4, dim0=random(2, 5), dim1=channels, dim2=random(2, 6), dim3=random(2, 6))
    y = m(x)
    m.eval()
    return y, m(x)


@autotest()
def test_batch_norm_training():
    channels = random(1, 6)
    x = random_tensor(ndim=4, dim0=random(2, 5), dim1=channels, dim2=random(2, 6), dim3=random(2, 6))
    weight = random_tensor(ndim=1, dim0=channels)
    bias = random_tensor(ndim=1, dim0=channels)
    return torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True)


@autotest()
def test_batch_norm_inference():
    # a variance is positive
    channels = random(1, 6)
    x = random_tensor(ndim=random(2, 5), dim0=random(1, 5), dim1=channels)
    mean = random_tensor(ndim=1, dim0=channels, requires_grad=False)
    var = random_tensor(ndim=1, dim0=channels, low=0.2, high=2, requires_grad=False)
    return torch.nn.functional.batch_norm(x, mean, var, training=False, eps=random(0.00001, 0.1) | nothing())


@autotest()
def test_layer_norm_module():
    size = random(8, 20)
    m = torch.nn.LayerNorm(
        normalized_shape=size.to(int),
        eps=random(0.00001, 0.001) | nothing(),
        elementwise_affine=random_bool() | nothing(),
    )
    m.train(random())
    return m(random_tensor(ndim=3, dim0=random(1, 5), dim2=size))


@autotest()
def test_layer_norm_module_shape():
    a, b = random(3, 6).to(int), random(3, 6).to(int)
    m = torch.nn.LayerNorm([a, b])
    return m(random_tensor(ndim=4, dim0=random(1, 5), dim1=random(1, 4), dim2=a, dim3=b))


@autotest()
def test_layer_norm():
    size = random(8, 20).to(int)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=size)
    return torch.nn.functional.layer_norm(x, (size,))


@autotest()
def test_layer_norm_affine():
    size = random(8, 20).to(int)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=size)
    weight = random_tensor(ndim=1, dim0=size)
    bias = random_tensor(ndim=1, dim0=size)
    return torch.nn.functional.layer_norm(x, [size], weight=weight, bias=constant(bias) | nothing(), eps=random(0.00001, 0.001))


@autotest()
def test_layer_norm_of_sum():
    size = random(8, 20).to(int)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=size)
    m = torch.nn.LayerNorm(size)
    return m(x + torch.nn.functional.gelu(x))
