"""Bases called by name, parameters that several modules share, and how they are copied and saved."""

import copy
import functools
import unittest

import torch
from torch import nn


class A(nn.Module):
    def __init__(self, n):
        nn.Module.__init__(self)
        self.l = nn.Linear(n, 2)

    def forward(self, x):
        return self.l(x)


class B(A):
    def __init__(self, n):
        A.__init__(self, n)
        self.m = nn.Linear(2, 2)

    def forward(self, x):
        return self.m(A.forward(self, x))


class C(nn.Linear):
    def __init__(self, n):
        nn.Linear.__init__(self, n, 3)

    def forward(self, x):
        return nn.Linear.forward(self, x) + 1


class E(ValueError):
    def __init__(self, m, code):
        ValueError.__init__(self, m)
        self.code = code


class P:
    pass


class Q(P):
    def __init__(self):
        P.__init__(self)
        object.__init__(self)
        self.x = 1


class D(dict):
    def __init__(self, **kw):
        dict.__init__(self, **kw)


class S(nn.Sequential):
    def __init__(self, n):
        nn.Sequential.__init__(self, nn.Linear(n, 2), nn.ReLU())


class TestBases(unittest.TestCase):
    def setUp(self):
        unittest.TestCase.setUp(self)
        self.x = torch.ones(2, 4)

    def test_module(self):
        A(4)(self.x)

    def test_own_base(self):
        B(4)(self.x)

    def test_linear(self):
        C(4)(self.x)

    def test_exception(self):
        with self.assertRaises(E) as cm:
            raise E("no", 3)
        self.assertEqual(cm.exception.code, 3)
        self.assertEqual(str(cm.exception), "no")

    def test_object(self):
        self.assertEqual(Q().x, 1)

    def test_dict(self):
        self.assertEqual(D(a=1)["a"], 1)

    def test_sequential(self):
        S(4)(self.x)

    @property
    def width(self):
        return self.x.shape[1]

    def test_property_of_case(self):
        self.assertEqual(self.width, 4)

    def test_functions_of_classes(self):
        l = nn.Linear(4, 2)
        y = nn.Linear.forward(l, self.x)
        unittest.TestCase.assertEqual(self, y.shape, (2, 2))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(5, 3)
        self.o = nn.Linear(3, 5, bias=False)
        self.o.weight = self.e.weight

    def forward(self, x):
        return self.o(self.e(x))


def test_tied_is_one():
    m = Tied()
    assert m.o.weight is m.e.weight


def test_tied_is_listed_once():
    m = Tied()
    assert len(list(m.parameters())) == 1
    assert [n for n, _ in m.named_parameters()] == ["e.weight"]


def test_tied_is_saved_twice():
    m = Tied()
    assert list(m.state_dict()) == ["e.weight", "o.weight"]


def test_copy_is_tied():
    m = Tied()
    t = copy.deepcopy(m)
    assert t.o.weight is t.e.weight
    assert t.o.weight is not m.e.weight


def test_attribute_is_itself():
    m = Tied()
    assert m.e.weight is m.e.weight
    p = dict(m.named_parameters())
    assert p["e.weight"] is m.e.weight


def test_tied_layers():
    l = nn.Linear(3, 3)
    k = nn.Linear(3, 3)
    k.weight = l.weight
    assert k.weight is l.weight
    assert id(k.weight) == id(l.weight)
    assert k.weight.data_ptr() == l.weight.data_ptr()
    s = nn.Sequential(l, nn.ReLU(), k)
    assert len(list(s.parameters())) == 3
    opt = torch.optim.SGD(s.parameters(), lr=0.1)
    x = torch.ones(2, 3)
    s(x).sum().backward()
    opt.step()
    assert s[0].weight is s[2].weight


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 3))
        self.l = nn.Linear(3, 2)
        self.l.weight = self.w
        self.alias = self.l
        self.register_buffer("b", torch.zeros(2))

    def forward(self, x):
        return self.l(x) + x @ self.w.t() + self.b


def test_shared_with_parameter():
    m = Shared()
    assert [n for n, _ in m.named_parameters()] == ["w", "l.bias"]
    assert list(m.state_dict()) == ["w", "b", "l.weight", "l.bias", "alias.weight", "alias.bias"]
    t = copy.deepcopy(m)
    assert [n for n, _ in t.named_parameters()] == ["w", "l.bias"]
    assert t.l.weight is t.w
    t.w.data.zero_()
    x = torch.ones(2, 3)
    assert not torch.equal(t(x), m(x))
    assert torch.equal(t(x), m.l.bias.expand(2, 2))
    t.load_state_dict(m.state_dict())
    torch.testing.assert_close(t(x), m(x))
    t(x).sum().backward()
    assert t.w.grad is not None and m.w.grad is None


def test_module_twice():
    m = nn.Linear(2, 2)

    class P(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.zeros(3))
            self.s = nn.Sequential(m, m)

    p = P()
    q = copy.deepcopy(p)
    assert isinstance(q.a, nn.Parameter)
    assert len(list(q.parameters())) == 3
    assert q.s[0] is q.s[1]
    assert len(p.state_dict()) == 5


def test_places_in_memory():
    x = torch.arange(6.0)
    y = x.view(3, 2)
    assert x.data_ptr() == y.data_ptr()
    assert y[1].data_ptr() != x.data_ptr()
    assert y[1].storage().data_ptr() == x.storage().data_ptr()
    assert x.clone().data_ptr() != x.data_ptr()
    assert x.add_(1).data_ptr() == x.data_ptr()
    assert torch.as_tensor(x) is x


class Narrow(torch.distributions.Normal):
    def twice(self):
        return 2 * self.loc


def test_derived_distribution():
    d = Narrow(torch.zeros(2), torch.ones(2))
    assert isinstance(d, torch.distributions.Normal)
    assert d.twice().sum() == 0
    assert d.log_prob(torch.as_tensor([0.5, 1.0])).shape == (2,)


def test_schedule_of_partial():
    def rate(step, warmup):
        return min(1.0, (step + 1) / warmup)

    m = nn.Linear(3, 2)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, functools.partial(rate, warmup=4))
    for _ in range(3):
        opt.zero_grad()
        m(torch.ones(2, 3)).sum().backward()
        opt.step()
        schedule.step()
    assert abs(schedule.get_last_lr()[0] - 0.1) < 1e-6
