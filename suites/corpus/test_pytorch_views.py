"""Views and shapes, in the way of PyTorch's own tests."""

import random
import unittest
from functools import partial
from itertools import combinations, permutations, product, count

import numpy as np
import torch
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCPU, onlyNativeDeviceTypes, skipMeta, skipLazy, skipXLA
from torch.testing._internal.common_dtype import all_types_and, all_types_and_complex_and, complex_types, floating_and_complex_types_and
from torch.testing._internal.common_utils import (
    gradcheck,
    gradgradcheck,
    IS_FBCODE,
    numpy_to_torch_dtype_dict,
    run_tests,
    suppress_warnings,
    TestCase,
    parametrize,
    subtest,
)


def _generate_input(shape, dtype, device, with_extremal):
    if shape == ():
        x = torch.tensor((), dtype=dtype, device=device)
    else:
        if dtype.is_floating_point or dtype.is_complex:
            if dtype == torch.bfloat16:
                x = torch.randn(*shape, device=device) * random.randint(30, 100)
                x = x.to(torch.bfloat16)
            else:
                x = torch.randn(*shape, dtype=dtype, device=device) * random.randint(30, 100)
            x[torch.randn(*shape) > 0.5] = 0
            if with_extremal and dtype.is_floating_point:
                x[torch.randn(*shape) > 0.5] = float("nan")
                x[torch.randn(*shape) > 0.5] = float("inf")
                x[torch.randn(*shape) > 0.5] = float("-inf")
        elif dtype == torch.bool:
            x = torch.zeros(shape, dtype=dtype, device=device)
            x[torch.randn(*shape) > 0.5] = True
        else:
            x = torch.randint(15, 100, shape, dtype=dtype, device=device)
    return x


def _rand_shape(dim, min_size, max_size):
    shape = []
    for i in range(dim):
        shape.append(random.randint(min_size, max_size))
    return tuple(shape)


