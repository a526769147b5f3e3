"""
Making tensors; dtypes and their mixtures.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


@flow.unittest.skip_unless_1n1d()
class TestCreation(flow.unittest.TestCase):
    @autotest(n=3, auto_backward=False, check_graph=True)
    def test_zeros_ones(test_case):
        shape = random_tensor().oneflow.shape
        return torch.zeros(*shape), torch.ones(shape), torch.full(shape, 2.5)

    @autotest(n=3, auto_backward=False)
    def test_arange(test_case):
        start = random(0, 10).to(int).value()
        end = start + random(1, 10).to(int).value()
        return torch.arange(start, end), torch.arange(start=start, end=end, step=2, dtype=torch.float32), torch.arange(end)

    @autotest(n=3, auto_backward=False)
    def test_arange_of_floats(test_case):
        return torch.arange(0.0, random(1, 5).to(float).value(), 0.25), torch.arange(5, 0, -1)

    @autotest(n=3, auto_backward=False)
    def test_linspace_logspace(test_case):
        start = random().to(int)
        end = random().to(int)
        steps = random(0, 8).to(int)
        x = torch.linspace(start=start, end=end, steps=steps)
        x.to(random_device())
        return x, torch.logspace(-1, 2, 4)

    @autotest(n=1, auto_backward=False)
    def test_eye_diag(test_case):
        return torch.eye(3), torch.eye(2, 4, dtype=torch.int64), torch.diag(torch.tensor([1, 2, 3]))

    @autotest(n=3)
    def test_likes(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=random(1, 5))
        return x * torch.ones_like(x) + torch.zeros_like(x) + torch.full_like(x, 0.5)

    @autotest(n=3, auto_backward=False)
    def test_new_factories(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=2)
        return x.new_zeros(2), x.new_ones(2, 3), x.new_full((2,), 3.0), x.new_tensor([1, 2])

    @autotest(n=2, auto_backward=False)
    def test_factories_that_require_grad(test_case):
        a = torch.ones(2, 3, requires_grad=True)
        b = torch.full((3,), 0.5, requires_grad=True)
        c = torch.tensor([1.0, 2.0], requires_grad=True)
        d = torch.zeros_like(b, requires_grad=True)
        e = torch.linspace(0, 1, 3, requires_grad=True)
        f = torch.arange(3.0, requires_grad=True)
        y = (a * b + d * e).sum(1) * c
        (y.sum() + (f * b).sum()).backward()
        return a.grad, b.grad, c.grad, d.grad, e.grad, f.grad

    @autotest(n=2, auto_backward=False)
    def test_random_factories_that_require_grad(test_case):
        a = torch.randn(2, 3, requires_grad=True)
        b = torch.rand(2, 3, requires_grad=True)
        test_case.assertTrue(a.requires_grad and b.is_leaf)
        (a * 2 + b * 3).sum().backward()
        return a.grad, b.grad

    @autotest(n=1, auto_backward=False)
    def test_tensor_of_lists(test_case):
        return (
            torch.tensor([[1, 2], [3, 4]]),
            torch.tensor([1.5, 2]),
            torch.tensor([True, False]),
            torch.tensor(3),
            torch.tensor([1 + 2j]),
            torch.tensor([1, 2], dtype=torch.float16),
            torch.Tensor([1, 2, 3]),
        )

    @autotest(n=2, auto_backward=False)
    def test_from_numpy(test_case):
        a = np.random.rand(2, 3)
        x = torch.from_numpy(a)
        test_case.assertEqual(x.dtype, torch.float64)
        return x, torch.as_tensor(a.astype(np.float32)), torch.tensor(a, dtype=torch.float32)

    @autotest(n=2, auto_backward=False)
    def test_tril_indices(test_case):
        return torch.tril_indices(4, 3, -1), torch.triu_indices(3, 3), torch.combinations(torch.arange(4))

    @autotest(n=3)
    def test_meshgrid(test_case):
        x = random_tensor(ndim=1, dim0=3)
        y = random_tensor(ndim=1, dim0=random(1, 5))
        a, b = torch.meshgrid(x, y, indexing="ij")
        return a + b, torch.cartesian_prod(x, y)

    @autotest(n=3, auto_backward=False)
    def test_one_hot(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4, low=0, high=5, dtype=int)
        return torch.nn.functional.one_hot(x, 5), torch.nn.functional.one_hot(x)

    @autotest(n=4)
    def test_dtype_promotion(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        i = random_tensor(ndim=2, dim0=2, dim1=3, dtype=int)
        return x + i, x * 2, i / 2 + x, (i > 0) * x, x.double() + x

    @autotest(n=4, auto_backward=False)
    def test_promotion_of_all(test_case):
        dtypes = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.bool]
        x = random_tensor(ndim=1, dim0=4, low=0, high=5, dtype=int)
        out = []
        for a in dtypes:
            for b in dtypes:
                s = x.to(a) + x.to(b)
                test_case.assertEqual(s.dtype, torch.promote_types(a, b))
                out.append(s)
        return out

    @autotest(n=3, auto_backward=False)
    def test_zero_dim_does_not_promote(test_case):
        x = random_tensor(ndim=1, dim0=3)
        z = torch.tensor(2.0, dtype=torch.float64)
        test_case.assertEqual((x * z).dtype, torch.float32)
        test_case.assertEqual((torch.arange(3) * z).dtype, torch.float64)
        return x * z, torch.arange(3) * 1.5, torch.arange(3, dtype=torch.uint8) + torch.tensor(300)

    @autotest(n=3, auto_backward=False)
    def test_casts(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3, low=-5, high=5)
        return x.int(), x.long(), x.half(), x.bool(), x.double(), x.type(torch.int8), x.short(), x.bfloat16().float()

    @autotest(n=3)
    def test_broadcasting(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=1, dim2=4)
        y = random_tensor(ndim=2, dim0=3, dim1=1)
        z = random_tensor(ndim=0)
        return x + y, x * z - y, torch.maximum(x, y), torch.broadcast_tensors(x, y)[1]

    @autotest(n=3)
    def test_broadcast_to(test_case):
        x = random_tensor(ndim=2, dim0=1, dim1=4)
        test_case.assertEqual(torch.broadcast_shapes((2, 1), (1, 4)), torch.Size([2, 4]))
        return torch.broadcast_to(x, (3, 4)), x.expand(2, -1)

    @autotest(n=3)
    def test_numbers_on_the_left(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3, low=0.5, high=3)
        return 1 - x, 2 / x, 3 ** x, 5 // x.detach(), 7 % x.detach(), -x, +x, abs(x)

    @autotest(n=3, auto_backward=False)
    def test_integer_arithmetic(test_case):
        a = random_tensor(ndim=1, dim0=6, dtype=int)
        b = random_tensor(ndim=1, dim0=6, low=1, high=5, dtype=int)
        return a // b, a % b, a & b, a | b, a ^ b, ~a, a << 1, a >> 1, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b)

    @autotest(n=3, auto_backward=False)
    def test_comparisons(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = random_tensor(ndim=2, dim0=2, dim1=3)
        return x < y, x >= y, x == y, x != 0, torch.logical_and(x > 0, y > 0), torch.isclose(x, y, atol=0.5), (x < y).any()

    @autotest(n=3, include_complex=True)
    def test_sin_of_either(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return torch.sin(x) * x

    @autotest(n=3)
    def test_complex_numbers(test_case):
        re = random_tensor(ndim=2, dim0=2, dim1=3)
        im = random_tensor(ndim=2, dim0=2, dim1=3)
        z = torch.complex(re, im)
        return z.abs(), z.angle(), (z * (1 + 2j)).real, z.conj().imag

    @autotest(n=3, auto_backward=False)
    def test_polar(test_case):
        r = random_tensor(ndim=1, dim0=4, low=0, high=2)
        t = random_tensor(ndim=1, dim0=4)
        z = torch.polar(r, t)
        test_case.assertTrue(z.is_complex())
        return z, torch.is_floating_point(r)

    @autotest(n=2, auto_backward=False)
    def test_empty_tensors(test_case):
        x = torch.empty(0, 3)
        test_case.assertEqual(x.numel(), 0)
        return x.sum(), x.sum(0), x.prod(), torch.cat([x, torch.ones(2, 3)]), x @ torch.ones(3, 2), x.mean(1)

    @autotest(n=2)
    def test_empty_tensors_written(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=3)
        e = torch.empty(4, 3).fill_(2.5)
        out = torch.empty_like(x)
        out[:] = x.exp()
        rows = torch.Tensor(4, 3)
        for i in range(4):
            rows[i] = x[i] * i
        return x * e, out, rows, x.new_empty(2)

    @autotest(n=3)
    def test_zero_sized_input(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=0, dim2=3)
        return torch.relu(x), x.transpose(0, 1), x.sum(dim=1)

    @autotest(n=3)
    def test_zero_dim_inputs(test_case):
        x = random_tensor(ndim=0)
        return x.exp(), x.unsqueeze(0), x.reshape(1, 1), x.expand(3), torch.stack([x, x * 2])

    @autotest(n=2, auto_backward=False)
    def test_zero_dim_as_number(test_case):
        n = torch.tensor(4)
        x = torch.arange(n)
        v = torch.tensor(0.5)
        return x, torch.full((2,), v), torch.linspace(v, 2, 3), torch.nn.functional.threshold(x.float(), v, 9.0)

    @autotest(n=2, auto_backward=False)
    def test_finfo_iinfo(test_case):
        big = torch.finfo(torch.float32).max
        x = torch.full((2,), big)
        test_case.assertEqual(torch.iinfo(torch.int8).max, 127)
        return x * 2, torch.isinf(x * 2), torch.nan_to_num(x * 2)

    @autotest(n=2, auto_backward=False)
    def test_manual_seed_is_harmless(test_case):
        torch.manual_seed(0)
        flow.manual_seed(0)
        x = random_tensor(ndim=1, dim0=4)
        return x.sqrt().nan_to_num(0.0)


if __name__ == "__main__":
    unittest.main()
