"""
Modules of one's own, containers, state.
Licensed under the Apache License, Version 2.0.
"""
import copy
import unittest
from collections import OrderedDict
from typing import List, Optional

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


class BasicBlock(torch.nn.Module):
    expansion: int = 1

    def __init__(self, planes: int, stride: int = 1, downsample: Optional[torch.nn.Module] = None) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(planes)
        self.conv2 = torch.nn.Conv2d(planes, planes * self.expansion, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(planes)
        self.relu = torch.nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class Mlp(torch.nn.Module):
    def __init__(self, sizes: List[int]):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers):
                x = torch.relu(x)
        return x


class Gate(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n) * 0.5)
        self.register_parameter("bias", None)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, scale=1.0):
        self.calls += 1
        return x * torch.sigmoid(self.weight) * scale

    def extra_repr(self):
        return f"n={self.weight.numel()}"


class Residual(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, *args, **kwargs):
        return x + self.inner(x, *args, **kwargs)


class Flip(torch.nn.Module):
    def forward(self, x):
        return x.flip(-1)


class Config:
    def __init__(self, **kwargs):
        for key, value in kwargs.items():
            setattr(self, key, value)

    @property
    def total(self):
        return self.width * self.depth

    def __repr__(self):
        return "Config(%d)" % self.total


