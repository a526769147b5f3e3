"""
Normalization and pooling.
Licensed under the Apache License, Version 2.0.
"""
import math
import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import GenArgDict
from packaging import version
from typing import Union, Tuple

unary_types = Union[int, Tuple[int]]


def layer_norm_numpy(x, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    var = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


@flow.unittest.skip_unless_1n1d()
class TestNorm(flow.unittest.TestCase):
    @autotest(n=4, rtol=1e-3, atol=1e-3)
    def test_batchnorm1d(test_case):
        device = random_device()
        channel = random(1, 4).to(int)
        m = torch.nn.BatchNorm1d(
            num_features=channel,
            eps=random(0.0001, 0.01).to(float) | nothing(),
            momentum=random().to(float) | nothing(),
            affine=random().to(bool),
            track_running_stats=random().to(bool),
        ).to(device)
        m.train(random())
        x = random_tensor(ndim=3, dim0=random(2, 5), dim1=channel, requires_grad=True).to(device)
        return m(x)

    @autotest(n=4, rtol=1e-3, atol=1e-3)
    def test_batchnorm2d(test_case):
        channel = random(1, 4).to(int)
        m = torch.nn.BatchNorm2d(num_features=channel, track_running_stats=random().to(bool))
        m.train(random())
        x = random_tensor(ndim=4, dim0=2, dim1=channel, dim2=3, dim3=random(2, 5))
        return m(x)

    @autotest(n=3, rtol=1e-3, atol=1e-3)
    def test_batchnorm3d_eval(test_case):
        m = torch.nn.BatchNorm3d(3)
        m.eval()
        x = random_tensor(ndim=5, dim0=2, dim1=3, dim2=2, dim3=3, dim4=2)
        return m(x)

    @autotest(n=3, auto_backward=False)
    def test_batchnorm_running_stats(test_case):
        m = torch.nn.BatchNorm1d(4, momentum=0.3)
        m.train()
        for _ in range(3):
            m(random_tensor(ndim=2, dim0=5, dim1=4))
        test_case.assertEqual(m.num_batches_tracked.item(), 3)
        return m.running_mean, m.running_var

    @autotest(n=4, rtol=1e-3)
    def test_groupnorm(test_case):
        groups = random(1, 4)
        m = torch.nn.GroupNorm(
            num_groups=groups,
            num_channels=groups * 2,
            eps=random(0.0001, 0.01).to(float) | nothing(),
            affine=random().to(bool) | nothing(),
        )
        m.train(random())
        x = random_tensor(ndim=4, dim0=2, dim1=groups * 2, dim2=random(2, 6), dim3=3)
        return m(x)

    @autotest(n=4, rtol=1e-3)
    def test_layernorm(test_case):
        m = torch.nn.LayerNorm(
            normalized_shape=[3, 5],
            eps=random(1e-5, 1e-3).to(float) | nothing(),
            elementwise_affine=random().to(bool) | nothing(),
        )
        x = random_tensor(ndim=4, dim0=2, dim1=random(1, 4), dim2=3, dim3=5)
        return m(x)

    @autotest(n=3, rtol=1e-3)
    def test_layernorm_of_drawn_shape(test_case):
        dim = random(2, 9).to(int).value()
        m = torch.nn.LayerNorm(dim)
        x = random_tensor(ndim=2, dim0=4, dim1=dim)
        y = m(x)
        test_case.assertEqual(list(y.shape), [4, dim])
        return y

    @autotest(n=3, rtol=1e-3)
    def test_instancenorm2d(test_case):
        channel = random(1, 5)
        m = torch.nn.InstanceNorm2d(num_features=channel, affine=random_bool(), track_running_stats=False)
        m.train(random())
        return m(random_tensor(ndim=4, dim0=2, dim1=channel, dim2=4, dim3=5))

    def test_layernorm_against_numpy(test_case):
        x = np.random.RandomState(3).randn(4, 6).astype(np.float32)
        m = flow.nn.LayerNorm(6)
        y = m(flow.tensor(x))
        test_case.assertTrue(np.allclose(y.detach().numpy(), layer_norm_numpy(x), 1e-4, 1e-4))

    @autotest(n=3)
    def test_local_response_norm(test_case):
        m = torch.nn.LocalResponseNorm(size=3, alpha=0.01)
        return m(random_tensor(ndim=4, dim0=1, dim1=5, dim2=3, dim3=4))

    @autotest(n=3)
    def test_normalize(test_case):
        ndim = random(2, 5).to(int).value()
        shape = list(random(2, 5).to(int).eval() for _ in range(ndim))
        dim = random(-ndim, ndim).to(int).value()
        p = random(1, 5).to(int) | constant(2.0)
        x = random_tensor(len(shape), *shape)
        return torch.nn.functional.normalize(x, p, dim, 1e-12)

    @autotest(n=3)
    def test_functional_batch_norm(test_case):
        x = random_tensor(ndim=2, dim0=6, dim1=3)
        mean = torch.zeros(3)
        var = torch.ones(3)
        y = torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.1)
        return y, mean, var

    @autotest(n=3, rtol=1e-3)
    def test_weights_of_norms_are_changed(test_case):
        m = torch.nn.GroupNorm(2, 4)
        torch.nn.init.constant_(m.weight, 0.5)
        torch.nn.init.zeros_(m.bias)
        return m(random_tensor(ndim=3, dim0=3, dim1=4, dim2=5))


