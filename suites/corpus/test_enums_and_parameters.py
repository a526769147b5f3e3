"""Enumerations of strings and integers, and tensors that are made outside of tests as their parameters."""

import enum
import unittest
from enum import Enum, IntEnum

import pytest
import torch
import torch.nn.functional as F
from parameterized import parameterized


class Reduction(str, Enum):
    NONE = "none"
    MEAN = "mean"

    @classmethod
    def default(cls):
        return cls.MEAN

    @property
    def short(self):
        return self.value[:2]


class Level(int, Enum):
    LOW = 1
    HIGH = 3


class Axis(IntEnum):
    ROW = 0
    COL = 1


class Flag(enum.Enum):
    A = enum.auto()
    B = enum.auto()


def test_str_enum():
    m = Reduction("mean")
    assert m is Reduction.MEAN and m == "mean" and "mean" == m and m != "sum"
    assert m.value == "mean" and m.name == "MEAN" and m.short == "me"
    assert m in ("mean", "sum") and Reduction.default() is m
    assert isinstance(m, str) and isinstance(m, Reduction)
    assert m.upper() == "MEAN" and m.startswith("me") and len(m) == 4
    assert {"mean": 1}[m] == 1 and {m: 2}[m] == 2
    x, t = torch.randn(3, 4), torch.tensor([0, 1, 3])
    assert F.cross_entropy(x, t, reduction=m).dim() == 0
    assert F.cross_entropy(x, t, reduction=Reduction.NONE).shape == (3,)
    assert [r.value for r in Reduction] == ["none", "mean"]
    assert m == Reduction["MEAN"] and m != Reduction.NONE
    assert "a-" + m == "a-mean"
    try:
        Reduction("sum")
    except ValueError as e:
        assert "'sum' is not a valid Reduction" in str(e)
    else:
        raise AssertionError


def test_int_enum():
    assert Level.HIGH + 1 == 4 and Level(3) is Level.HIGH and Level.LOW < 2
    assert Level.HIGH.value == 3 and Level.HIGH.name == "HIGH"
    assert Axis.COL.value == 1 and Axis.COL.name == "COL" and Axis(0) == Axis.ROW
    x = torch.arange(6.0).view(2, 3)
    assert x.sum(Axis.COL).tolist() == [3.0, 12.0]
    assert x.sum(dim=Level.LOW).tolist() == [3.0, 12.0]
    assert [0, 1, 2][Axis.COL] == 1
    assert list(Axis) == [0, 1] and len(Axis) == 2
    assert Flag.A.value == 1 and Flag.B != Flag.A and Flag.A != 1


class Other:
    pass


def test_members_are_of_their_classes():
    assert isinstance(Flag.A, Flag) and isinstance(Flag.A, enum.Enum) and isinstance(Axis.COL, Enum) and isinstance(Axis.COL, IntEnum)
    assert not isinstance(Flag.A, Other) and not isinstance(Flag.A, (int, str)) and not isinstance(Reduction.MEAN, Other)
    assert isinstance(Level.LOW, int) and not isinstance(Level.LOW, str)


CASES = [[{"a": torch.tensor([1.0, 2.0])}, torch.ones(2)], [{"a": torch.zeros(3)}, torch.ones(3)]]


@pytest.mark.parametrize("x", [torch.ones(2), torch.zeros(3)])
def test_a(x):
    assert x.shape[0] in (2, 3)
    assert (x + 1).shape == x.shape


class TestX(unittest.TestCase):
    @parameterized.expand(CASES)
    def test_b(self, d, y):
        assert (d["a"] + y).shape == y.shape

    @parameterized.expand([[torch.ones(2)], [torch.zeros(3)]])
    def test_c(self, y):
        z = y * 2
        assert z.shape == y.shape
        if z.sum() > 0:
            assert z.max() == 2


class Base:
    def check(self, x):
        y = x * 2
        if y.shape != x.shape:
            raise AssertionError(f"different shape ({y.shape})")
        return y


class TestY(unittest.TestCase):
    @parameterized.expand([[{"n": 1}, {"x": torch.ones(2, 1)}, 2.0]])
    def test_d(self, p, data, want):
        r = Base().check(**data)
        self.assertEqual(r.shape[0], 2)


def square(z):
    return (z * z.conj()).real


def test_gradients_of_complex_inputs():
    z = torch.tensor([1.0 + 2.0j, -0.5j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(square, (z,))
    assert torch.autograd.gradcheck(lambda t: t * t, (z,))
    assert torch.autograd.gradcheck(torch.abs, (z,))