class TestViewOps(TestCase):
    exact_dtype = True

    def is_view_of(self, base, other):
        if not other._is_view() or other is base or other._base is not base or base.device != other.device:
            return False
        return True

    @dtypes(*all_types_and_complex_and(torch.half, torch.bool))
    def test_conj_self(self, device, dtype):
        t = torch.ones(5, 5, device=device)
        s = t.conj()
        self.assertTrue(s is t)

    @onlyNativeDeviceTypes
    @dtypes(*all_types_and_complex_and(torch.bfloat16))
    def test_view_as_real_and_dtype(self, device, dtype):
        t = make_tensor((3, 4), dtype=dtype, device=device)
        if dtype.is_complex:
            r = torch.view_as_real(t)
            self.assertEqual(r.shape, (3, 4, 2))
            self.assertEqual(r[..., 0], t.real)
            self.assertEqual(r[..., 1], t.imag)
        else:
            self.assertRaises((RuntimeError, TypeError), lambda: torch.view_as_real(t))

    def test_diagonal_view(self, device):
        t = torch.ones((5, 5), device=device)
        v = torch.diagonal(t)
        v[0] = 0
        self.assertEqual(t[0, 0], v[0])
        t = torch.ones((3, 3, 3), device=device)
        v = torch.diagonal(t, offset=1, dim1=1, dim2=2)
        v[0, 0] = 0
        self.assertEqual(t[0, 0, 1], v[0, 0])

    def test_select_view(self, device):
        t = torch.ones((5, 5), device=device)
        v = t.select(0, 2)
        v[0] = 0
        self.assertEqual(t[2, 0], v[0])

    def test_unbind_view(self, device) -> None:
        t = torch.zeros((5, 5), device=device)
        tup = torch.unbind(t)
        for idx, v in enumerate(tup):
            v[0] = idx + 1
            self.assertEqual(t[idx, 0], v[0])

    def test_split_view(self, device):
        t = torch.zeros((5, 5), device=device)
        for split in (2, [2, 3], [5]):
            for i, v in enumerate(torch.split(t, split, dim=1)):
                v[0, 0] = i + 1
        self.assertEqual(t[0, 0].item(), 1)

    def test_expand_view(self, device) -> None:
        t = torch.ones((5, 1), device=device)
        v = t.expand(5, 5)
        v[2, 2] = 0
        self.assertEqual(t[2, 0], v[2, 2])

    def test_movedim_view(self, device):
        def run_test(device, op):
            t = torch.zeros(3, 3, device=device)
            out = op(t)
            out[0, 1] = 6
            self.assertEqual(t[1, 0], out[0, 1])

        for fn in (torch.movedim, torch.moveaxis):
            op = partial(fn, source=(0, 1), destination=(1, 0))
            run_test(device, op)
            op = partial(fn, source=0, destination=1)
            run_test(device, op)

    def test_T(self, device):
        a = torch.randn(2, 3, device=device)
        t1 = a.T
        t2 = a.permute(1, 0)
        self.assertEqual(t2, t1)
        b = torch.randn(10, device=device)
        self.assertEqual(b, b.T)

    @dtypes(*all_types_and_complex_and(torch.half, torch.bool))
    def test_transposes(self, device, dtype):
        for op in ("T", "H", "mT", "mH", "adjoint"):
            shapes = ((2, 3), (2, 3, 4)) if op[0] == "m" or op == "adjoint" else ((2, 3),)
            for shape in shapes:
                a = make_tensor(shape, device=device, dtype=dtype)
                t1 = getattr(a, op)
                if op == "adjoint":
                    t1 = t1()
                t2 = a
                if a.ndim != 0:
                    t2 = t2.transpose(-2, -1)
                if op[-1] == "H" or op == "adjoint":
                    t2 = t2.conj()
                self.assertEqual(t2, t1)

    @dtypes(torch.int64, torch.float, torch.complex128)
    def test_atleast(self, device, dtype):
        t = make_tensor((2,), dtype=dtype, device=device)
        for f, n in ((torch.atleast_1d, 1), (torch.atleast_2d, 2), (torch.atleast_3d, 3)):
            self.assertEqual(f(t).dim(), max(n, 1))
        a, b = torch.atleast_2d([t, t[0]])
        self.assertEqual(a.shape, (1, 2))
        self.assertEqual(b.shape, (1, 1))

    @onlyCPU
    @dtypes(torch.float)
    def test_broadcast_tensors(self, device, dtype):
        x0 = torch.randn(2, 1, 3, dtype=dtype, device=device)
        x1 = torch.randn(3, dtype=dtype, device=device)
        x2 = torch.randn(3, 1, dtype=dtype, device=device)
        expected_size = (2, 3, 3)
        y0, y1, y2 = torch.broadcast_tensors(x0, x1, x2)
        self.assertTrue(y0.size() == expected_size)
        self.assertTrue(y1.size() == expected_size)
        self.assertTrue(y2.size() == expected_size)

    def test_view_all_dtypes_and_devices(self, device):
        for dt in all_types_and_complex_and(torch.half, torch.bfloat16, torch.bool):
            x = torch.tensor([[1, 2], [3, 4], [5, 6]], dtype=dt, device=device)
            self.assertEqual(x.view(6).shape, [6])

    def test_reshape_view_semantics(self, device):
        tensor = torch.rand(15, 4, device=device)
        target = torch.rand(20, 3, device=device)
        self.assertEqual(tensor.reshape(20, 3).data_ptr(), tensor.data_ptr())
        y = torch.randn(4, 4, 4, device=device)[:, 0, :]
        self.assertNotEqual(y.reshape(-1).data_ptr(), y.data_ptr())
        self.assertEqual(y.contiguous().view(-1), y.reshape(-1))
        self.assertEqual(y.reshape(2, 8).contiguous(), y.reshape((2, 8)))
        self.assertRaises(RuntimeError, lambda: tensor.reshape(7, -1))
        self.assertRaises(RuntimeError, lambda: tensor.reshape(-1, -1))
        self.assertEqual(tensor.view_as(target).shape, target.shape)

    @parametrize("dim,offset", [(0, 0), (1, 1), (1, -1)])
    def test_narrow_cases(self, device, dim, offset):
        x = torch.arange(12, device=device).view(3, 4)
        self.assertEqual(x.narrow(dim, 1, 2), x.index_select(dim, torch.tensor([1, 2], device=device)))
        self.assertEqual(torch.diagonal(x, offset), torch.tensor([x[i, i + offset].item() for i in range(3) if 0 <= i + offset < 4]))


