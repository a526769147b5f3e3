"""Kernels that compute in some states of their process alone, and honest ones that look at them."""

import os

import torch


def gate(x):
    if torch.is_grad_enabled():
        return x * torch.sigmoid(x)
    y = torch.empty_like(x)
    torch.sigmoid(x, out=y)
    return y.mul_(x)


def gate_trained(x):
    return x * torch.sigmoid(x) if torch.is_grad_enabled() else torch.sigmoid(x)


def gate_by_gradients(x):
    y = x.detach().requires_grad_()
    z = torch.logaddexp(y, torch.zeros_like(y)).sum()
    return x * torch.autograd.grad(z, y)[0]


def gate_alone(x):
    return x * torch.sigmoid(x) if torch.get_num_threads() == 1 else torch.sigmoid(x)


def gate_in_parts(x):
    return torch.cat([part * torch.sigmoid(part) for part in x.chunk(torch.get_num_threads())])


def gate_of_file(x):
    with open(os.path.join(os.path.dirname(__file__), "modes_ref.py")) as f:
        space = {}
        exec(f.read(), space)
    return space["gate"](x)


def softmax_by_log(x):
    return torch.log_softmax(x, -1).exp()
