"""Operators against numpy, in classes that derive from one of a framework's own."""

import unittest
from itertools import product

import numpy as np
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose, assert_almost_equal, assert_array_equal


def np_softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def np_layer_norm(x, w, b, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    var = ((x - mu) ** 2).mean(-1, keepdims=True)
    return (x - mu) / np.sqrt(var + eps) * w + b


def np_conv2d(x, w, b=None, stride=1, padding=0):
    n, c, h, wd = x.shape
    o, _, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="constant")
    oh, ow = (h + 2 * padding - kh) // stride + 1, (wd + 2 * padding - kw) // stride + 1
    out = np.zeros((n, o, oh, ow), dtype=x.dtype)
    for i, j in product(range(oh), range(ow)):
        patch = x[:, :, i * stride : i * stride + kh, j * stride : j * stride + kw]
        out[:, :, i, j] = np.tensordot(patch, w, axes=([1, 2, 3], [1, 2, 3]))
    return out if b is None else out + b.reshape(1, -1, 1, 1)


def np_max_pool(x, k, s):
    n, c, h, w = x.shape
    oh, ow = (h - k) // s + 1, (w - k) // s + 1
    out = np.empty((n, c, oh, ow), x.dtype)
    for i in range(oh):
        for j in range(ow):
            out[..., i, j] = x[..., i * s : i * s + k, j * s : j * s + k].max(axis=(2, 3))
    return out


def numeric_grad(f, x, eps=1e-6):
    g = np.zeros_like(x)
    it = np.nditer(x, flags=["multi_index"])
    while not it.finished:
        ix = it.multi_index
        old = x[ix]
        x[ix] = old + eps
        hi = f(x)
        x[ix] = old - eps
        lo = f(x)
        x[ix] = old
        g[ix] = (hi - lo) / (2 * eps)
        it.iternext()
    return g


class OpTest(unittest.TestCase):
    op_type = None
    atol = 1e-5

    def setUp(self):
        self.init_dtype()
        self.init_shape()
        np.random.seed(2021)
        self.inputs = {"X": np.random.uniform(0.1, 1, self.shape).astype(self.dtype)}
        self.attrs = {}
        self.init_attrs()

    def init_dtype(self):
        self.dtype = np.float32

    def init_shape(self):
        self.shape = (2, 3, 4)

    def init_attrs(self):
        pass

    def op(self, x):
        raise NotImplementedError

    def ref(self, x):
        raise NotImplementedError

    def check_output(self, rtol=None):
        x = torch.from_numpy(self.inputs["X"])
        assert_allclose(self.op(x).numpy(), self.ref(self.inputs["X"]), rtol=rtol or 1e-5, atol=self.atol)

    def check_grad(self):
        x = torch.tensor(self.inputs["X"], dtype=torch.float64, requires_grad=True)
        self.op(x).sum().backward()
        want = numeric_grad(lambda v: self.ref(v).sum(), self.inputs["X"].astype(np.float64))
        assert_allclose(x.grad.numpy(), want, rtol=1e-4, atol=1e-6)


class TestSoftmax(OpTest):
    op_type = "softmax"

    def op(self, x):
        return F.softmax(x, dim=self.attrs.get("axis", -1))

    def ref(self, x):
        return np_softmax(x, self.attrs.get("axis", -1))

    def test_output(self):
        self.check_output()

    def test_grad(self):
        self.check_grad()


class TestSoftmaxAxis1(TestSoftmax):
    def init_attrs(self):
        self.attrs = {"axis": 1}


class TestSoftmax64(TestSoftmax):
    def init_dtype(self):
        self.dtype = np.float64

    def init_shape(self):
        self.shape = [5, 2]


class TestLogSumExp(OpTest):
    def op(self, x):
        return torch.logsumexp(x, dim=(0, 2), keepdim=True)

    def ref(self, x):
        return np.log(np.sum(np.exp(x), axis=(0, 2), keepdims=True))

    def test_output(self):
        self.check_output()


class TestSwish(OpTest):
    def init_attrs(self):
        self.attrs["beta"] = 2.0

    def op(self, x):
        return x * torch.sigmoid(self.attrs["beta"] * x)

    def ref(self, x):
        return x / (1 + np.exp(-self.attrs["beta"] * x))

    def test_all(self):
        self.check_output()
        self.check_grad()