@flow.unittest.skip_unless_1n1d()
class TestCustomModules(flow.unittest.TestCase):
    @autotest(n=2)
    def test_basic_block(test_case):
        m = BasicBlock(2)
        m.train(random())
        return m(random_tensor(ndim=4, dim0=2, dim1=2, dim2=4, dim3=4))

    @autotest(n=2)
    def test_basic_block_with_downsample(test_case):
        m = BasicBlock(2, stride=2, downsample=torch.nn.Sequential(torch.nn.Conv2d(2, 2, 1, 2), torch.nn.BatchNorm2d(2)))
        m.eval()
        return m(random_tensor(ndim=4, dim0=1, dim1=2, dim2=4, dim3=6))

    @autotest(n=2)
    def test_mlp(test_case):
        return Mlp([3, 4, 2])(random_tensor(ndim=2, dim0=5, dim1=3))

    @autotest(n=2)
    def test_gate_and_buffer(test_case):
        m = Gate(3)
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = m(x) + m(x, scale=2.0)
        test_case.assertEqual(m.calls.item(), 2)
        test_case.assertIsNone(m.bias)
        return y

    @autotest(n=2)
    def test_residual_of_residual(test_case):
        m = Residual(Residual(Gate(4)))
        return m(random_tensor(ndim=2, dim0=2, dim1=4), scale=0.5)

    @autotest(n=2)
    def test_module_without_init(test_case):
        return Flip()(random_tensor(ndim=2, dim0=2, dim1=4))

    @autotest(n=2)
    def test_sequential_of_ordered_dict(test_case):
        m = torch.nn.Sequential(OrderedDict([("lin", torch.nn.Linear(3, 4)), ("act", torch.nn.GELU()), ("gate", Gate(4))]))
        test_case.assertEqual(len(m), 3)
        return m(random_tensor(ndim=2, dim0=2, dim1=3)) + m.lin.bias

    @autotest(n=2)
    def test_sequential_by_index(test_case):
        m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return m[0](x), m[:2](x), m[-1](m[1](m[0](x)))

    @autotest(n=2)
    def test_module_dict(test_case):
        m = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Tanh()})
        x = random_tensor(ndim=2, dim0=2, dim1=2)
        for name in m:
            x = m[name](x)
        return x

    @autotest(n=2)
    def test_parameter_list(test_case):
        ps = torch.nn.ParameterList([torch.nn.Parameter(torch.full((2,), float(i))) for i in range(3)])
        x = random_tensor(ndim=1, dim0=2)
        for p in ps:
            x = x * p + 1
        return x

    @autotest(n=2, auto_backward=False)
    def test_state_dict(test_case):
        a = torch.nn.Linear(2, 3)
        b = torch.nn.Linear(2, 3)
        b.load_state_dict(a.state_dict())
        test_case.assertEqual(list(a.state_dict().keys()), ["weight", "bias"])
        x = random_tensor(ndim=2, dim0=2, dim1=2)
        return a(x) - b(x)

    @autotest(n=2)
    def test_named_parameters(test_case):
        m = Mlp([2, 3, 1])
        names = [n for n, p in m.named_parameters()]
        test_case.assertEqual(names, ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"])
        test_case.assertEqual(sum(p.numel() for p in m.parameters()), 13)
        return m(random_tensor(ndim=2, dim0=2, dim1=2))

    @autotest(n=2)
    def test_freeze(test_case):
        m = Mlp([2, 3, 1])
        for p in m.layers[0].parameters():
            p.requires_grad = False
        return m(random_tensor(ndim=2, dim0=2, dim1=2))

    @autotest(n=2)
    def test_apply_init(test_case):
        def init(module):
            if isinstance(module, torch.nn.Linear):
                torch.nn.init.ones_(module.weight)
                torch.nn.init.constant_(module.bias, 0.1)

        m = Mlp([2, 3, 1])
        m.apply(init)
        return m(random_tensor(ndim=2, dim0=2, dim1=2))

    @autotest(n=2)
    def test_children_and_training(test_case):
        m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.3)).eval()
        test_case.assertFalse(m.training)
        test_case.assertEqual(len(list(m.children())), 2)
        return m(random_tensor(ndim=2, dim0=2, dim1=2))

    @autotest(n=2)
    def test_forward_hook(test_case):
        m = torch.nn.Linear(2, 2)
        seen = []
        handle = m.register_forward_hook(lambda mod, inp, out: seen.append(out))
        y = m(random_tensor(ndim=2, dim0=2, dim1=2))
        handle.remove()
        test_case.assertEqual(len(seen), 1)
        return y

    @autotest(n=2)
    def test_hooks_change_what_they_see(test_case):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(2, 2)

            def forward(self, x):
                return self.fc(x) + 1

        m = Net()
        m.register_forward_pre_hook(lambda mod, inp: (inp[0] * 2,))
        m.fc.register_forward_hook(lambda mod, inp, out: out.relu())
        x = random_tensor(ndim=2, dim0=2, dim1=2)
        y = m(x)
        test_case.assertTrue(np.allclose(y.detach().numpy(), (torch.nn.functional.linear(x * 2, m.fc.weight, m.fc.bias).relu() + 1).detach().numpy(), 1e-5, 1e-5))
        return y

    @autotest(n=2)
    def test_module_to_double(test_case):
        m = torch.nn.Linear(2, 2).double()
        return m(random_tensor(ndim=2, dim0=2, dim1=2).double())

    @autotest(n=2)
    def test_config_object(test_case):
        cfg = Config(width=2, depth=3)
        test_case.assertEqual(cfg.total, 6)
        test_case.assertEqual(repr(cfg), "Config(6)")
        return random_tensor(ndim=2, dim0=cfg.width, dim1=cfg.depth).sum()

    @autotest(n=2)
    def test_local_module_class(test_case):
        class Scale(torch.nn.Module):
            def __init__(self, k):
                super(Scale, self).__init__()
                self.k = torch.nn.Parameter(torch.tensor(k))

            def forward(self, x):
                return self.k * x

        return Scale(2.0)(random_tensor(ndim=1, dim0=3))

    @autotest(n=2)
    def test_parametrisation_by_inheritance(test_case):
        class Scaled(Gate):
            def forward(self, x):
                return super().forward(x, scale=3.0)

        m = Scaled(2)
        test_case.assertTrue(isinstance(m, Gate))
        return m(random_tensor(ndim=1, dim0=2))

    def test_repr_of_module(test_case):
        m = flow.nn.Linear(2, 3, bias=False)
        test_case.assertEqual(str(m), "Linear(in_features=2, out_features=3, bias=False)")

    def test_repr_of_modules(test_case):
        m = flow.nn.Sequential(flow.nn.Linear(2, 3), flow.nn.ReLU())
        test_case.assertEqual(repr(m), "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n)")
        test_case.assertTrue("in_features=2" in f"{m[0]}")

    def test_zero_grad(test_case):
        m = flow.nn.Linear(2, 1)
        m(flow.ones(1, 2)).sum().backward()
        test_case.assertIsNotNone(m.weight.grad)
        m.zero_grad()
        test_case.assertTrue(m.weight.grad is None or np.all(m.weight.grad.numpy() == 0))

    def test_parameters_come_and_go(test_case):
        p = flow.nn.Parameter(flow.ones(2, 3))
        test_case.assertEqual(type(p), flow.nn.Parameter)
        test_case.assertEqual(type(p * 1), flow.Tensor)

        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = p
                self.extra = nn.Linear(2, 2)

            def forward(self, x):
                return x * self.weight

        m = Head()
        del m.extra
        test_case.assertEqual([n for n, _ in m.named_parameters()], ["weight"])
        m(flow.ones(2, 3)).sum().backward()
        del p.grad
        test_case.assertIsNone(m.weight.grad)

    @autotest(n=2)
    def test_weight_norm(test_case):
        plain = torch.nn.Linear(3, 2)
        weight = plain.weight.detach().clone()
        m = torch.nn.utils.weight_norm(plain)
        test_case.assertEqual(sorted(n for n, _ in m.named_parameters()), ["bias", "weight_g", "weight_v"])
        test_case.assertEqual(list(m.weight_g.shape), [2, 1])
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        torch.testing.assert_close(m(x), torch.nn.functional.linear(x, weight, m.bias))
        return m(x)

    @autotest(n=2)
    def test_weight_norm_of_convolutions(test_case):
        m = torch.nn.utils.weight_norm(torch.nn.Conv1d(3, 4, 3, stride=2, padding=1, bias=random_bool()), dim=None)
        n = torch.nn.utils.weight_norm(torch.nn.Conv2d(2, 3, (1, 2), dilation=(1, 2)))
        return m(random_tensor(ndim=3, dim0=2, dim1=3, dim2=7)), n(random_tensor(ndim=4, dim0=2, dim1=2, dim2=3, dim3=5))

    def test_weight_norm_of_a_module_that_is_kept(test_case):
        m = nn.Linear(3, 2)
        torch.nn.utils.weight_norm(m)
        with test_case.assertRaises(NotImplementedError):
            m(flow.ones(2, 3))


if __name__ == "__main__":
    unittest.main()
