"""Modules of oneflow.nn alone are each rank's own. OneFlow 0.9 passes these tests on two ranks."""
import unittest
import numpy as np
import oneflow as flow
import oneflow.unittest
import oneflow.nn as nn
from oneflow.test_utils.automated_test_util import *


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x):
        return self.fc(x)


class TestGlobalModules(flow.unittest.TestCase):
    @globaltest
    def test_linear(test_case):
        placement = flow.placement("cpu", [0, 1])
        m = flow.nn.Linear(4, 6)
        w, b = m.weight.numpy(), m.bias.numpy()
        m.to_global(placement, [flow.sbp.split(0)])
        test_case.assertEqual(m.weight.shape, (12, 4))
        test_case.assertEqual(m.weight.sbp, (flow.sbp.split(0),))
        test_case.assertTrue(m.weight.is_leaf)
        test_case.assertTrue(np.array_equal(m.weight.numpy(), np.concatenate([w, w])))
        x = flow.ones(3, 4, placement=placement, sbp=[flow.sbp.broadcast])
        y = m(x)
        test_case.assertEqual(y.shape, (3, 12))
        test_case.assertEqual(y.sbp, (flow.sbp.split(1),))
        y.sum().backward()
        test_case.assertEqual(m.weight.grad.shape, (12, 4))
        test_case.assertEqual(m.weight.grad.sbp, (flow.sbp.split(0),))
        test_case.assertTrue(np.allclose(y.numpy(), np.ones((3, 4)) @ np.concatenate([w, w]).T + np.concatenate([b, b]), 1e-4, 1e-4))

    @globaltest
    def test_summands(test_case):
        placement = flow.placement("cpu", [0, 1])
        m = nn.Linear(4, 6)
        w = m.weight.numpy()
        m.to_global(placement, [flow.sbp.partial_sum])
        test_case.assertTrue(np.allclose(m.weight.numpy(), 2 * w, 1e-5, 1e-5))
        test_case.assertEqual(m.weight.sbp, (flow.sbp.partial_sum,))
        y = m(flow.ones(3, 4, placement=placement, sbp=[flow.sbp.broadcast]))
        test_case.assertEqual(y.shape, (3, 6))
        test_case.assertEqual(y.sbp, (flow.sbp.partial_sum,))

    @globaltest
    def test_axis(test_case):
        placement = flow.placement("cpu", [0, 1])
        for m in [flow.nn.Linear(4, 6), flow.nn.Conv2d(3, 4, 3)]:
            with test_case.assertRaises(RuntimeError):
                m.to_global(placement, [flow.sbp.split(1)])
        m = flow.nn.Conv2d(3, 4, 3).to_global(placement, [flow.sbp.split(0)])
        test_case.assertEqual(m.weight.shape, (8, 3, 3, 3))
        y = m(flow.ones(2, 3, 5, 5, placement=placement, sbp=[flow.sbp.broadcast]))
        test_case.assertEqual(y.shape, (2, 8, 3, 3))
        m = nn.Embedding(5, 4).to_global(placement, [flow.sbp.split(1)])
        y = m(flow.tensor([1, 3], placement=placement, sbp=[flow.sbp.broadcast]))
        test_case.assertEqual(y.shape, (2, 8))

    @globaltest
    def test_container(test_case):
        placement = flow.placement("cpu", [0, 1])
        m = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(6, 5)))
        w = m[0].weight.numpy()
        with test_case.assertRaises(RuntimeError):
            nn.Sequential(nn.Linear(4, 3)).to_global(placement, [flow.sbp.split(1)])
        m.to_global(placement, [flow.sbp.split(0)])
        test_case.assertTrue(np.array_equal(m[0].weight.numpy(), np.concatenate([w, w])))
        test_case.assertEqual(m[2][0].weight.shape, (10, 6))
        test_case.assertEqual(m[0].weight.sbp, (flow.sbp.split(0),))
        y = m(flow.ones(3, 4, placement=placement, sbp=[flow.sbp.broadcast]))
        test_case.assertEqual(y.shape, (3, 10))
        y.sum().backward()
        test_case.assertEqual(m[0].weight.grad.shape, (6, 4))

    @globaltest
    def test_again(test_case):
        placement = flow.placement("cpu", [0, 1])
        m = flow.nn.Linear(4, 6).to_global(placement, [flow.sbp.broadcast])
        w = m.weight.numpy()
        m.to_global(placement, [flow.sbp.split(0)])
        test_case.assertTrue(np.array_equal(m.weight.numpy(), w))
        m = Net()
        w = m.fc.weight.numpy()
        test_case.assertTrue(isinstance(m.fc, flow.nn.Linear))
        m.to_global(placement, [flow.sbp.split(0)])
        test_case.assertTrue(np.array_equal(m.fc.weight.numpy(), np.concatenate([w, w])))
        y = m(flow.ones(3, 4, placement=placement, sbp=[flow.sbp.broadcast]))
        test_case.assertEqual(y.shape, (3, 12))


if __name__ == "__main__":
    unittest.main()
