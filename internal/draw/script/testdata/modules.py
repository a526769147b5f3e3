import copy
import unittest
import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *

class Net(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc1 = torch.nn.Linear(i, 4)
        self.act = torch.nn.ReLU()
        self.fc2 = torch.nn.Linear(4, o)
        self.scale = torch.nn.Parameter(torch.ones(o))
        self.register_buffer("shift", torch.zeros(o))

    def forward(self, x):
        x = self.act(self.fc1(x))
        if self.training:
            x = x * 2
        return self.fc2(x) * self.scale + self.shift

class Block(nn.Module):
    def __init__(self, n):
        super(Block, self).__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(n)])
        self.norm = nn.LayerNorm(3)
    def forward(self, x):
        for l in self.layers:
            x = torch.tanh(l(x)) + x
        return self.norm(x)

class MyLinear(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2

class TestModules(flow.unittest.TestCase):
    @autotest(n=3)
    def test_net(test_case):
        m = Net(3, 2)
        m.train(random())
        m.to(random_device())
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        return m(x)

    @autotest(n=3)
    def test_block(test_case):
        m = Block(2)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        return m(x)

    @autotest(n=3)
    def test_sequential_of_own(test_case):
        m = torch.nn.Sequential(Net(3, 2), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(2, 1)))
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        assert len(m) == 3
        return m(x), m[2][0].weight

    @autotest(n=3, auto_backward=False)
    def test_names(test_case):
        m = Net(3, 2)
        names = [n for n, p in m.named_parameters()]
        test_case.assertEqual(names, ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
        test_case.assertEqual([n for n, _ in m.named_buffers()], ["shift"])
        test_case.assertEqual(sum(p.numel() for p in m.parameters()), 2 + 12 + 4 + 8 + 2)
        test_case.assertEqual([n for n, _ in m.named_modules()], ["", "fc1", "act", "fc2"])
        test_case.assertEqual(sorted(m.state_dict().keys()), sorted(names + ["shift"]))
        test_case.assertTrue(isinstance(m, torch.nn.Module))
        test_case.assertTrue(isinstance(m.fc1, torch.nn.Linear))
        test_case.assertTrue(isinstance(m.scale, torch.nn.Parameter))
        l = torch.nn.Linear(2, 3)
        test_case.assertEqual([n for n, _ in l.named_parameters()], ["weight", "bias"])
        test_case.assertEqual(len(list(l.parameters())), 2)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        return m.eval()(x)

    @autotest(n=3, auto_backward=False)
    def test_state(test_case):
        a, b = Net(3, 2), Net(3, 2)
        b.load_state_dict(a.state_dict())
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        y, z = a(x), b(x)
        test_case.assertTrue(np.allclose(y.detach().numpy(), z.detach().numpy()))
        return y, z

    @autotest(n=3)
    def test_dict(test_case):
        d = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3), "b": torch.nn.Tanh()})
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        for k in d.keys():
            x = d[k](x)
        return x

    @autotest(n=3)
    def test_append(test_case):
        layers = torch.nn.ModuleList()
        for i in range(random(1, 4).to(int).value()):
            layers.append(torch.nn.Linear(3, 3))
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        for l in layers:
            x = l(x)
        return x

    @autotest(n=3)
    def test_extends(test_case):
        m = MyLinear(3, 2)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        return m(x), m.weight * 2

    @autotest(n=3, auto_backward=False)
    def test_manual_step(test_case):
        m = Net(3, 2)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        for _ in range(2):
            loss = m(x).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                for p in m.parameters():
                    p -= 0.1 * p.grad
            m.zero_grad()
        return loss

    @autotest(n=3)
    def test_local_class(test_case):
        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(3) * 2)
            def forward(self, x):
                return x * self.w
        m = Scale().double()
        x = random_tensor(ndim=2, dim0=5, dim1=3).to(torch.float64)
        return m(x)

    @autotest(n=2)
    def test_freeze(test_case):
        m = Net(3, 2)
        for p in m.fc1.parameters():
            p.requires_grad = False
        m.fc2.requires_grad_(False)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        return m(x)