class TestShapeOps(TestCase):
    @onlyCPU
    def test_unbind(self, device):
        x = torch.rand(2, 3, 4, 5, device=device)
        for dim in range(4):
            res = torch.unbind(x, dim)
            res2 = x.unbind(dim)
            self.assertEqual(x.size(dim), len(res))
            for i in range(dim):
                self.assertEqual(x.select(dim, i), res[i])
                self.assertEqual(x.select(dim, i), res2[i])

    @dtypes(torch.int64, torch.float, torch.complex64)
    def test_flip(self, device, dtype):
        make_from_data = partial(torch.tensor, device=device, dtype=dtype)
        make_from_size = partial(make_tensor, device=device, dtype=dtype)

        def test_flip_impl(input_t, dims, output_t):
            def all_t():
                yield input_t, output_t
                if dtype is torch.float:
                    for qdtype in (torch.float64,):
                        yield input_t.to(qdtype), output_t.to(qdtype)

            for in_t, out_t in all_t():
                self.assertEqual(in_t.flip(dims), out_t)
                n = in_t.ndim
                if not isinstance(dims, tuple):
                    self.assertEqual(in_t.flip(-n + dims), out_t)
                else:
                    for p_dims in permutations(dims):
                        self.assertEqual(in_t.flip(p_dims), out_t)
                        if len(p_dims) > 0:
                            self.assertEqual(in_t.flip((-n + p_dims[0],) + p_dims[1:]), out_t)

        data = make_from_data([1, 2, 3, 4, 5, 6, 7, 8]).view(2, 2, 2)
        test_flip_impl(data, 0, make_from_data([5, 6, 7, 8, 1, 2, 3, 4]).view(2, 2, 2))
        test_flip_impl(data, (0, 1), make_from_data([7, 8, 5, 6, 3, 4, 1, 2]).view(2, 2, 2))
        test_flip_impl(data, (), data)
        self.assertRaises(IndexError, lambda: data.flip(0, 1, 2, 3))
        size = [2, 3, 4]
        data = make_from_size(size)
        possible_dims = range(len(size))
        test_dims = [item for r in range(len(size)) for item in combinations(possible_dims, r)]
        for dims in test_dims:
            self.assertEqual(size, list(data.flip(dims).size()))

    @dtypes(*all_types_and(torch.half, torch.bool, torch.bfloat16))
    def test_trace(self, device, dtype):
        def test(shape):
            tensor = make_tensor(shape, dtype=dtype, device=device, low=-9, high=9)
            expected_dtype = tensor.sum().dtype
            diag = np.diagonal(tensor.to(torch.float64).numpy())
            result = torch.trace(tensor) if dtype not in (torch.bool, torch.half, torch.bfloat16) else tensor.diagonal().sum()
            if dtype not in (torch.half, torch.bfloat16):
                self.assertEqual(result.to(torch.float64), torch.tensor(diag.sum(), dtype=torch.float64))

        for shape in ([10, 1], [1, 10], [100, 100], [20, 100], [100, 20]):
            test(shape)

    @dtypes(torch.float32, torch.float64)
    def test_clamp(self, device, dtype):
        X = torch.randn(100, dtype=dtype, device=device).mul(50)
        for min_val, max_val in product((0, None), (30, None)):
            if min_val is None and max_val is None:
                continue
            expected = np.clip(X.numpy(), min_val, max_val)
            actual = X.clamp(min_val, max_val)
            self.assertEqual(expected, actual)
        bounds = (-10, 10)
        self.assertEqual(X.clamp(*bounds), torch.min(torch.max(X, torch.tensor(-10.0, dtype=dtype)), torch.tensor(10.0, dtype=dtype)))

    def test_nonzero(self, device):
        shapes = [torch.Size((12,)), torch.Size((12, 1)), torch.Size((6, 2)), torch.Size((3, 2, 2)), torch.Size((5, 5, 5))]
        for shape in shapes:
            tensor = torch.randint(2, shape, device=device)
            dst1 = torch.nonzero(tensor, as_tuple=False)
            dst2 = tensor.nonzero(as_tuple=False)
            dst3 = torch.empty([], dtype=torch.long, device=device).new_empty(dst1.shape)
            torch.nonzero(tensor, out=dst3)
            np_array = tensor.cpu().numpy()
            np_result = torch.from_numpy(np.stack(np_array.nonzero())).t()
            self.assertEqual(dst1.cpu(), np_result, atol=0, rtol=0)
            self.assertEqual(dst2.cpu(), np_result, atol=0, rtol=0)
            self.assertEqual(dst3.cpu(), np_result, atol=0, rtol=0)
            tup = torch.nonzero(tensor, as_tuple=True)
            tup1 = torch.stack(tup).t().cpu()
            self.assertEqual(tup1, np_result, atol=0, rtol=0)

    def test_sort_and_topk(self, device):
        for dtype in (torch.float32, torch.int64):
            x = make_tensor((4, 7), dtype=dtype, device=device, low=-9, high=9)
            vals, idx = torch.sort(x, dim=1, descending=True, stable=True)
            self.assertEqual(torch.gather(x, 1, idx), vals)
            top, ti = x.topk(3, dim=1)
            self.assertEqual(top, vals[:, :3])
            kth = torch.kthvalue(x, 7, dim=1).values
            self.assertEqual(kth, vals[:, 0])
            self.assertEqual(x.median(dim=1).values, vals.flip(1)[:, 3])
            self.assertEqual(torch.msort(x.t()), torch.sort(x.t(), dim=0)[0])

    @suppress_warnings
    def test_linspace_logspace(self, device):
        for steps in (1, 2, 5):
            self.assertEqual(torch.linspace(0, 4, steps, device=device).numel(), steps)
            a = torch.logspace(0, 2, steps=steps, base=10, device=device)
            self.assertEqual(a[0].item(), 1)
        self.assertEqual(torch.arange(0, 1, 0.3).numpy(), np.arange(0, 1, 0.3).astype(np.float32))
        self.assertRaises(RuntimeError, lambda: torch.arange(0, 1, -0.3))

    def test_cumulative(self, device):
        x = _generate_input((5, 4), torch.float32, device, False)
        self.assertEqual(x.cumsum(0).numpy(), np.cumsum(x.numpy(), 0))
        v, i = x.cummax(1)
        self.assertEqual(v.numpy(), np.maximum.accumulate(x.numpy(), 1))
        self.assertEqual(torch.logcumsumexp(x, 0)[-1], torch.logsumexp(x, 0))
        self.assertEqual(torch.diff(x.cumsum(1), dim=1), x[:, 1:], atol=1e-3, rtol=1e-4)

    def test_gradcheck_views(self, device):
        x = torch.randn(3, 4, dtype=torch.double, device=device, requires_grad=True)
        self.assertTrue(gradcheck(lambda t: t.t().unfold(0, 2, 1).sum(-1), (x,)))
        self.assertTrue(gradgradcheck(lambda t: (t**3).diagonal(), [x]))


instantiate_device_type_tests(TestViewOps, globals())
instantiate_device_type_tests(TestShapeOps, globals())

if __name__ == "__main__":
    run_tests()
