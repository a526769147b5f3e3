"""
Copyright 2020 The OneFlow Authors. All rights reserved.
Licensed under the Apache License, Version 2.0.

AutoTest as its first articles show it.
"""
import os
import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import *


class random_even(generator):
    def __init__(self, low, high):
        self.low = low
        self.high = high
        super().__init__([])

    def _calc_value(self):
        return 2 * (np.random.randint(self.low, self.high))


class length_or_default(generator):
    def __init__(self, length, default):
        self.length = pack(length)
        self.default = default
        super().__init__([self.length])

    def _calc_value(self):
        n = self.length.value()
        return n if n > 2 else self.default


@flow.unittest.skip_unless_1n1d()
class TestOldForms(flow.unittest.TestCase):
    @autotest()
    def test_relu_of_the_article(test_case):
        m = torch.nn.ReLU(inplace=random().to(bool))
        m.train(random())
        device = random_device()
        m.to(device)
        x = random_pytorch_tensor().to(device)
        y = m(x + 0)
        return y

    @autotest(n=5, auto_backward=True)
    def test_random_pytorch_tensor_of_dims(test_case):
        device = random_device()
        x = random_pytorch_tensor(4, 2, 3, random(0, 5), 2).to(device)
        return torch.exp(x)

    @autotest(n=5, auto_backward=False)
    def test_without_backward(test_case):
        device = random_device()
        x = random_pytorch_tensor(ndim=2, dim0=3, dim1=random(1, 6), requires_grad=False).to(device)
        return torch.argmax(x, dim=random(0, 2).to(int))

    @autotest(n=3)
    def test_device_as_value(test_case):
        device = random_device()
        x = torch.ones(2, 3, device=device)
        y = random_tensor(ndim=2, dim0=2, dim1=3).to(device.value())
        return x + y

    @autotest(n=3)
    def test_cpu_device(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3).to(cpu_device())
        return x.tan()

    @autotest(n=3)
    def test_own_generator(test_case):
        n = random_even(1, 4)
        x = random_tensor(ndim=2, dim0=n, dim1=n)
        return x.t() @ x

    @autotest(n=3)
    def test_generator_with_child(test_case):
        dim = length_or_default(random(1, 5).to(int), 4)
        x = random_tensor(ndim=1, dim0=dim)
        test_case.assertTrue(dim.value() > 2)
        return x.cumsum(0)

    @autotest(n=3)
    def test_generator_arithmetic(test_case):
        half = random(1, 4)
        x = random_tensor(ndim=2, dim0=half * 2, dim1=1 + half)
        m = torch.nn.Linear(half + 1, half * 2 - 1)
        return m(x)

    @autotest(n=3)
    def test_generator_size(test_case):
        g = random(1, 3) | nothing() | constant(2)
        test_case.assertEqual(g.size(), 3)
        return torch.nn.functional.leaky_relu(random_tensor(ndim=1, dim0=4))

    @autotest(n=3)
    def test_oneof_and_possibility(test_case):
        alpha = oneof(random().to(float), constant(1.0), possibility=0.5)
        m = torch.nn.ELU(alpha=alpha)
        return m(random_tensor(ndim=2, dim0=2, dim1=4))

    @autotest(n=3)
    def test_random_or_nothing(test_case):
        m = torch.nn.CELU(alpha=random_or_nothing(1, 3).to(float))
        m.train(random_bool())
        return m(random_tensor(ndim=2, dim0=2, dim1=4))

    @autotest(n=3)
    def test_random_bool_condition(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=4)
        if random_bool().value():
            x = x.t()
        return x.sum(0)

    @autotest(n=3, rtol=1e-3, atol=1e-3, check_graph=True, check_allclose=True, check_dtype=True, check_grad_use_random_data=False)
    def test_every_flag(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=4)
        return torch.softmax(x, dim=1)

    @autotest(n=3, check_graph="ValidatedFalse", auto_backward="auto", include_complex=False)
    def test_strange_flags(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=4, requires_grad=False)
        return x.sign()

    @autotest(n=2, auto_backward=True if os.getenv("NEVER_SET") is None else False)
    def test_expression_as_flag(test_case):
        return random_tensor(ndim=1, dim0=3).log1p()

    @autotest(n=3)
    def test_dual_value_of_shape(test_case):
        x = random_tensor(ndim=3, dim0=2)
        n = x.oneflow.shape[1]
        m = x.pytorch.size(2)
        return x.reshape(2, n * m)

    @autotest(n=3)
    def test_choice_tensor(test_case):
        x = choice_tensor(5, size=(2, 3), replace=True, dtype=float, requires_grad=True)
        return x * x

    @autotest(n=3)
    def test_choice_of_values(test_case):
        mask = choice_tensor([0, 1], (2, 3)).to(torch.bool)
        return random_tensor(ndim=2, dim0=2, dim1=3).masked_fill(mask, value=random().to(float))

    @autotest(n=3, auto_backward=False)
    def test_random_dtype(test_case):
        dtype = random_dtype(["arithmetic", "half"])
        x = random_tensor(ndim=2, dim0=2, dim1=3, dtype=int).to(dtype)
        return x + 1

    @autotest(n=3, auto_backward=False)
    def test_dtype_object(test_case):
        dtype = torch.float64
        return torch.zeros(2, dtype=dtype), torch.ones(3, dtype=random_dtype(["int"]))

    @autotest(n=3)
    def test_typed_randoms(test_case):
        kernel = random(1, 3).to(_size_2_t)
        pads = random(0, 3).to(_size_4_t) | random(0, 3).to(_size_2_t)
        x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=6, dim3=6)
        return torch.nn.functional.pad(x, pads.value()), torch.nn.functional.avg_pool2d(x, kernel.value())

    @autotest(n=3)
    def test_upsample(test_case):
        x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=3, dim3=3)
        m = torch.nn.Upsample(scale_factor=random(1, 4).to(float), mode=oneof("bilinear", "bicubic"), align_corners=random_bool())
        return m(x)

    @autotest(n=3)
    def test_softshrink_of_unknown_keyword(test_case):
        m = torch.nn.Softshrink(alpha=random() | nothing())
        return m(random_tensor(ndim=1, dim0=4))

    @autotest(n=3)
    def test_identity_swallows(test_case):
        m = torch.nn.Identity(54, unused_argument1=0.1, unused_argument2=False)
        m.train(random())
        return m(random_tensor(ndim=2, dim0=2, dim1=3))

    @unittest.skipIf(os.getenv("ONEFLOW_TEST_CPU_ONLY"), "only test cpu cases")
    @autotest(n=2, check_graph=False)
    def test_half_on_gpu(test_case):
        device = gpu_device()
        x = random_tensor(ndim=2, dim0=2, dim1=3).to(device)
        return x.half().float() * 2

    @autotest(n=2)
    def test_tensor_to_device_by_name(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return x.to("cuda" if int(os.getenv("RANK", "0")) == 1 else "cpu").atan()

    @autotest(n=2)
    def test_module_by_attribute(test_case):
        m = torch.nn.Linear(3, 3)
        m.weight = torch.nn.Parameter(torch.eye(3))
        m.bias = None
        return m(random_tensor(ndim=2, dim0=2, dim1=3))

    @autotest(n=2)
    def test_parameters_of_module(test_case):
        m = torch.nn.Linear(3, 3)
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return m(x) + m.weight.sum() + sum(p.sum() for p in m.parameters())

    @autotest(n=3)
    def test_tensor_of_tuple_of_sizes(test_case):
        size = tuple(random(1, 4).to(int).value() for _ in range(3))
        x = random_tensor(3, *size)
        return x.reshape(size[0] * size[1], size[2]), x.sum(dim=[0, 2])

    def test_driver_of_test_util(test_case):
        arg_dict = OrderedDict()
        arg_dict["device"] = ["cuda", "cpu"] if os.getenv("ONEFLOW_TEST_CPU_ONLY") is None else ["cpu"]
        arg_dict["data_type"] = ["float32", "double", "int32"]
        for arg in GenArgList(arg_dict):
            device, data_type = arg
            x = flow.ones(2, 3, dtype=type_name_to_flow_type[data_type], device=flow.device(device))
            test_case.assertTrue(np.array_equal(x.numpy(), np.ones((2, 3), dtype=type_name_to_np_type[data_type])))

    def test_driver_with_many_functions(test_case):
        def _test_abs(test_case, shape):
            x = flow.tensor(np.random.randn(*shape))
            test_case.assertTrue(np.allclose(flow.abs(x).numpy(), np.abs(x.numpy())))

        def _test_neg(test_case, shape):
            x = flow.tensor(np.random.randn(*shape))
            test_case.assertTrue(np.allclose((-x).numpy(), -x.numpy()))

        for test_fun, shape in GenCartesianProduct([[_test_abs, _test_neg], [(2,), (3, 4)]]):
            test_fun(test_case, shape)

    @profile(torch.nn.ReLU)
    def profile_relu(test_case):
        torch.nn.ReLU()(torch.ones(1, 128, 28, 28))


if __name__ == "__main__":
    unittest.main()