def create_test_class(parent, name, **attrs):
    cls = type(f"{parent.__name__}_{name}", (parent,), attrs)
    globals()[cls.__name__] = cls
    return cls


class TestConv(unittest.TestCase):
    def setUp(self):
        rng = np.random.RandomState(0)
        self.x = rng.randn(2, 3, 6, 5).astype("float32")
        self.w = rng.randn(4, 3, 3, 3).astype("float32")
        self.b = rng.rand(4).astype("float32")

    def test_conv(self):
        for stride, padding, bias in product((1, 2), (0, 1), (True, False)):
            with self.subTest(stride=stride, padding=padding, bias=bias):
                b = self.b if bias else None
                got = F.conv2d(torch.from_numpy(self.x), torch.from_numpy(self.w), None if b is None else torch.from_numpy(b), stride, padding)
                assert_allclose(got.numpy(), np_conv2d(self.x, self.w, b, stride, padding), rtol=1e-4, atol=1e-4)

    def test_max_pool(self):
        got = F.max_pool2d(torch.as_tensor(self.x), 2, 1)
        assert_array_equal(got.numpy(), np_max_pool(self.x, 2, 1))

    def test_layer_norm(self):
        w, b = np.linspace(0.5, 1.5, 5, dtype=np.float32), np.arange(5, dtype="float32") / 10
        got = F.layer_norm(torch.from_numpy(self.x), (5,), torch.from_numpy(w), torch.from_numpy(b))
        assert_allclose(got.detach().numpy(), np_layer_norm(self.x, w, b), rtol=1e-4, atol=1e-5)

    def test_linear_np_dot(self):
        a, w = self.x.reshape(6, -1)[:, :9], self.w.reshape(4, -1)[:, :9]
        assert_almost_equal(F.linear(torch.from_numpy(a.copy()), torch.from_numpy(np.ascontiguousarray(w))).numpy(), np.dot(a, w.T), decimal=4)


