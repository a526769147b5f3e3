"""Tests of tensors over ranks, as OneFlow writes them."""

import unittest

import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


@autotest(n=1, check_graph=True)
def _test_relu(test_case, ndim, placement, sbp):
    dims = [random(1, 4) * 8 for i in range(ndim)]
    x = random_tensor(ndim, *dims).to_global(placement, sbp)
    return torch.relu(x)


@autotest(n=1, check_graph=True)
def _test_matmul(test_case, placement, x_sbp, y_sbp):
    x = random_tensor(2, 8, 16).to_global(placement=placement, sbp=x_sbp)
    y = random_tensor(2, 16, 24).to_global(placement=placement, sbp=y_sbp)
    return torch.matmul(x, y)


@autotest(n=1)
def _test_linear(test_case, placement, sbp):
    x = random_tensor(2, 8, 16).to_global(placement=placement, sbp=sbp)
    m = torch.nn.Linear(16, 8)
    m.train(random())
    m.to_global(placement=placement, sbp=random_sbp(placement, max_dim=1))
    return m(x)


@autotest(n=1, auto_backward=False)
def _test_ones(test_case, placement, sbp):
    return torch.ones(8, 16, placement=placement, sbp=sbp) * 2


class TestGlobal(flow.unittest.TestCase):
    @globaltest
    def test_relu(test_case):
        for placement in all_placement():
            ndim = random(1, 4).to(int).value()
            for sbp in all_sbp(placement, max_dim=min(2, ndim)):
                _test_relu(test_case, ndim, placement, sbp)

    @globaltest
    def test_matmul(test_case):
        for placement in all_placement():
            for x_sbp in all_sbp(placement, max_dim=2):
                _test_matmul(test_case, placement, x_sbp, random_sbp(placement, max_dim=2))

    @globaltest
    def test_linear(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2, except_partial_sum=True):
                _test_linear(test_case, placement, sbp)

    @globaltest
    def test_ones(test_case):
        placement = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
        _test_ones(test_case, placement, [flow.sbp.split(0), flow.sbp.broadcast])
        _test_ones(test_case, flow.placement.all("cpu"), flow.sbp.split(1))


if __name__ == "__main__":
    unittest.main()
