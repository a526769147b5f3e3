"""relu, leaky_relu, gelu, sigmoid, tanh, softmax, log_softmax.

Inputs are drawn from ranges in which the function bends; a quarter of them
hold exact zeros and repeated values, where the kinks are.
"""
import torch
from plumb import *


def tensor_of(low, high):
    return random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=low, high=high)


@autotest()
def test_relu():
    return torch.relu(tensor_of(-1, 1))


@autotest()
def test_relu_functional():
    return torch.nn.functional.relu(tensor_of(-3, 3))


@autotest()
def test_relu_method():
    x = random_tensor(ndim=3, dtype=torch.float64)
    return x.relu()


@autotest()
def test_relu_module():
    m = torch.nn.ReLU()
    m.train(random())
    x = random_tensor(ndim=random(1, 5))
    return m(x)


@autotest()
def test_leaky_relu():
    x = tensor_of(-2, 2)
    return torch.nn.functional.leaky_relu(x, negative_slope=random(0.0, 0.5).to(float) | nothing())


@autotest()
def test_leaky_relu_module():
    m = torch.nn.LeakyReLU(negative_slope=random(0.01, 0.9) | nothing())
    m.train(random())
    x = random_tensor(ndim=random(1, 5), dim0=random(1, 6))
    return m(x)


@autotest()
def test_gelu():
    # the interesting part of the curve lies between -3 and 3
    return torch.nn.functional.gelu(tensor_of(-3, 3))


@autotest()
def test_gelu_tanh():
    return torch.nn.functional.gelu(tensor_of(-3, 3), approximate="tanh")


@autotest()
def test_gelu_module():
    m = torch.nn.GELU(approximate=oneof("none", "tanh") | nothing())
    x = random_tensor(ndim=random(1, 4), dim0=random(1, 6), low=-4, high=4)
    return m(x)


@autotest()
def test_sigmoid():
    return torch.sigmoid(tensor_of(-6, 6))


@autotest()
def test_sigmoid_method():
    return random_tensor(ndim=2, dim0=random(1, 8), low=-2, high=2, dtype=torch.float64).sigmoid()


@autotest()
def test_sigmoid_module():
    m = torch.nn.Sigmoid()
    return m(random_tensor(ndim=random(1, 5)))


@autotest()
def test_tanh():
    return torch.tanh(tensor_of(-4, 4))


@autotest()
def test_tanh_method():
    return tensor_of(-1, 1).tanh()


@autotest()
def test_tanh_module():
    m = torch.nn.Tanh()
    return m(random_tensor(ndim=random(1, 5)))


@autotest()
def test_softmax():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 8), low=-3, high=3)
    return torch.softmax(x, dim=random(-ndim, ndim))


@autotest()
def test_softmax_functional():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 8))
    return torch.nn.functional.softmax(x, dim=random(0, ndim))


@autotest()
def test_softmax_module():
    m = torch.nn.Softmax(dim=random(-2, 2))
    m.train(random())
    return m(random_tensor(ndim=random(2, 5), dim0=random(1, 8)))


@autotest()
def test_log_softmax():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 8), low=-3, high=3)
    return torch.nn.functional.log_softmax(x, dim=random(-ndim, ndim))


@autotest()
def test_log_softmax_method():
    x = random_tensor(ndim=2, dim0=random(1, 8), dim1=random(2, 40))
    return x.log_softmax(dim=oneof(0, 1, -1, -2))


@autotest()
def test_log_softmax_module():
    m = torch.nn.LogSoftmax(dim=random(-2, 2))
    return m(random_tensor(ndim=random(2, 5), dim0=random(1, 8)))


@autotest()
def test_activations_chained():
    x = tensor_of(-2, 2)
    y = torch.nn.functional.leaky_relu(torch.tanh(x), 0.2)
    return torch.nn.functional.gelu(y) * torch.sigmoid(x)