@flow.unittest.skip_unless_1n1d()
class TestPool(flow.unittest.TestCase):
    @autotest(n=4)
    def test_maxpool1d(test_case):
        return_indices = random().to(bool).value()
        m = torch.nn.MaxPool1d(
            kernel_size=random(4, 6).to(_size_1_t),
            stride=random(1, 3).to(_size_1_t) | nothing(),
            padding=random(1, 3).to(_size_1_t) | nothing(),
            dilation=random(2, 4).to(_size_1_t) | nothing(),
            ceil_mode=random().to(bool),
            return_indices=return_indices,
        )
        m.train(random())
        device = random_device()
        m.to(device)
        x = random_tensor(ndim=3, dim2=random(20, 22)).to(device)
        y = m(x)
        if return_indices:
            return y[0]
        else:
            return y

    @autotest(n=4)
    def test_maxpool2d_with_indices(test_case):
        m = torch.nn.MaxPool2d(kernel_size=random(2, 4).to(_size_2_t), return_indices=True)
        x = random_tensor(ndim=4, dim1=2, dim2=random(8, 10), dim3=random(8, 10))
        y, indices = m(x)
        return y, indices

    @autotest(n=4)
    def test_avgpool2d(test_case):
        m = torch.nn.AvgPool2d(
            kernel_size=random(4, 6),
            stride=random(1, 3) | nothing(),
            padding=random(1, 3) | nothing(),
            ceil_mode=random(),
            count_include_pad=random(),
            divisor_override=random(1, 4).to(int),
        )
        m.train(random())
        x = random_tensor(ndim=4, dim0=random(1, 3), dim1=2, dim2=random(20, 22), dim3=random(20, 22))
        return m(x)

    @autotest(n=3)
    def test_avgpool3d(test_case):
        m = torch.nn.AvgPool3d(kernel_size=(2, 3, 2), stride=random(1, 3))
        x = random_tensor(ndim=5, dim0=1, dim1=2, dim2=5, dim3=6, dim4=5)
        return m(x)

    @autotest(n=4)
    def test_adaptive_avgpool2d(test_case):
        m = torch.nn.AdaptiveAvgPool2d(output_size=random().to(_size_2_opt_t_not_none))
        m.train(random())
        x = random_tensor(ndim=random(3, 5), dim1=random(3, 8), dim2=random(3, 8), dim3=random(3, 8))
        return m(x)

    @autotest(n=3)
    def test_adaptive_maxpool1d(test_case):
        m = torch.nn.AdaptiveMaxPool1d(random(1, 5), return_indices=True)
        y, idx = m(random_tensor(ndim=3, dim0=2, dim1=3, dim2=random(6, 12)))
        return y, idx

    @autotest(n=3)
    def test_max_unpool2d(test_case):
        pool = torch.nn.MaxPool2d(2, stride=2, return_indices=True)
        unpool = torch.nn.MaxUnpool2d(2, stride=2)
        x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=4, dim3=6)
        output, indices = pool(x)
        return unpool(output, indices, output_size=x.size())

    @autotest(n=3)
    def test_lppool(test_case):
        m = torch.nn.LPPool2d(norm_type=2, kernel_size=2)
        return m(random_tensor(ndim=4, dim0=2, dim1=1, dim2=4, dim3=4, low=0.1, high=2))

    @autotest(n=3)
    def test_functional_max_pool2d(test_case):
        x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=9, dim3=7)
        return torch.nn.functional.max_pool2d(x, 3, stride=(2, 1), padding=1, ceil_mode=True)

    def test_maxpool_sizes(test_case):
        arg_dict = OrderedDict()
        arg_dict["kernel_size"] = [2, 3]
        arg_dict["stride"] = [1, 2]
        arg_dict["padding"] = [0, 1]
        for arg in GenArgDict(arg_dict):
            m = flow.nn.MaxPool2d(**arg)
            out = m(flow.randn(1, 1, 7, 8))
            h = math.floor((7 + 2 * arg["padding"] - arg["kernel_size"]) / arg["stride"] + 1)
            test_case.assertEqual(out.shape[2], h)

    @autotest(n=2)
    def test_pool_of_transposed(test_case):
        x = random_tensor(ndim=4, dim0=1, dim1=6, dim2=6, dim3=2).transpose(1, 3)
        return torch.nn.functional.avg_pool2d(x, 2), torch.nn.functional.max_pool2d(x, (2, 3))


if __name__ == "__main__":
    unittest.main()
