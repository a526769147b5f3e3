"""References over the rows of a matrix."""
import torch
import torch.nn.functional as F


def row_softmax(x):
    return torch.softmax(x, -1)


def row_logsumexp(x):
    return torch.logsumexp(x, -1)


def row_cumsum(x):
    return torch.cumsum(x, -1)


def row_sum(x):
    return x.sum(-1)


def row_var(x):
    return x.var(-1, unbiased=False)


def row_argmax(x):
    return x.argmax(-1)


def row_layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def max_pool3(x):
    return F.max_pool1d(x[:, None], 3, stride=1, padding=1)[:, 0]


def total(x):
    return x.sum().reshape(1)


def add_into(x, y):
    return x + y


def axpy(a, x, y):
    return a * x + y


def group_norm4(x, weight, bias):
    return F.group_norm(x, 4, weight, bias, 1e-5)


def row_amax(x):
    return x.amax(-1)
