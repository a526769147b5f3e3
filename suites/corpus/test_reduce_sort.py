"""
Reductions, scans, sorting, counting.
Licensed under the Apache License, Version 2.0.
"""
import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import GenArgDict


def check_sum(test_case, dim, keepdim):
    a = np.random.randn(2, 3, 4)
    x = flow.tensor(a, requires_grad=True)
    y = flow.sum(x, dim=dim, keepdim=keepdim)
    test_case.assertTrue(np.allclose(y.detach().numpy(), a.sum(axis=dim, keepdims=keepdim), 1e-6, 1e-6))
    y.sum().backward()
    test_case.assertTrue(np.array_equal(x.grad.numpy(), np.ones_like(a)))


@flow.unittest.skip_unless_1n1d()
class TestReduce(flow.unittest.TestCase):
    @autotest(n=4, check_graph=True)
    def test_sum_against_pytorch(test_case):
        device = random_device()
        x = random_tensor(ndim=4, dim0=random(), dim1=random(), dim2=random(), dim3=random()).to(device)
        y = torch.sum(x, dim=random(0, 4).to(int), keepdim=random_bool())
        return y

    @autotest(n=4)
    def test_mean_over_dims(test_case):
        x = random_tensor(ndim=4, dim1=3, dim2=4, dim3=5, dtype=float)
        return torch.mean(x, dim=(1, -1)), x.mean(), x.mean([0, 2], keepdim=True)

    @autotest(n=4)
    def test_var_std(test_case):
        x = random_tensor(ndim=3, dim0=3, dim1=4, dim2=2)
        unbiased = random_bool()
        return torch.var(x, 1, unbiased), x.std(dim=(0, 1), unbiased=False), torch.var_mean(x, 0)

    @autotest(n=4)
    def test_prod(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        return x.prod(), torch.prod(x, 1), x.prod(0, keepdim=True)

    @autotest(n=4)
    def test_amax_amin(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4)
        return torch.amax(x, (0, 2)), x.amin(1), torch.aminmax(x.detach(), dim=0)

    @autotest(n=4)
    def test_max_with_dim(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4)
        values, indices = x.max(dim=1)
        test_case.assertEqual(indices.dtype, torch.int64)
        return values, torch.min(x, 2).values, x.max()

    @autotest(n=3, auto_backward=False)
    def test_max_returns_named_tuple(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=5)
        return torch.max(x, dim=0), x.min(dim=-1, keepdim=True), x.median(1)

    @autotest(n=3, auto_backward=False)
    def test_argmax(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4)
        return x.argmax(), torch.argmax(x, dim=-1), x.argmin(1, keepdim=True)

    @autotest(n=3, auto_backward=False)
    def test_all_any(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4).to(device=random_device(), dtype=torch.bool)
        return torch.all(x), x.all(1), torch.any(x, 0, keepdim=True), x.any()

    @autotest(n=3)
    def test_norms(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        return x.norm(), torch.norm(x, p=1, dim=1), torch.linalg.vector_norm(x, ord=3, dim=0), torch.linalg.norm(x, "fro")

    @autotest(n=3)
    def test_logsumexp(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4, low=-3, high=3)
        return torch.logsumexp(x, dim=random(0, 3).to(int)), x.logsumexp((0, 1))

    @autotest(n=3)
    def test_nansum(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        mask = x < 0
        y = x.masked_fill(mask, float("nan"))
        return torch.nansum(y), y.nansum(1), y.nanmean(0)

    @autotest(n=3, auto_backward=False)
    def test_sum_of_dtypes(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4, low=0, high=4, dtype=int)
        return x.sum(), x.to(torch.uint8).sum(), x.bool().sum(1), x.sum(dtype=torch.float32), x.float().mean()

    @autotest(n=3)
    def test_cumulative(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=5)
        values, indices = torch.cummax(x, 1)
        return x.cumsum(0), torch.cumprod(x, dim=1), torch.logcumsumexp(x, 1), values

    @autotest(n=3)
    def test_trace_and_diff(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        return torch.trace(x), torch.diff(x), torch.diff(x, n=2, dim=0)

    @autotest(n=4)
    def test_sort(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=6)
        out = torch.sort(x, dim=random(-2, 2).to(int), descending=random_bool())
        return out[0]

    @autotest(n=4, auto_backward=False)
    def test_sort_both(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4, dtype=int)
        return torch.sort(x, dim=1, stable=True), x.argsort(-1, descending=False)

    @autotest(n=4)
    def test_topk(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=8)
        values, indices = torch.topk(x, k=random(1, 8).to(int), dim=1, largest=random_bool(), sorted=constant(True))
        return values, indices

    @autotest(n=3)
    def test_topk_unsorted(test_case):
        x = random_tensor(ndim=1, dim0=20)
        return x.topk(5, sorted=False).values.sum()

    @autotest(n=3, auto_backward=False)
    def test_unique_unsorted(test_case):
        x = random_tensor(ndim=2, dim0=6, dim1=5, dtype=int, low=0, high=9)
        v, inverse, counts = torch.unique(x, sorted=False, return_inverse=True, return_counts=True)
        return v, inverse, counts, v[inverse]

    @autotest(n=3, auto_backward=False)
    def test_kthvalue_and_mode(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=7, dtype=int)
        return x.kthvalue(3, dim=1).values, x.mode(1).values

    @autotest(n=3, auto_backward=False)
    def test_unique(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=6, low=0, high=4, dtype=int)
        values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return values, inverse, counts, torch.unique(x, dim=0)

    @autotest(n=3, auto_backward=False)
    def test_unique_consecutive(test_case):
        x = torch.tensor([1, 1, 2, 2, 3, 1, 1])
        return torch.unique_consecutive(x, return_counts=True), x.unique()

    @autotest(n=3, auto_backward=False)
    def test_bincount_histc(test_case):
        x = random_tensor(ndim=1, dim0=20, low=0, high=6, dtype=int)
        w = random_tensor(ndim=1, dim0=20)
        return torch.bincount(x), torch.bincount(x, weights=w.detach(), minlength=8), torch.histc(x.float(), bins=4, min=0, max=5)

    @autotest(n=3, auto_backward=False)
    def test_searchsorted(test_case):
        seq = random_tensor(ndim=1, dim0=8).sort().values
        v = random_tensor(ndim=2, dim0=2, dim1=3)
        return torch.searchsorted(seq, v, right=random_bool()), torch.bucketize(v, seq)

    @autotest(n=3)
    def test_median_quantile(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=5)
        return torch.median(x), torch.quantile(x, 0.3, dim=1), torch.nanmedian(x)

    @autotest(n=2)
    def test_reduce_of_noncontiguous(test_case):
        x = random_tensor(ndim=3, dim0=4, dim1=5, dim2=6)
        y = x.permute(2, 0, 1)[::2]
        return y.sum((0, 2)), y.amax(1), y.var(2)

    def test_sum_as_numpy_does(test_case):
        arg_dict = OrderedDict()
        arg_dict["dim"] = [0, -1, (0, 2), None]
        arg_dict["keepdim"] = [False, True]
        for kwargs in GenArgDict(arg_dict):
            check_sum(test_case, **kwargs)

    @autotest(n=2, auto_backward=False)
    def test_count_nonzero_and_numel(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4).relu()
        test_case.assertEqual(x.numel(), 12)
        test_case.assertEqual(torch.numel(x), x.nelement())
        return torch.count_nonzero(x), x.count_nonzero(dim=0)

    @autotest(n=2, check_allclose=False, auto_backward=False)
    def test_shapes_only(test_case):
        return torch.rand(3, 4).sort(1)[1]


if __name__ == "__main__":
    unittest.main()