class TestMisc(unittest.TestCase):
    def test_gather_scatter(self):
        x = np.arange(12, dtype=np.int64).reshape(3, 4)
        idx = np.array([[0, 2, 1, 0], [2, 2, 2, 2]])
        got = torch.gather(torch.from_numpy(x), 0, torch.from_numpy(idx))
        assert_array_equal(got.numpy(), np.take_along_axis(x, idx, axis=0))
        out = np.zeros((3, 4), dtype=np.int64)
        np.put_along_axis(out, idx[:1], x[:1], axis=0)
        assert_array_equal(torch.zeros(3, 4, dtype=torch.int64).scatter_(0, torch.from_numpy(idx[:1]), torch.from_numpy(x[:1])).numpy(), out)

    def test_cumsum_and_diff(self):
        x = np.array([[1.5, -2, 3], [0.5, 4, -1]], dtype=np.float32)
        assert_allclose(torch.cumsum(torch.from_numpy(x), 1).numpy(), np.cumsum(x, axis=1), rtol=1e-6)
        assert_allclose(torch.diff(torch.from_numpy(x)).numpy(), np.diff(x))
        assert_allclose(torch.cumprod(torch.from_numpy(x), 0).numpy(), np.cumprod(x, axis=0))

    def test_where_nonzero(self):
        x = np.array([[0, 3], [2, 0]])
        rows, cols = np.nonzero(x)
        assert_array_equal(torch.nonzero(torch.from_numpy(x)).numpy(), np.stack([rows, cols], axis=1))
        assert_array_equal(torch.where(torch.from_numpy(x) > 0, 1, -1).numpy(), np.where(x > 0, 1, -1))

    def test_einsum(self):
        rng = np.random.default_rng(3)
        a, b = rng.standard_normal((2, 3, 4)).astype(np.float32), rng.standard_normal((2, 4, 5), dtype=np.float32)
        got = torch.einsum("bij,bjk->bik", torch.from_numpy(a), torch.from_numpy(b))
        assert_allclose(got.numpy(), np.einsum("bij,bjk->bik", a, b), rtol=1e-4, atol=1e-5)

    def test_matmul_of_stacks(self):
        for a, b in [((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((0, 2, 3), (3, 1))]:
            x = np.arange(np.prod(a), dtype=np.float32).reshape(a) / 7
            y = np.arange(np.prod(b), dtype=np.float32).reshape(b) / 5 - 1
            got = torch.matmul(torch.from_numpy(x), torch.from_numpy(y)).numpy()
            self.assertEqual(got.shape, (x @ y).shape)
            assert_allclose(got, x @ y, rtol=1e-4, atol=1e-4)
        self.assertRaises(ValueError, np.matmul, np.ones((2, 3, 4)), np.ones((3, 4, 2)))

    def test_reductions(self):
        x = np.random.RandomState(1).rand(3, 4, 2).astype("float64")
        t = torch.from_numpy(x)
        for np_f, t_f in [(np.sum, torch.sum), (np.mean, torch.mean), (np.prod, torch.prod), (np.amax, torch.amax), (np.amin, torch.amin)]:
            for axis in (0, 1, -1):
                assert_allclose(t_f(t, axis).numpy(), np_f(x, axis=axis), rtol=1e-10)
        assert_allclose(t.std(dim=1, unbiased=False).numpy(), x.std(axis=1))
        assert_allclose(torch.var(t, 0).numpy(), np.var(x, axis=0, ddof=1))
        assert_array_equal(t.argmax(1).numpy(), x.argmax(axis=1))
        assert_allclose(torch.linalg.norm(t[:, :, 0]).item(), np.linalg.norm(x[:, :, 0]))
        assert_allclose(np.percentile(x[..., 0].ravel(), 50), torch.quantile(t[..., 0].flatten(), 0.5).item())

    def test_sort_and_unique(self):
        x = np.array([3, 1, 2, 1, 3, 3])
        v, c = np.unique(x, return_counts=True)
        u, inv, cnt = torch.unique(torch.from_numpy(x), return_inverse=True, return_counts=True)
        assert_array_equal(u.numpy(), v)
        assert_array_equal(cnt.numpy(), c)
        assert_array_equal(u[inv].numpy(), x)
        assert_array_equal(torch.sort(torch.from_numpy(x), stable=True)[1].numpy(), np.argsort(x, kind="stable"))

    def test_pad_roll_flip(self):
        x = np.arange(6).reshape(2, 3)
        t = torch.from_numpy(x)
        assert_array_equal(torch.roll(t, 1, 1).numpy(), np.roll(x, 1, axis=1))
        assert_array_equal(t.flip(0, 1).numpy(), x[::-1, ::-1])
        assert_array_equal(torch.rot90(t, 1, [0, 1]).numpy(), np.rot90(x))
        assert_array_equal(F.pad(t, (1, 1, 0, 2), value=7).numpy(), np.pad(x, ((0, 2), (1, 1)), constant_values=7))
        assert_array_equal(torch.tile(t, (2, 1)).numpy(), np.tile(x, (2, 1)))
        assert_array_equal(torch.kron(t, torch.ones(1, 2, dtype=torch.int64)).numpy(), np.kron(x, np.ones((1, 2), dtype=np.int64)))
        assert_array_equal(t.repeat_interleave(2, 0).numpy(), np.repeat(x, 2, axis=0))

    def test_dtype_table(self):
        for name in ("float32", "float64", "int32", "int64", "uint8", "bool"):
            a = np.ones((2,), dtype=name)
            t = torch.from_numpy(a)
            self.assertEqual(str(t.dtype), f"torch.{name}")
            self.assertEqual(t.numpy().dtype, np.dtype(name))
        self.assertTrue(np.issubdtype(t.numpy().dtype, np.bool_))

    def test_inplace_shares_memory(self):
        a = np.zeros(3, dtype=np.float32)
        t = torch.from_numpy(a)
        t.add_(1)
        assert_array_equal(t.numpy(), np.ones(3, dtype=np.float32))


create_test_class(TestSoftmax, "Rank4", init_shape=lambda self: setattr(self, "shape", (1, 2, 3, 2)))

if __name__ == "__main__":
    unittest.main(verbosity=2)
