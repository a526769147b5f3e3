"""Modules that hold modules."""
import torch
from plumb import *


def batch(n, features):
    return random_tensor(ndim=2, dim0=n, dim1=features)


@autotest()
def test_sequential():
    n, i, h, o = random(2, 6), random(1, 6), random(1, 6), random(1, 6)
    first = torch.nn.Linear(i, h, bias=random_bool() | nothing())
    inner = torch.nn.Sequential(oneof(torch.nn.ReLU(), torch.nn.Tanh()), torch.nn.BatchNorm1d(h))
    m = torch.nn.Sequential(first, inner, torch.nn.Linear(h, o))
    m.train(random())
    return m(batch(n, i))


@autotest()
def test_sequential_with_a_module_twice():
    n, i = random(1, 6), random(1, 6)
    m = torch.nn.Linear(i, i)
    return torch.nn.Sequential(m, torch.nn.Tanh(), m)(batch(n, i))


@autotest()
def test_module_list():
    n, i, h = random(1, 6), random(1, 6), random(1, 6)
    first, second = torch.nn.Linear(i, h), torch.nn.Linear(h, i)
    torch.nn.ModuleList([first, second])
    return second(first(batch(n, i)))
