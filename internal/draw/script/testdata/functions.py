import copy
import unittest
import numpy as np
import oneflow as flow
from oneflow.test_utils.automated_test_util import *

class MyExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        y = torch.exp(x) * k
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * 3, None

class MulAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.k = 2
        return a * b, a + b
    @staticmethod
    def backward(ctx, ga, gb):
        a, b = ctx.saved_tensors
        return ga * b * ctx.k + gb, ga * a + gb

class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)
    @staticmethod
    def backward(ctx, g):
        return g

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seq = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.w = torch.nn.Parameter(torch.ones(3))
    def forward(self, x):
        return self.seq(x) * self.w

class TestFn(unittest.TestCase):
    @autotest(n=3, check_graph=False)
    def test_exp(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = MyExp.apply(x, 2.0)
        (g,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
        self.assertTrue(np.allclose(g.numpy(), 3 * y.detach().numpy(), 1e-4, 1e-5))
        self.assertTrue(np.allclose(y.detach().numpy(), 2 * np.exp(x.detach().numpy()), 1e-4, 1e-5))
        return y
    @autotest(n=3, check_graph=False)
    def test_two(self):
        a = random_tensor(ndim=2, dim0=2, dim1=3)
        b = random_tensor(ndim=2, dim0=2, dim1=3)
        y, z = MulAdd.apply(a, b)
        ga, gb = torch.autograd.grad(y.sum() + z.sum(), [a, b], retain_graph=True)
        self.assertTrue(np.allclose(ga.numpy(), 2 * b.detach().numpy() + 1, 1e-4, 1e-5))
        self.assertTrue(np.allclose(gb.numpy(), a.detach().numpy() + 1, 1e-4, 1e-5))
        return y, z
    @autotest(n=3)
    def test_ste(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        f = STE.apply
        return f(x)
    @autotest(n=3, auto_backward=False)
    def test_deepcopy(self):
        m = Net()
        m.eval()
        c = copy.deepcopy(m)
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y, z = m(x), c(x)
        self.assertTrue(np.allclose(y.detach().numpy(), z.detach().numpy()))
        z.sum().backward()
        assert m.w.grad is None
        assert c.w.grad is not None
        l = torch.nn.BatchNorm1d(3)
        k = copy.deepcopy(l)
        return y, z, l(x), k(x)
