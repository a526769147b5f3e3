"""
Convolutions as modules and functions.
Licensed under the Apache License, Version 2.0.
"""
import unittest
from collections import OrderedDict

import numpy as np

import oneflow as flow
import oneflow.nn as nn
import oneflow.unittest

from oneflow.test_utils.test_util import GenArgList
from oneflow.test_utils.automated_test_util import *


def _test_conv2d_of_ones(test_case, conv, data, weight, output):
    x = flow.tensor(data, dtype=flow.float32, requires_grad=True)
    conv.weight = flow.nn.Parameter(flow.Tensor(weight))
    out = conv(x)
    test_case.assertTrue(np.allclose(out.numpy(), output, 1e-6, 1e-6))
    out.sum().backward()
    test_case.assertEqual(x.grad.shape, x.shape)


def _test_conv1d_shapes(test_case, in_channels, out_channels, kernel, bias):
    m = nn.Conv1d(in_channels, out_channels, kernel, bias=bias)
    x = flow.tensor(np.random.randn(2, in_channels, 9).astype(np.float32))
    out = m(x)
    test_case.assertEqual(tuple(out.shape), (2, out_channels, 9 - kernel + 1))
    test_case.assertEqual(m.bias is None, not bias)
    return out


@flow.unittest.skip_unless_1n1d()
class TestConvModules(flow.unittest.TestCase):
    @autotest(n=5)
    def test_conv1d_with_random_data(test_case):
        channels = random(1, 6)
        m = torch.nn.Conv1d(
            in_channels=channels,
            out_channels=random(1, 20),
            kernel_size=random(1, 4),
            stride=random() | nothing(),
            padding=random(1, 3).to(int) | nothing(),
            dilation=random(1, 5) | nothing(),
            groups=random(1, 5) | nothing(),
            padding_mode=constant("zeros") | nothing(),
        )
        m.train(random())
        device = random_device()
        m.to(device)
        x = random_tensor(ndim=3, dim1=channels).to(device)
        y = m(x)
        return y

    @autotest(n=5, rtol=1e-3, atol=1e-4)
    def test_conv2d_with_random_data(test_case):
        channels = random(1, 6)
        m = torch.nn.Conv2d(
            in_channels=channels,
            out_channels=random(1, 20),
            kernel_size=random(1, 4),
            stride=random() | nothing(),
            padding=random(1, 3).to(int) | nothing(),
            dilation=random(1, 5) | nothing(),
            groups=random(1, 5) | nothing(),
            padding_mode=constant("zeros") | nothing(),
        )
        m.train(random())
        device = random_device()
        m.to(device)
        x = random_tensor(ndim=4, dim1=channels, dim2=random(5, 9), dim3=random(5, 9)).to(device)
        return m(x)

    @autotest(n=4, check_allclose=True)
    def test_conv3d_with_random_data(test_case):
        channels = random(1, 4)
        m = torch.nn.Conv3d(channels, random(1, 5), kernel_size=random(1, 3), bias=random_bool())
        x = random_tensor(ndim=5, dim0=2, dim1=channels, dim2=random(3, 5), dim3=random(3, 5), dim4=random(3, 5))
        return m(x)

    @autotest(n=5)
    def test_deconv2d(test_case):
        channels = random(1, 6)
        m = torch.nn.ConvTranspose2d(
            in_channels=channels,
            out_channels=random(1, 8),
            kernel_size=random(1, 4),
            stride=random(1, 3) | nothing(),
            padding=random(0, 2).to(int) | nothing(),
            output_padding=constant(0),
            bias=random_bool(),
            dilation=random(1, 3) | nothing(),
        )
        m.train(random())
        device = random_device()
        m.to(device)
        x = random_tensor(ndim=4, dim1=channels, dim2=random(4, 7), dim3=random(4, 7)).to(device)
        return m(x)

    @autotest(n=3)
    def test_deconv1d_groups(test_case):
        m = torch.nn.ConvTranspose1d(4, 6, kernel_size=3, stride=2, padding=1, output_padding=1, groups=2)
        x = random_tensor(3, 2, 4, random(3, 7))
        return m(x)

    @autotest(n=3)
    def test_conv2d_same_padding(test_case):
        m = torch.nn.Conv2d(3, 5, kernel_size=(3, 5), padding="same", dilation=(1, 2))
        x = random_tensor(4, random(1, 3), 3, 8, 11)
        return m(x)

    @autotest(n=3)
    def test_conv2d_reflect_padding(test_case):
        m = torch.nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=oneof("reflect", "replicate", "circular"))
        x = random_tensor(ndim=4, dim0=2, dim1=2, dim2=6, dim3=7)
        return m(x)

    @autotest(n=4)
    def test_depthwise_conv2d(test_case):
        channels = random(2, 5).to(int).value()
        m = torch.nn.Conv2d(channels, channels * 2, 3, groups=channels, padding=1)
        x = random_tensor(ndim=4, dim0=1, dim1=channels, dim2=6, dim3=6)
        return m(x)

    @autotest(n=3)
    def test_conv2d_unbatched(test_case):
        m = torch.nn.Conv2d(3, 4, (2, 3), stride=(2, 1))
        x = random_tensor(ndim=3, dim0=3, dim1=7, dim2=random(6, 9))
        return m(x)

    @autotest(n=3)
    def test_functional_conv2d(test_case):
        img = torch.ones((1, 3, 8, 8), requires_grad=True)
        kernel = torch.ones((6, 3, 3, 3), requires_grad=True)
        bias = random_tensor(ndim=1, dim0=6)
        return torch.nn.functional.conv2d(img, kernel, bias, stride=2, padding=(1, 0))

    @autotest(n=3, check_graph="ValidatedFalse")
    def test_conv2d_channels_last_input(test_case):
        m = torch.nn.Conv2d(3, 4, 3)
        x = random_tensor(ndim=4, dim0=2, dim1=6, dim2=7, dim3=3)
        return m(x.permute(0, 3, 1, 2))

    @autotest(n=3)
    def test_conv2d_weight_is_shared(test_case):
        conv = torch.nn.Conv2d(2, 2, 3, padding=1, bias=False)
        x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=5, dim3=5)
        y = conv(x)
        return conv(torch.relu(y)) + x

    @autotest(n=2, auto_backward=False)
    def test_conv2d_backward_by_hand(test_case):
        conv = torch.nn.Conv2d(2, 3, 2)
        x = random_tensor(ndim=4, dim0=2, dim1=2, dim2=4, dim3=4)
        loss = conv(x).pow(2).mean()
        loss.backward()
        return loss, x.grad, conv.weight.grad, conv.bias.grad

    def test_conv2d_of_ones(test_case):
        conv = flow.nn.Conv2d(1, 3, (3, 3), bias=False)
        data = np.ones((1, 1, 5, 5), dtype=np.float32)
        weight = np.ones((3, 1, 3, 3))
        output = np.full((1, 3, 3, 3), 9.0)
        _test_conv2d_of_ones(test_case, conv, data, weight, output)

    def test_conv1d_shapes(test_case):
        arg_dict = OrderedDict()
        arg_dict["test_fun"] = [_test_conv1d_shapes]
        arg_dict["in_channels"] = [1, 3]
        arg_dict["out_channels"] = [2, 4]
        arg_dict["kernel"] = [1, 3]
        arg_dict["bias"] = [True, False]
        for arg in GenArgList(arg_dict):
            arg[0](test_case, *arg[1:])

    @autotest(n=3)
    def test_unfold_then_matmul_is_conv(test_case):
        x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=5, dim3=6)
        w = random_tensor(ndim=4, dim0=4, dim1=3, dim2=2, dim3=2)
        cols = torch.nn.functional.unfold(x, kernel_size=(2, 2))
        out = w.view(4, -1).matmul(cols)
        return torch.nn.functional.fold(out, output_size=(4, 5), kernel_size=(1, 1))

    @autotest(n=3)
    def test_lazy_sequence_of_convs(test_case):
        m = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3, padding=1),
            torch.nn.BatchNorm2d(4),
            torch.nn.ReLU(inplace=True),
            torch.nn.Conv2d(4, 2, 1),
        )
        m.train(random())
        x = random_tensor(ndim=4, dim0=2, dim1=1, dim2=6, dim3=5)
        return m(x)

    @profile(torch.nn.functional.conv2d)
    def profile_conv2d(test_case):
        input = torch.ones(8, 16, 32, 32)
        weight = torch.ones(16, 16, 3, 3)
        bias = torch.ones(16)
        torch.nn.functional.conv2d(input, weight, padding=1)
        torch.nn.functional.conv2d(input, weight, bias, padding=1, stride=2)


if __name__ == "__main__":
    unittest.main()
