"""
Indexing, slicing, gather and scatter.
Licensed under the Apache License, Version 2.0.
"""
import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import GenArgList


def _test_slice_of_numpy(test_case, key):
    a = np.arange(60).reshape(3, 4, 5).astype(np.float32)
    x = flow.tensor(a)
    test_case.assertTrue(np.array_equal(x[key].numpy(), a[key]))


@flow.unittest.skip_unless_1n1d()
class TestIndexing(flow.unittest.TestCase):
    @autotest(n=3)
    def test_basic_slices(test_case):
        x = random_tensor(ndim=3, dim0=random(3, 6), dim1=5, dim2=6)
        return x[1], x[1:3], x[:, ::2], x[..., -1], x[:, None, 1:4, 2], x[-2:, :, :3]

    @autotest(n=3)
    def test_slice_with_drawn_bounds(test_case):
        x = random_tensor(ndim=2, dim0=8, dim1=3)
        start = random(0, 4).to(int).value()
        stop = random(4, 8).to(int).value()
        step = random(1, 3).to(int).value()
        return x[start:stop:step]

    @autotest(n=3)
    def test_index_by_tensor(test_case):
        x = random_tensor(ndim=3, dim0=4, dim1=3, dim2=2)
        idx = torch.tensor([[0, 3], [1, 1]])
        return x[idx], x[:, torch.tensor([2, 0])]

    @autotest(n=3)
    def test_index_by_list_of_tensors(test_case):
        x = random_tensor(ndim=3, dim0=4, dim1=3, dim2=2)
        rows = torch.tensor([0, 3, 2])
        cols = torch.tensor([1, 1, 0])
        return x[rows, cols], x[[rows, cols]], x[rows, :, torch.tensor([1, 0, 1])]

    @autotest(n=3)
    def test_index_by_lists(test_case):
        x = random_tensor(ndim=2, dim0=5, dim1=4)
        return x[[0, 2, 4]], x[[1, 2], [3, 0]], x[:, [True, False, True, True]]

    @autotest(n=3)
    def test_boolean_mask(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=5)
        return x[x > 0], x[x.sum(1) > 0]

    @autotest(n=3)
    def test_negative_and_zero_dim_index(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=5)
        i = torch.tensor(-1)
        return x[i], x[torch.tensor(2), 1]

    @autotest(n=3)
    def test_broadcast_indices(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=5)
        i = torch.arange(3).unsqueeze(1)
        j = torch.arange(2)
        return x[i, j]

    @autotest(n=3)
    def test_setitem_number(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=5)
        y = x * 2
        y[1:3] = 0
        y[:, -1] = 1.5
        y[0, 0] = -3
        return y

    @autotest(n=3)
    def test_setitem_tensor(test_case):
        y = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4).clone()
        v = random_tensor(ndim=2, dim0=3, dim1=4)
        y[0] = v
        y[1, :, 1:3] = v[:, :2] * 2
        return y

    @autotest(n=3)
    def test_setitem_mask(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = x.clone()
        y[y < 0] = 0.0
        y[y > 0.5] *= 2
        return y

    @autotest(n=3)
    def test_setitem_advanced(test_case):
        y = torch.zeros(4, 3)
        v = random_tensor(ndim=2, dim0=2, dim1=3)
        y[torch.tensor([2, 0])] = v
        y[[1, 3], [0, 2]] = v[0, :2]
        return y

    @autotest(n=3)
    def test_augmented_setitem(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = x + 0
        y[1] += x[0]
        y[:, 1:3] *= 2
        y[..., 0] -= 1
        return y

    @autotest(n=4)
    def test_gather(test_case):
        device = random_device()
        input = random_tensor(ndim=4, dim0=3, dim1=3, dim2=4, dim3=5).to(device)
        dim = random(0, 4).to(int)
        index = random_tensor(ndim=4, dim1=random(1, 3).to(int), dim2=random(1, 4).to(int), dim3=random(1, 5).to(int), low=0, high=2, dtype=int).to(device)
        return torch.gather(input, dim, index)

    @autotest(n=3)
    def test_scatter(test_case):
        input = random_tensor(ndim=2, dim0=3, dim1=4)
        src = random_tensor(ndim=2, dim0=2, dim1=4)
        index = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
        return torch.scatter(input, 1, index, src), input.scatter(0, index[:, :3] % 3, 0.5)

    @autotest(n=3)
    def test_scatter_add(test_case):
        src = random_tensor(ndim=2, dim0=2, dim1=5)
        index = torch.tensor([[0, 1, 2, 0, 0], [2, 0, 0, 1, 2]])
        return torch.zeros(3, 5).scatter_add_(0, index, src)

    @autotest(n=3)
    def test_scatter_reduce(test_case):
        x = random_tensor(ndim=1, dim0=4)
        src = random_tensor(ndim=1, dim0=6, low=0.5, high=2)
        index = torch.tensor([0, 1, 0, 1, 2, 1])
        mode = oneof("sum", "prod", "mean", "amax", "amin")
        return x.scatter_reduce(0, index, src, reduce=mode, include_self=False)

    @autotest(n=3)
    def test_index_select(test_case):
        x = random_tensor(ndim=3, dim0=3, dim1=4, dim2=5)
        idx = torch.tensor([3, 0, 0, 2])
        return torch.index_select(x, dim=random(1, 3).to(int), index=idx)

    @autotest(n=3)
    def test_index_add_and_copy(test_case):
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        t = random_tensor(ndim=2, dim0=3, dim1=3)
        index = torch.tensor([0, 4, 2])
        return x.index_add(0, index, t, alpha=-1), x.index_copy(0, index, t), x.index_fill(1, torch.tensor([1]), 9)

    @autotest(n=3)
    def test_index_put(test_case):
        x = torch.ones(3, 4)
        v = random_tensor(ndim=1, dim0=3)
        idx = (torch.tensor([0, 0, 2]), torch.tensor([1, 1, 3]))
        return x.index_put(idx, v, accumulate=True)

    @autotest(n=3)
    def test_masked_fill_and_select(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        mask = x.detach() > 0
        return x.masked_fill(mask, float(2)), torch.masked_select(x, mask)

    @autotest(n=3)
    def test_masked_scatter(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        mask = torch.tensor([[True, False, True], [False, True, True]])
        return x.masked_scatter(mask, random_tensor(ndim=2, dim0=2, dim1=3))

    @autotest(n=3)
    def test_take_and_put(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        idx = torch.tensor([0, 5, -1])
        return torch.take(x, idx), x.put(idx, torch.ones(3))

    @autotest(n=3)
    def test_take_along_dim(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        order = x.argsort(dim=1)
        return torch.take_along_dim(x, order, dim=1)

    @autotest(n=3, auto_backward=False)
    def test_nonzero_and_where(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4).relu()
        rows, cols = torch.where(x > 0)
        return x.nonzero(), x.nonzero(as_tuple=True), rows, cols

    @autotest(n=3)
    def test_where_with_numbers(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = random_tensor(ndim=1, dim0=4)
        return torch.where(x > 0, x, y), torch.where(x > 0, x, 0.5), x.where(x < 0, y)

    @autotest(n=3)
    def test_narrow_and_unbind(test_case):
        x = random_tensor(ndim=3, dim0=4, dim1=3, dim2=5)
        a, b, c = x.unbind(1)
        return x.narrow(0, 1, 2), a * b - c, x.select(2, -1)

    @autotest(n=3)
    def test_last_dim_slice_assign_through_view(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=6)
        y = x.clone()
        left, right = y[:, :3], y[:, 3:]
        left[:, 0] = right[:, 0]
        return y

    def test_slices_as_numpy_does(test_case):
        arg_dict = OrderedDict()
        arg_dict["key"] = [
            1,
            (slice(None), 2),
            (slice(0, 3, 2), slice(1, None)),
            (Ellipsis, 0),
            (0, slice(None), slice(1, 4, 2)),
            (None, 1),
        ]
        for (key,) in GenArgList(arg_dict):
            _test_slice_of_numpy(test_case, key)

    @autotest(n=2)
    def test_index_in_loop(test_case):
        x = random_tensor(ndim=2, dim0=random(2, 5), dim1=3)
        out = []
        for i in range(x.shape[0]):
            for j in range(x.size(1)):
                if (i + j) % 2 == 0:
                    out.append(x[i, j])
        return torch.stack(out)

    @autotest(n=2, auto_backward=False)
    def test_index_empty(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        none = torch.tensor([], dtype=torch.int64)
        return x[none], x[3:], x[:, 2:2], x[torch.zeros(3, dtype=torch.bool)]


if __name__ == "__main__":
    unittest.main()
