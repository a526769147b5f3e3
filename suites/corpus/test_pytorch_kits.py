"""
Tests as PyTorch's own suite, and users of parameterized and hypothesis, write them.
"""
import unittest

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from parameterized import parameterized
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCPU, onlyCUDA
from torch.testing._internal.common_dtype import floating_types, integral_types
from torch.testing._internal.common_utils import (
    IS_WINDOWS,
    TestCase,
    instantiate_parametrized_tests,
    make_tensor,
    parametrize,
    run_tests,
    subtest,
)


class TestUnary(TestCase):
    @dtypes(*floating_types())
    def test_relu(self, device, dtype):
        x = make_tensor((3, 4), device=device, dtype=dtype, requires_grad=True)
        y = torch.relu(x)
        self.assertEqual(y, x.clamp(min=0))
        self.assertEqual(y.dtype, dtype)
        y.sum().backward()
        self.assertEqual(x.grad, (x > 0).to(dtype))

    @onlyCPU
    @dtypes(*integral_types())
    def test_sort(self, device, dtype):
        x = torch.tensor([3, 1, 2], device=device, dtype=dtype)
        self.assertEqual(x.sort()[0], [1, 2, 3])
        self.assertEqual(x.sort()[0].tolist(), [1, 2, 3])

    @parametrize("dim", [0, 1, -1])
    def test_cumsum(self, device, dim):
        x = torch.rand(2, 3, device=device)
        self.assertEqual(x.cumsum(dim).select(dim, -1), x.sum(dim), atol=1e-5, rtol=1e-5)

    @onlyCUDA
    def test_other_device(self, device):
        self.fail("there is none")


class TestBinary(TestCase):
    @parametrize("a,b", [(1, 2), subtest((3, 4), name="large")])
    def test_add(self, a, b):
        self.assertEqual(torch.tensor(a) + b, torch.tensor(a + b))
        self.assertEqual(torch.tensor(a) + b, a + b)

    @unittest.skipIf(IS_WINDOWS, "not there")
    def test_structures(self):
        x = make_tensor(2, 3, device="cpu", dtype=torch.float32, low=1, high=2)
        self.assertEqual([x, 1], [x.clone(), 1])
        self.assertEqual({"a": (x, 2.0)}, {"a": (x.clone(), 2.0)})
        self.assertEqual(x.numpy(), x)
        self.assertNotEqual(x, x + 1)


instantiate_device_type_tests(TestUnary, globals())
instantiate_parametrized_tests(TestBinary)


class TestByPosition(unittest.TestCase):
    @parameterized.expand([("ones", 1), ("twos", 2)])
    def test_named(self, name, n):
        y = torch.ones(n, 3) * n
        self.assertEqual(y.sum().item(), 3 * n * n)

    @parameterized.expand([[2], [4, 5]])
    def test_default(self, a, b=3):
        self.assertEqual(torch.arange(float(a * b)).reshape(a, b).shape, (a, b))


@given(n=st.integers(1, 5), p=st.floats(0.5, 2.0))
@settings(max_examples=5, deadline=None)
def test_power(n, p):
    x = torch.arange(1.0, n + 1)
    torch.testing.assert_close(x.pow(p).log(), p * x.log(), rtol=1e-4, atol=1e-4)


@st.composite
def shapes(draw, most=3):
    n = draw(st.integers(1, most))
    return tuple(draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))


@settings(max_examples=5)
@given(shapes(), st.booleans(), st.sampled_from(["sum", "mean"]))
def test_reduce(shape, keep, mode):
    y = getattr(torch.randn(shape), mode)(dim=-1, keepdim=keep)
    assert y.dim() == len(shape) - (0 if keep else 1)
    return y


@given(st.data())
@settings(max_examples=5)
def test_drawn_on_its_way(data):
    n = data.draw(st.integers(min_value=1, max_value=5).filter(lambda v: v % 2 == 0).map(lambda v: v * 2))
    k = data.draw(st.one_of(st.just(1), st.tuples(st.integers(2, 3), st.none()).map(lambda t: t[0])))
    return torch.eye(n) * k


if __name__ == "__main__":
    run_tests()
