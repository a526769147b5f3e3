import unittest

import oneflow as flow
import oneflow.unittest
import torch as torch_original
from oneflow.test_utils.automated_test_util import *


@flow.unittest.skip_unless_1n1d()
class TestLeakyReLUYzh(flow.unittest.TestCase):
    def test_against_leaky_relu(self):
        for shape in ((2,), (2, 3), (2, 3, 4), (2, 0)):
            for alpha in (0.01, 0.5, -1.0):
                data = torch_original.randn(shape)
                x = flow.tensor(data.numpy(), requires_grad=True)
                y = data.clone().requires_grad_()
                out = flow.nn.LeakyReLUYzh(alpha)(x)
                want = torch_original.nn.functional.leaky_relu(y, alpha)
                out.sum().backward()
                want.sum().backward()
                self.assertTrue((out.numpy() == want.detach().numpy()).all())
                self.assertTrue((x.grad.numpy() == y.grad.numpy()).all())


@flow.unittest.skip_unless_1n2d()
class TestGlobalLeakyReLUYzh(flow.unittest.TestCase):
    @globaltest
    def test_over_ranks(self):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2):
                x = flow.randn(8, 8).to_global(placement, sbp)
                want = flow.nn.LeakyReLUYzh(0.5)(x.to_global(placement, flow.sbp.broadcast))
                self.assertTrue((flow.nn.LeakyReLUYzh(0.5)(x).numpy() == want.numpy()).all())


if __name__ == "__main__":
    unittest.main()
