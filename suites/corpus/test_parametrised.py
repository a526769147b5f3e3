"""
Parametrised tests: pytest.mark.parametrize, subTest, GenArgList, itertools.
Licensed under the Apache License, Version 2.0.
"""
import itertools
import unittest
from collections import OrderedDict

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from plumb import *
from oneflow.test_utils.test_util import GenArgDict, GenArgList

SHAPES = [(2, 3), (4,), (1, 5, 2)]
UNARY = [torch.exp, torch.tanh, torch.sigmoid, torch.abs]
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "elu": F.elu}


@pytest.mark.parametrize("shape", SHAPES)
def test_exp_of_shapes(shape):
    x = torch.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    np.testing.assert_allclose(torch.exp(x).numpy(), np.exp(x.numpy()), rtol=1e-5)


@pytest.mark.parametrize("dim,keepdim", [(0, True), (1, False), (-1, True)])
def test_sum_of_dims(dim, keepdim):
    x = torch.arange(12.0).reshape(3, 4)
    y = x.sum(dim, keepdim=keepdim)
    assert y.numel() == 12 // x.shape[dim]
    torch.testing.assert_close(y, torch.from_numpy(x.numpy().sum(axis=dim, keepdims=keepdim)))


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "elu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_activation_by_name(name, dtype):
    x = torch.linspace(-2, 2, 9, dtype=dtype, requires_grad=True)
    y = ACTIVATIONS[name](x)
    assert y.dtype == dtype
    y.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("p", [1, 2, pytest.param(3, id="three")])
def test_norm_of_p(p):
    x = torch.tensor([3.0, -4.0])
    assert abs(x.norm(p).item() - (3 ** p + 4 ** p) ** (1 / p)) < 1e-4


@pytest.mark.skip(reason="needs a GPU")
def test_cuda_only():
    assert torch.ones(1, device="cuda").is_cuda


@pytest.mark.parametrize("kernel_size", [1, 3])
@autotest(n=2)
def test_conv_of_kernel_sizes(kernel_size):
    m = torch.nn.Conv1d(2, 3, kernel_size)
    return m(random_tensor(ndim=3, dim0=2, dim1=2, dim2=6))


@pytest.fixture
def batch():
    return torch.arange(6.0).reshape(2, 3)


def test_with_fixture(batch):
    assert batch.mean().item() == 2.5


class TestParametrised(unittest.TestCase):
    tolerance = 1e-5

    @classmethod
    def setUpClass(cls):
        cls.shapes = [(2, 2), (3, 1)]

    def setUp(self):
        self.scale = 2.0

    def tearDown(self):
        self.scale = None

    def test_subtests(self):
        for shape in self.shapes:
            with self.subTest(shape=shape):
                x = torch.ones(shape) * self.scale
                self.assertEqual(x.sum().item(), 2.0 * np.prod(shape))

    def test_product_of_lists(self):
        for reduction, shape in itertools.product(["none", "mean", "sum"], SHAPES):
            x, y = torch.zeros(shape), torch.ones(shape)
            loss = F.mse_loss(x, y, reduction=reduction)
            expected = {"none": 1.0, "mean": 1.0, "sum": float(np.prod(shape))}[reduction]
            self.assertAlmostEqual(loss.max().item(), expected)

    def test_gen_arg_dict(self):
        arg_dict = OrderedDict()
        arg_dict["in_features"] = [1, 3]
        arg_dict["out_features"] = [2]
        arg_dict["bias"] = [True, False]
        for arg in GenArgDict(arg_dict):
            m = torch.nn.Linear(**arg)
            self.assertEqual(m(torch.ones(4, arg["in_features"])).shape, torch.Size([4, 2]))

    def test_devices_of_driver(self):
        arg_dict = OrderedDict()
        arg_dict["device"] = ["cpu", "cuda"]
        arg_dict["shape"] = SHAPES
        for device, shape in GenArgList(arg_dict):
            x = torch.ones(shape, device=device)
            self.assertTrue((x.cpu().numpy() == 1).all())

    @autotest(n=3)
    def test_unary_of_list(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return [f(x) for f in UNARY]

    @autotest(n=3)
    def test_one_of_functions(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        f = oneof(torch.sin, torch.cos, torch.tan)
        return f(x)

    @autotest(n=3)
    def test_drawn_number_of_calls(self):
        x = random_tensor(ndim=2, dim0=3, dim1=3)
        for _ in range(random(1, 5).to(int).value()):
            x = torch.tanh(x @ x)
        return x

    @autotest(n=3)
    def test_drawn_number_of_inputs(self):
        xs = [random_tensor(ndim=2, dim0=2, dim1=random(1, 4)) for _ in range(random(1, 4).to(int).value())]
        return torch.cat(xs, dim=1)

    @autotest(n=3)
    def test_dict_of_results(self):
        x = random_tensor(ndim=1, dim0=5)
        return {name: f(x) for name, f in ACTIVATIONS.items()}

    @autotest(n=2)
    def test_nested_results(self):
        x = random_tensor(ndim=1, dim0=5)
        return {"a": [x.exp(), (x.sin(), {"b": x.cos()})], "n": 3}

    @unittest.skip("a known problem")
    @autotest(n=2)
    def test_skipped(self):
        return random_tensor().no_such_method()

    @unittest.skipIf(True, "never")
    def test_skipped_if(self):
        raise AssertionError("not reached")

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_skipped_unless(self):
        self.assertTrue(torch.ones(1).cuda().is_cuda)

    @autotest(n=2)
    def test_helper_with_lambda(self):
        x = random_tensor(ndim=1, dim0=4)
        compose = lambda *fs: (lambda t: [t := f(t) for f in fs][-1])
        return compose(torch.sin, torch.exp)(x)

    def helper(self, x, *, scale=1.0):
        return x * scale * self.scale

    @autotest(n=2)
    def test_method_helper(self):
        return self.helper(random_tensor(ndim=1, dim0=3), scale=0.5)

    def test_asserts_of_unittest(self):
        x = torch.tensor([1.0, 2.0])
        self.assertEqual(x.tolist(), [1.0, 2.0])
        self.assertIn(2.0, x.tolist())
        self.assertIsInstance(x, torch.Tensor)
        self.assertGreater(x.sum().item(), 2)
        self.assertLessEqual(x.min(), 1)
        self.assertNotEqual(x.dtype, torch.float64)
        self.assertTrue(torch.allclose(x, x + 1e-9))
        self.assertSequenceEqual(list(x.shape), [2])
        self.assertCountEqual(x.tolist(), [2.0, 1.0])


if __name__ == "__main__":
    unittest.main()
