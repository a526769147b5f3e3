"""
Tensors where numbers are wanted, and results that are their argument itself.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import torch
import torch.nn.functional as F
from plumb import *


class TestNumbers(unittest.TestCase):
    @autotest(n=1, auto_backward=False)
    def test_scalars(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        n, h = torch.tensor(2), torch.tensor(0.5)
        return (
            torch.arange(n), torch.arange(torch.tensor(0), torch.tensor(6), n), torch.full((2,), h), torch.full((2,), n),
            torch.full((2,), torch.tensor(True)), torch.linspace(h, 2, n), x.add(x, alpha=h), F.leaky_relu(x, h), F.threshold(x, h, 9.0),
            F.hardtanh(x, torch.tensor(-1), h), torch.layer_norm(x, [4], eps=h), torch.clamp(x, h), torch.pow(x, n), x.new_full((2,), torch.tensor(3.0)), x.norm(n),
        )

    @autotest(n=1, auto_backward=False)
    def test_ints(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        zero, one, n = torch.tensor(0), torch.tensor(1, dtype=torch.int8), torch.tensor(2)
        return (
            torch.softmax(x, one), x.sum(dim=[one]), x.flatten(zero), x.reshape(torch.tensor(8), n), torch.zeros(n, 3), torch.zeros((n, torch.tensor([3]))),
            x.narrow(0, n, one), F.pad(x, (one, n)), torch.eye(n), torch.diag(x, one), x.transpose(zero, one), torch.cat([x, x], one), x.select(0, one),
            x.repeat(one, n), torch.chunk(x, n)[0], x.split(n)[0], x[one:torch.tensor(3)], x[torch.tensor([2]):],
        )

    @autotest(n=1, auto_backward=False)
    def test_data(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        n, h = torch.tensor(2), torch.tensor(0.5)
        return (
            torch.tensor(x), torch.tensor([h, n]), torch.tensor([[n, 1], [torch.tensor([4]), 3]]), torch.tensor(torch.tensor([2], dtype=torch.int8)),
            torch.tensor([torch.tensor(1.5, dtype=torch.float64)]),
        )

    @autotest(n=1, auto_backward=False)
    def test_lists_that_are_tuples(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        zero, n = torch.tensor(0), torch.tensor(2)
        return (
            x[[[0, 1], [1, 2]]], x[[zero, n]], x[[torch.tensor([0, 1]), 2]], x[:, [zero, n]], x[[slice(0, 1), 1]], x[[None, 0]],
            x[([[0, 1], [1, 2]],)], x[[True, False, True, False]], x[[0, 1]],
        )

    @autotest(n=1, auto_backward=False)
    def test_refused(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        with test_case.assertRaises(TypeError):
            torch.softmax(x, torch.tensor(1.0))
        with test_case.assertRaises(TypeError):
            torch.sum(x, torch.tensor(1))
        with test_case.assertRaises(TypeError):
            F.leaky_relu(x, torch.tensor([1.0]))
        with test_case.assertRaises(TypeError):
            F.leaky_relu(x, torch.tensor(1.0, requires_grad=True))
        with test_case.assertRaises(TypeError):
            F.avg_pool2d(x, torch.tensor(1))
        with test_case.assertRaises(TypeError):
            x.flatten(torch.tensor(True))
        with test_case.assertRaises(TypeError):
            x[torch.tensor(1.0):]


class TestItself(unittest.TestCase):
    @autotest(n=1, auto_backward=False)
    def test_changed_through(test_case):
        out = []
        forms = [
            lambda t: t.float(), lambda t: t.contiguous(), lambda t: t.to("cpu"), lambda t: t.type_as(t), lambda t: t.to(t), lambda t: t.double(),
            lambda t: t.to(torch.float32, copy=True), lambda t: t.conj(), lambda t: F.dropout(t, 0.5, training=False), lambda t: F.dropout(t, 0.0),
            lambda t: torch.nn.Dropout(0.5).eval()(t), lambda t: torch.nn.Identity()(t), lambda t: t.reshape(2, 3), lambda t: t.flatten(0, 0),
        ]
        for form in forms:
            x = torch.arange(6).float().view(2, 3).clone()
            form(x).add_(1)
            leaf = torch.ones(2, 3, requires_grad=True)
            y = leaf * 2
            form(y).mul_(2)
            (y * y).sum().backward()
            out += [x, y, leaf.grad]
        return out

    @autotest(n=1, auto_backward=False)
    def test_views_without_recording(test_case):
        x = torch.ones(2, 3, requires_grad=True)
        with torch.no_grad():
            y, z = x.view(3, 2), x * 1
        return y, y.is_leaf, y.grad_fn is None, z

    @autotest(n=1, auto_backward=False)
    def test_mixed_dtypes(test_case):
        p = torch.rand(3, requires_grad=True)
        t = torch.ones(3, dtype=torch.float64)
        loss = F.binary_cross_entropy_with_logits(p, t)
        loss.backward()
        return loss, p.grad, F.binary_cross_entropy_with_logits(t, p, weight=t, pos_weight=t)
