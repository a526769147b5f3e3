"""Local tensors that become global, what rank 0 has, and sharded optimizers."""

import unittest

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


def _test_local_to_global(test_case, placement):
    n = len(placement.ranks)
    x = flow.tensor(np.arange(6).reshape(2, 3), dtype=flow.float32)
    y = x.to_global(placement=placement, sbp=flow.sbp.split(0))
    test_case.assertEqual(y.shape, flow.Size((2 * n, 3)))
    test_case.assertTrue(np.array_equal(y.numpy(), np.concatenate([np.arange(6).reshape(2, 3)] * n)))
    z = x.to_global(placement=placement, sbp=flow.sbp.partial_sum)
    test_case.assertTrue(np.array_equal(z.numpy(), n * np.arange(6).reshape(2, 3)))
    test_case.assertTrue(np.array_equal(z.to_local().numpy(), x.numpy()))
    grid = flow.placement("cpu", [[0, 1], [2, 3]])
    w = x.to_global(grid, [flow.sbp.split(1), flow.sbp.partial_sum])
    test_case.assertEqual(w.shape, (2, 6))


def _test_gradient_of_local(test_case, placement, sbp):
    x = flow.ones(2, 3, requires_grad=True)
    y = x.to_global(placement=placement, sbp=sbp)
    w = flow.arange(y.numel(), dtype=flow.float32, placement=placement, sbp=flow.sbp.broadcast).reshape(y.shape)
    (y * w).sum().backward()
    test_case.assertTrue(np.array_equal(x.grad.numpy(), w.numpy()[:2, :3]))


def _test_summands(test_case, placement):
    x = flow.arange(8, dtype=flow.float32, placement=placement, sbp=flow.sbp.broadcast)
    rows = x.to_global(sbp=flow.sbp.split(0)).to_global(sbp=flow.sbp.partial_sum)
    test_case.assertTrue(np.array_equal(rows.to_local().numpy(), [0, 1, 0, 0, 0, 0, 0, 0]))
    a = flow.ones(4, 8, placement=placement, sbp=flow.sbp.split(1))
    b = flow.ones(8, 4, placement=placement, sbp=flow.sbp.split(0))
    c = flow.matmul(a, b)
    test_case.assertEqual(c.sbp, (flow.sbp.partial_sum,))
    test_case.assertTrue(np.array_equal(c.to_local().numpy(), np.full((4, 4), 2)))
    test_case.assertTrue("partial_sum" in str(c))


class MLP(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = flow.nn.Linear(8, 16)
        self.fc2 = flow.nn.Linear(16, 8)
        self.scale = flow.nn.Parameter(flow.ones(8))

    def forward(self, x):
        return self.fc2(flow.relu(self.fc1(x))) * self.scale


def _test_modules(test_case, placement):
    m = MLP().to_global(placement=placement, sbp=flow.sbp.broadcast)
    x = flow.tensor(np.random.randn(4, 8), dtype=flow.float32, placement=placement, sbp=flow.sbp.split(0))
    test_case.assertEqual(m(x).sbp, (flow.sbp.split(0),))
    m.fc1.weight = flow.nn.Parameter(m.fc1.weight.to_global(sbp=flow.sbp.split(0)))
    m.fc1.bias = flow.nn.Parameter(m.fc1.bias.to_global(sbp=flow.sbp.split(0)))
    h = m.fc1(x.to_global(sbp=flow.sbp.broadcast))
    test_case.assertEqual(h.sbp, (flow.sbp.split(1),))
    h.sum().backward()
    test_case.assertEqual(m.fc1.weight.grad.sbp, m.fc1.weight.sbp)


def _test_zero(test_case, placement, stage):
    m = MLP().to_global(placement=placement, sbp=flow.sbp.broadcast)

    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = m
            self.m.fc1.config.activation_checkpointing = True
            self.add_optimizer(flow.optim.Adam(m.parameters(), lr=0.01))
            self.config.enable_zero(True, stage=stage, shard_min_size=1)

        def build(self, x):
            loss = self.m(x).pow(2).mean()
            loss.backward()
            return loss

    train = Train()
    x = flow.tensor(np.random.randn(8, 8), dtype=flow.float32, placement=placement, sbp=flow.sbp.split(0))
    losses = [train(x).item() for _ in range(3)]
    train.config.enable_zero(False)
    losses[2] = train(x).item()
    test_case.assertTrue(losses[2] < losses[0])
    sharded = flow.sbp.split(0) if stage == 3 else flow.sbp.broadcast
    test_case.assertEqual(m.fc1.weight.sbp, (sharded,))


@autotest(n=1, check_graph=False)
def _test_one_side(test_case, placement, sbp):
    x = random_tensor(2, 8, 8).to_global(placement, sbp)
    x.oneflow = x.oneflow.to_global(sbp=[flow.sbp.broadcast] * len(sbp))
    return torch.exp(x)


class TestGlobalLocal(flow.unittest.TestCase):
    @globaltest
    def test_local_to_global(test_case):
        _test_local_to_global(test_case, flow.placement.all("cpu"))
        for sbp in [flow.sbp.split(0), flow.sbp.split(1), flow.sbp.partial_sum, flow.sbp.broadcast]:
            _test_gradient_of_local(test_case, flow.placement("cpu", [0, 1, 2]), sbp)

    @globaltest
    def test_summands(test_case):
        _test_summands(test_case, flow.placement.all("cpu"))

    @globaltest
    def test_modules(test_case):
        _test_modules(test_case, flow.placement.all("cpu"))

    @globaltest
    def test_zero(test_case):
        for stage in [2, 3]:
            _test_zero(test_case, flow.placement.all("cpu"), stage)

    @globaltest
    def test_one_side(test_case):
        for placement in all_placement():
            _test_one_side(test_case, placement, random_sbp(placement, max_dim=2).value())

    @globaltest
    def test_refused(test_case):
        with test_case.assertRaises(RuntimeError):
            flow.ones(2, 3).to_global(placement=flow.placement.all("cpu"), sbp=flow.sbp.split(2))
        with test_case.assertRaises(RuntimeError):
            flow.randn(4, placement=flow.placement.all("cpu"), sbp=flow.sbp.partial_sum)


if __name__ == "__main__":
    unittest.main()
