"""Functions that measure operators, as OneFlow's suite has beside its tests."""
import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import GenArgDict


@flow.unittest.skip_unless_1n1d()
class TestProfiles(flow.unittest.TestCase):
    @profile(torch.nn.functional.avg_pool1d)
    def profile_avg_pool1d(test_case):
        torch.nn.functional.avg_pool1d(torch.ones(1, 128, 28), kernel_size=3, padding=1)
        torch.nn.functional.avg_pool1d(torch.ones(1, 128, 28), kernel_size=3, stride=2, padding=1)

    @profile(torch.nn.functional.conv1d)
    def profile_conv1d(test_case):
        inputs = torch.ones(4, 16, 30)
        weight_16c = torch.ones(16, 16, 5)
        weight_16c_2g = torch.ones(16, 8, 5)
        torch.nn.functional.conv1d(inputs, weight_16c)
        torch.nn.functional.conv1d(inputs, weight_16c, bias=torch.ones(16))
        torch.nn.functional.conv1d(inputs, weight_16c_2g, groups=2, profile_description="2 groups")

    @profile(torch.Tensor.masked_fill)
    def profile_masked_fill(test_case):
        x = torch.randn(100, 100)
        x.masked_fill(x > 0, 1.5)

    @profile(torch.Tensor.permute)
    def profile_permute(test_case):
        torch.ones(64, 3, 8, 8).permute(0, 2, 3, 1)

    @profile(torch.Tensor.add_)
    def profile_add_(test_case):
        x = torch.ones(10, 100)
        x.add_(torch.ones(10, 100), alpha=2)

    @profile(torch.add)
    def profile_add(test_case):
        for shape in [(10, 10), (10, 10, 100)]:
            torch.add(torch.ones(*shape), torch.ones(*shape))
        torch.add(torch.ones(10, 10), 2)

    @profile(torch.sum)
    def profile_sum(test_case):
        for arg in GenArgDict(OrderedDict(dim=[0, (0, 1)], keepdim=[True, False])):
            torch.sum(torch.ones(10, 100), **arg)

    @profile(torch.ones)
    def profile_ones(test_case):
        torch.ones(1000)

    @profile(torch.randn)
    def profile_randn(test_case):
        torch.randn(10, 10)

    @profile(torch.nn.functional.one_hot)
    def profile_one_hot(test_case):
        torch.nn.functional.one_hot(torch.randint(0, 5, (128,)), 5)

    @profile(torch.nn.Linear)
    def profile_linear(test_case):
        m = torch.nn.Linear(16, 8, bias=False)
        m(torch.ones(4, 16))
        torch.nn.Linear(16, 8)(torch.ones(4, 16))

    @profile(torch.nn.LSTM)
    def profile_lstm(test_case):
        m = torch.nn.LSTM(4, 8, batch_first=True)
        m(torch.ones(2, 3, 4))

    @profile(torch.nn.CrossEntropyLoss)
    def profile_cross_entropy(test_case):
        loss = torch.nn.CrossEntropyLoss()
        loss(torch.randn(16, 10), torch.randint(0, 10, (16,)))

    @profile(torch.split)
    def profile_split(test_case):
        torch.split(torch.ones(100), 30)

    @profile(torch.topk)
    def profile_topk(test_case):
        torch.topk(torch.randn(1000), 3)

    @profile(torch.stack)
    def profile_stack(test_case):
        x = torch.ones(10, 10)
        torch.stack([x, x, torch.zeros(10, 10)], dim=1)

    @profile(torch.einsum)
    def profile_einsum(test_case):
        torch.einsum("bij,bjk->bik", torch.ones(4, 5, 6), torch.ones(4, 6, 7))

    @profile(torch.matmul)
    def profile_matmul(test_case):
        torch.matmul(torch.ones(64, 64), torch.ones(64, 64), profile_description="square")
        torch.matmul(torch.ones(64), torch.ones(64))

    @profile(torch.linalg.norm)
    def profile_norm(test_case):
        torch.linalg.norm(torch.ones(64, 64), ord=2, dim=1)

    @profile(torch.where)
    def profile_where(test_case):
        x = torch.from_numpy(np.random.randn(10, 10).astype(np.float32))
        torch.where(x > 0, x, torch.zeros(10, 10))

    @profile(torch.Tensor.repeat)
    def profile_repeat(test_case):
        x = torch.ones(2, 3).to(torch.float64)
        x.repeat(4, 2)

    @profile(torch.nn.functional.interpolate)
    def profile_interpolate(test_case):
        torch.nn.functional.interpolate(torch.ones(1, 3, 8, 8), scale_factor=2.0, mode="bilinear", align_corners=False)

    @profile(torch.embedding)
    def profile_of_a_lookup(test_case):
        torch.embedding(torch.randn(10, 4), torch.tensor([[1, 2], [3, 4]]))

    @profile(torch.nn.Sequential)
    def profile_block(test_case):
        block = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        block(torch.ones(2, 4))

    @profile(torch.bernoulli)
    def profile_bernoulli(test_case):
        torch.bernoulli(torch.ones(100) * 0.5)

    @profile(torch.argwhere)
    def profile_argwhere(test_case):
        torch.argwhere(torch.ones(10, 10))


if __name__ == "__main__":
    unittest.main()
