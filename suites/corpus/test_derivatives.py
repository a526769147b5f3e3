"""
Derivatives: autograd.grad, functional derivatives, higher orders, hooks.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import numpy as np
import oneflow as flow
import torch
from torch.autograd import Function
from torch.autograd.functional import jacobian, hessian
from plumb import *


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y


class ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


class TestDerivatives(unittest.TestCase):
    @autotest(n=3, auto_backward=False)
    def test_grad_of_sum(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = (x ** 3).sum()
        (g,) = torch.autograd.grad(y, x)
        return g

    @autotest(n=3, auto_backward=False)
    def test_grad_of_grad(self):
        x = random_tensor(ndim=1, dim0=4)
        y = (x.sin() * x).sum()
        g = torch.autograd.grad(y, x, create_graph=True)[0]
        gg = torch.autograd.grad(g.sum(), x)[0]
        return g, gg

    @autotest(n=3, auto_backward=False)
    def test_third_derivative(self):
        x = random_tensor(ndim=0)
        y = x ** 4
        for _ in range(3):
            y = torch.autograd.grad(y, x, create_graph=True)[0]
        return y

    @autotest(n=3, auto_backward=False)
    def test_grad_with_respect_to_several(self):
        x = random_tensor(ndim=1, dim0=3)
        w = random_tensor(ndim=1, dim0=3)
        gx, gw = torch.autograd.grad((x * w).tanh().sum(), [x, w])
        return gx, gw

    @autotest(n=3, auto_backward=False)
    def test_allow_unused(self):
        x = random_tensor(ndim=1, dim0=3)
        w = random_tensor(ndim=1, dim0=3)
        gx, gw = torch.autograd.grad(x.sum(), (x, w), allow_unused=True)
        self.assertIsNone(gw)
        return gx

    @autotest(n=3, auto_backward=False)
    def test_grad_outputs(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        v = random_tensor(ndim=2, dim0=2, dim1=3, requires_grad=False)
        return torch.autograd.grad(outputs=x.exp(), inputs=x, grad_outputs=v)

    @autotest(n=3, auto_backward=False)
    def test_batched_grads(self):
        x = random_tensor(ndim=1, dim0=3)
        y = x ** 2
        (rows,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
        return rows

    @autotest(n=3, auto_backward=False)
    def test_retain_graph(self):
        x = random_tensor(ndim=1, dim0=3)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        return x.grad

    @autotest(n=3, auto_backward=False)
    def test_second_backward_raises(self):
        x = random_tensor(ndim=1, dim0=3)
        y = (x * x).sum()
        y.backward()
        with self.assertRaises(RuntimeError):
            y.backward()

    @autotest(n=3, auto_backward=False)
    def test_jacobian(self):
        x = random_tensor(ndim=1, dim0=3)

        def f(x):
            return x.exp() * x.sum()

        return jacobian(f, x)

    @autotest(n=3, auto_backward=False)
    def test_jacobian_of_two_inputs(self):
        a = random_tensor(ndim=1, dim0=2)
        b = random_tensor(ndim=1, dim0=2)
        return torch.autograd.functional.jacobian(lambda a, b: a * b.sin(), (a, b))

    @autotest(n=3, auto_backward=False)
    def test_hessian(self):
        x = random_tensor(ndim=1, dim0=3)
        return hessian(lambda x: (x ** 3).sum() + x.prod(), x)

    @autotest(n=3, auto_backward=False)
    def test_vjp_jvp(self):
        x = random_tensor(ndim=2, dim0=2, dim1=2)
        v = torch.ones(2)
        out, g = torch.autograd.functional.vjp(lambda x: x.exp().sum(1), x, v)
        out2, t = torch.autograd.functional.jvp(lambda x: x.exp().sum(1), x, torch.ones(2, 2))
        return out, g, out2, t

    @autotest(n=3, auto_backward=False)
    def test_vhp_hvp(self):
        x = random_tensor(ndim=1, dim0=3)
        v = torch.tensor([1.0, 0.5, -1.0])
        f = lambda x: x.pow(3).sum() + x[0] * x[1]
        return torch.autograd.functional.vhp(f, x, v)[1], torch.autograd.functional.hvp(f, x, v)[1]

    @autotest(n=3)
    def test_custom_function(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return Exp.apply(x) * 2

    @autotest(n=3)
    def test_custom_function_with_number(self):
        x = random_tensor(ndim=1, dim0=4)
        return ScaleGradient.apply(x, 3.0) + x

    @autotest(n=3, auto_backward=False)
    def test_gradient_penalty(self):
        m = torch.nn.Linear(3, 1)
        x = random_tensor(ndim=2, dim0=4, dim1=3)
        y = torch.tanh(m(x))
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
        penalty.backward()
        return penalty, m.weight.grad

    @autotest(n=3, auto_backward=False)
    def test_hook_on_tensor(self):
        x = random_tensor(ndim=1, dim0=3)
        y = x * 2
        y.register_hook(lambda g: g * 10)
        y.sum().backward()
        self.assertTrue(np.allclose(x.grad.numpy(), np.full(3, 20.0)))
        return x.grad

    @autotest(n=3, auto_backward=False)
    def test_retain_grad_of_inner(self):
        x = random_tensor(ndim=1, dim0=3)
        y = x.exp()
        y.retain_grad()
        (y * y).sum().backward()
        return y.grad, x.grad

    @autotest(n=3, auto_backward=False)
    def test_no_grad_scopes(self):
        x = random_tensor(ndim=1, dim0=3)
        with torch.no_grad():
            y = x * 2
            with torch.enable_grad():
                z = x * 3
        self.assertFalse(y.requires_grad)
        self.assertTrue(z.requires_grad)
        return y, z

    @autotest(n=3, auto_backward=False)
    def test_no_grad_as_decorator(self):
        @torch.no_grad()
        def double(t):
            return t * 2

        x = random_tensor(ndim=1, dim0=3)
        y = double(x)
        self.assertFalse(y.requires_grad)
        return y

    @autotest(n=3, auto_backward=False)
    def test_is_leaf_and_grad_fn(self):
        x = random_tensor(ndim=1, dim0=3)
        y = x + 1
        self.assertTrue(x.is_leaf)
        self.assertFalse(y.is_leaf)
        self.assertIsNone(x.grad)
        self.assertIsNotNone(y.grad_fn)
        return y

    @autotest(n=3, auto_backward=False)
    def test_backward_with_gradient(self):
        x = random_tensor(ndim=2, dim0=2, dim1=2)
        y = x.sigmoid()
        y.backward(torch.ones_like(y) * 2)
        return x.grad

    @autotest(n=3, auto_backward=False)
    def test_autograd_backward_of_two(self):
        x = random_tensor(ndim=1, dim0=3)
        a, b = x.sin(), x.cos()
        torch.autograd.backward([a, b], [torch.ones(3), torch.full((3,), 2.0)])
        return x.grad

    @autotest(n=3, auto_backward=False)
    def test_checkpoint_free_accumulation(self):
        x = random_tensor(ndim=1, dim0=4)
        for k in range(1, 4):
            (x * k).sum().backward()
        self.assertEqual(x.grad.tolist(), [6.0] * 4)
        return x.grad

    @autotest(n=3, order=2)
    def test_second_order_asked_for(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3, low=0.5, high=2)
        return x.log() * x

    def test_gradcheck(self):
        x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(Exp.apply, (x,)))

    def test_gradcheck_of_several(self):
        a = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
        b = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(torch.matmul, (a, b)))
        self.assertTrue(torch.autograd.gradcheck(lambda x: (x.sin(), x.cos().sum()), a))
        self.assertFalse(torch.autograd.gradcheck(lambda x: x.detach() * 3 + x, a, raise_exception=False))
        with self.assertRaises(ValueError):
            torch.autograd.gradcheck(torch.relu, torch.ones(2))

    @autotest(n=2, auto_backward=False)
    def test_twins_with_their_own_backwards(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = x.tanh()
        y.oneflow.sum().backward()
        y.pytorch.sum().backward()
        self.assertTrue(np.allclose(x.oneflow.grad.numpy(), x.pytorch.grad.numpy(), 1e-4, 1e-5))

    @autotest(n=2, auto_backward=False)
    def test_twins_in_turn(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        flow_x, torch_x = x.oneflow, x.pytorch
        for i in range(2):
            flow_y = flow.nn.functional.silu(flow_x)
            torch_y = torch.nn.functional.silu(torch_x)
            flow.sum(flow_y * flow_y).backward()
            torch.sum(torch_y * torch_y).backward()
            self.assertTrue(np.array_equal(flow_x.grad.numpy(), torch_x.grad.numpy()))
            flow_x.grad.mul_(2)
            torch_x.grad.mul_(2)
            flow_x.grad, torch_x.grad = None, None
        with flow.no_grad():
            flow_x.add_(1)
        with torch.no_grad():
            torch_x.add_(1)
        self.assertTrue(np.array_equal(flow_x.numpy(), torch_x.numpy()))
        return x, x.grad

    @autotest(n=3, auto_backward=False)
    def test_backward_through_dropout(self):
        m, k = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        torch.nn.functional.dropout(m(x), 0.5).sum().backward()
        k(torch.ones(1, 4)).sum().backward()
        return m.weight.grad, x.grad, k.weight.grad



if __name__ == "__main__":
    unittest.main()


class TestSecondBackward(unittest.TestCase):
    @autotest(n=2, auto_backward=False)
    def test_nothing_was_kept(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = (x + 1).reshape(3, 2).sum()
        y.backward()
        y.backward()
        return x.grad

    @autotest(n=2, auto_backward=False)
    def test_retained(self):
        x = random_tensor(ndim=1, dim0=3)
        y = x.exp().sum()
        y.backward(retain_graph=True)
        y.backward()
        with self.assertRaises(RuntimeError):
            y.backward()
        return x.grad

    @autotest(n=2, auto_backward=False)
    def test_of_other_inputs(self):
        x = random_tensor(ndim=1, dim0=3)
        w = random_tensor(ndim=1, dim0=3)
        z = x.exp() + w.sin()
        (g,) = torch.autograd.grad(z.sum(), x)
        (h,) = torch.autograd.grad(z.sum(), w)
        with self.assertRaises(RuntimeError):
            z.sum().backward()
        return g, h
