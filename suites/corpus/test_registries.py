"""Registries of classes, state that classes keep, comparisons, and tensors as text."""

import functools
import itertools
import json
from functools import total_ordering

import pytest
import torch
import torch.nn as nn

REGISTRY = {}


def register(name=None):
    def decorate(cls):
        REGISTRY[name or cls.__name__] = cls
        cls.registered = True
        return cls

    return decorate


def counted(cls):
    cls.made = 0
    original = cls.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        cls.made += 1
        original(self, *args, **kwargs)

    cls.__init__ = init
    return cls


@register("twice")
class Doubler(nn.Module):
    def forward(self, x):
        return x * 2


@register()
class Affine(nn.Module):
    def __init__(self, scale=3.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return x * self.scale + 1


@counted
class Account:
    total = 0

    def __init__(self, value):
        self.value = value
        Account.total += value

    @classmethod
    def reset(cls):
        cls.total = 0


@total_ordering
class ByLess:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        if not isinstance(other, ByLess):
            return NotImplemented
        return self.v == other.v

    def __lt__(self, other):
        return self.v < other.v

    def __hash__(self):
        return hash(("v", self.v))


@total_ordering
class ByGreaterEqual:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v

    def __ge__(self, other):
        return self.v >= other.v


def build(name, **kwargs):
    if name not in REGISTRY:
        raise KeyError(f"{name} is none of {sorted(REGISTRY)}")
    return REGISTRY[name](**kwargs)


@pytest.mark.parametrize("name,kwargs,want", [("twice", {}, [0.0, 2.0, 4.0]), ("Affine", {"scale": 0.5}, [1.0, 1.5, 2.0])])
def test_registry(name, kwargs, want):
    y = build(name, **kwargs)(torch.arange(3.0))
    assert y.tolist() == want, f"{name} gave {y}"
    assert REGISTRY[name].registered
    with pytest.raises(KeyError, match="none of"):
        build("thrice")


def test_state_of_a_class():
    made, total = Account.made, Account.total
    Account(1), Account(2)
    assert Account.made == made + 2 and Account.total == total + 3
    Account.total = 3
    Account.extra = torch.full((2,), float(Account.total))
    assert (Account(4).extra + Account.total).tolist() == [10.0, 10.0]
    Account.reset()
    assert Account.total == 0


@pytest.mark.parametrize("C", [ByLess, ByGreaterEqual])
def test_total_ordering(C):
    for a, b in itertools.product(range(3), repeat=2):
        x, y = C(a), C(b)
        assert [x < y, x <= y, x > y, x >= y, x == y, x != y] == [a < b, a <= b, a > b, a >= b, a == b, a != b]
    best = max([C(1), C(3), C(2)]).v
    assert torch.arange(best).sum() == 3


def test_objects_as_keys():
    assert {ByLess(1): "x"}[ByLess(1)] == "x" and len({ByLess(1), ByLess(1), ByLess(2)}) == 2
    assert [ByLess(1)] == [ByLess(1)] and ByLess(2) in [ByLess(1), ByLess(2)] and ByLess(1) != 1
    assert torch.ones(3)[hash(1)] == 1


def test_tensors_as_text():
    x = torch.ones(3)
    assert f"{x}" == "%s" % x == str(x) == "{}".format(x) == "tensor([1., 1., 1.])"
    assert f"{x!r} {x[0]:.1f}" == "tensor([1., 1., 1.]) 1.0" and "%d %s" % (x[0], "a") == "1 a"
    assert "%(v)s" % {"v": x[:1]} == "tensor([1.])" and f"{x.sum():4.1f}" == " 3.0"
    asked = []
    assert x.sum() == 3, asked.append("a message is asked for where the test fails")
    assert asked == []
    with pytest.raises(AssertionError, match="sum 3.0 of tensor"):
        assert x.sum() == 4, f"sum {x.sum()} of {x}"


MISTAKES = {
    "ValueError": [lambda: float("a"), lambda: int("3.5"), lambda: [1].index(5), lambda: [1].remove(9), lambda: max([]), lambda: "a".index("b")],
    "TypeError": [
        lambda: None + 1,
        lambda: "a" + 1,
        lambda: len(3),
        lambda: 1 < "a",
        lambda: iter(3),
        lambda: {[1]: 2},
        lambda: 3(),
        lambda: (lambda x: x)(),
        lambda: (lambda x: x)(y=1),
    ],
    "IndexError": [lambda: [1][3], lambda: "abc"[9], lambda: (1, 2)[5], lambda: [].pop()],
    "KeyError": [lambda: {}["k"], lambda: {}.pop("x"), lambda: set().pop()],
    "ZeroDivisionError": [lambda: 1 / 0, lambda: 1 // 0, lambda: 1 % 0],
    "AttributeError": [lambda: (1).foo],
    "StopIteration": [lambda: next(iter([]))],
    "RuntimeError": [lambda: torch.ones(2) @ torch.ones(3)],
}


def test_classes_of_mistakes():
    seen = {}
    for name, calls in MISTAKES.items():
        for call in calls:
            try:
                call()
            except Exception as e:
                seen.setdefault(type(e).__name__, []).append(e.__class__.__name__ == name)
    assert {name: len(all_) for name, all_ in seen.items() if all(all_)} == {name: len(calls) for name, calls in MISTAKES.items()}
    with pytest.raises(ValueError):
        torch.full((2,), float("none"))
    assert torch.ones(2).sum() == 2


class Config:
    dim = 4


class Base:
    def test_inherited(self):
        assert torch.ones(self.n).sum() == self.n


def _own(self):
    assert torch.zeros(self.n).sum() == 0


TestMade = type("TestMade", (Base,), {"n": 3, "test_own": _own})


class Seq:
    def __init__(self, *xs):
        self.xs = xs

    def __len__(self):
        return len(self.xs)

    def __getitem__(self, i):
        return self.xs[i]


def test_patched_class(monkeypatch):
    monkeypatch.setattr(Config, "dim", 7)
    assert torch.ones(Config.dim).sum() == 7
    setattr(Config, "extra", 2)
    assert Config.extra == 2


def test_json():
    text = json.dumps({"é": 'a\n\x01\x7f😀"\\/', "n": [1, 2.5, None, True], "nan": float("nan")}, sort_keys=True)
    assert text == '{"n": [1, 2.5, null, true], "nan": NaN, "\\u00e9": "a\\n\\u0001\\u007f\\ud83d\\ude00\\"\\\\/"}'
    assert json.dumps({"a": [1, {}], "b": []}, indent=2) == '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}'
    with pytest.raises(TypeError):
        json.dumps({"x": torch.ones(1)})


def test_sequences():
    assert torch.tensor(Seq(1.0, 2.0)).sum() == 3


def test_optimizers():
    w = nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([w], lr=0.1)
    assert isinstance(opt, torch.optim.Optimizer)
