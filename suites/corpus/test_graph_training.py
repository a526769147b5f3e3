"""
Graphs: built from functions and modules, and trained.
Licensed under the Apache License, Version 2.0.
"""
import copy
import unittest

import numpy as np
import oneflow as flow
import oneflow.nn as nn
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


class Net(nn.Module):
    def __init__(self, hidden=4):
        super().__init__()
        self.fc1 = nn.Linear(3, hidden)
        self.fc2 = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.fc2(flow.relu(self.fc1(x)))


class EvalGraph(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


class TrainGraph(nn.Graph):
    def __init__(self, model, optimizer, loss_fn):
        super().__init__()
        self.model = model
        self.loss_fn = loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


def train_eager(model, optimizer, x, y, steps):
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@flow.unittest.skip_unless_1n1d()
class TestGraph(flow.unittest.TestCase):
    def test_eval_graph(test_case):
        model = Net()
        graph = EvalGraph(model)
        x = flow.randn(2, 3)
        test_case.assertTrue(np.allclose(graph(x).numpy(), model(x).detach().numpy(), 1e-5, 1e-5))

    def test_eval_graph_called_twice(test_case):
        graph = EvalGraph(Net(2))
        x = flow.ones(2, 3)
        a = graph(x)
        b = graph(x)
        test_case.assertTrue(np.array_equal(a.numpy(), b.numpy()))

    def test_sgd_graph_is_eager(test_case):
        model = Net()
        twin = copy.deepcopy(model)
        x = flow.randn(4, 3)
        y = flow.randn(4, 1)
        graph = TrainGraph(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), nn.MSELoss())
        losses = [graph(x, y).item() for _ in range(3)]
        expected = train_eager(twin, flow.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9), x, y, 3)
        test_case.assertTrue(np.allclose(losses, expected, 1e-4, 1e-5))
        for p, q in zip(model.parameters(), twin.parameters()):
            test_case.assertTrue(np.allclose(p.detach().numpy(), q.detach().numpy(), 1e-4, 1e-5))

    def test_adam_graph(test_case):
        model = Net()
        optimizer = flow.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.99))
        graph = TrainGraph(model, optimizer, nn.MSELoss())
        first = graph(flow.ones(2, 3), flow.zeros(2, 1))
        for _ in range(5):
            last = graph(flow.ones(2, 3), flow.zeros(2, 1))
        test_case.assertTrue(last.item() <= first.item())

    def test_graph_with_lr_scheduler(test_case):
        model = Net()

        class ScheduledGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.m = model
                opt = flow.optim.SGD(model.parameters(), lr=0.1)
                sched = flow.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
                self.add_optimizer(opt, lr_sch=sched)

            def build(self, x):
                loss = self.m(x).sum()
                loss.backward()
                return loss

        g = ScheduledGraph()
        x = flow.ones(2, 3)
        losses = [g(x).item() for _ in range(4)]
        test_case.assertEqual(len(losses), 4)

    def test_graph_config(test_case):
        class ConfiguredGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 2)
                self.config.enable_amp(False)
                self.config.allow_fuse_add_to_output(True)

            def build(self, x):
                return self.linear(x)

        g = ConfiguredGraph()
        g.debug(0)
        test_case.assertEqual(g(flow.ones(1, 3)).shape, (1, 2))

    def test_gradient_accumulation(test_case):
        model = nn.Linear(3, 1)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

        class AccGraph(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer)
                self.config.set_gradient_accumulation_steps(2)

            def build(self, x):
                loss = self.model(x).mean()
                loss.backward()
                return loss

        g = AccGraph()
        test_case.assertEqual(g(flow.ones(4, 3)).numel() > 0, True)

    @autotest(n=2, auto_backward=False)
    def test_graph_of_function(test_case):
        class AddGraph(torch.nn.Graph):
            def build(self, a, b):
                return a + b * 2

        x = random_tensor(ndim=2, dim0=2, dim1=3)
        return AddGraph()(x, x)

    @autotest(n=3)
    def test_two_layer_net(test_case):
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        return net(random_tensor(ndim=2, dim0=4, dim1=3))

    @autotest(n=2, auto_backward=False)
    def test_deepcopy_of_module(test_case):
        m = torch.nn.Linear(3, 2)
        twin = copy.deepcopy(m)
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        with torch.no_grad():
            m.weight.add_(1)
        return m(x), twin(x)

    @autotest(n=2, auto_backward=False)
    def test_training_loop_in_eager(test_case):
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
        x = random_tensor(ndim=2, dim0=4, dim1=3, requires_grad=False)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
        return loss, model.weight

    @autotest(n=2, auto_backward=False)
    def test_adamw_step(test_case):
        w = torch.nn.Parameter(torch.ones(2, 3))
        optimizer = torch.optim.AdamW([w], lr=0.05, weight_decay=0.1)
        x = random_tensor(ndim=2, dim0=2, dim1=3, requires_grad=False)
        for i in range(2):
            (w * x).sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return w

    @autotest(n=2, auto_backward=False)
    def test_param_groups(test_case):
        m = torch.nn.Linear(2, 2)
        opt = torch.optim.SGD([{"params": [m.weight], "lr": 0.5}, {"params": [m.bias]}], lr=0.1)
        m(random_tensor(ndim=2, dim0=3, dim1=2)).sum().backward()
        opt.step()
        return m.weight, m.bias

    @autotest(n=2, auto_backward=False)
    def test_rmsprop_adagrad(test_case):
        out = []
        for cls, kwargs in [(torch.optim.RMSprop, {"alpha": 0.9}), (torch.optim.Adagrad, {"lr_decay": 0.1})]:
            w = torch.nn.Parameter(torch.full((3,), 0.5))
            opt = cls([w], lr=0.1, **kwargs)
            (w * random_tensor(ndim=1, dim0=3, requires_grad=False)).pow(2).sum().backward()
            opt.step()
            out.append(w)
        return out

    @autotest(n=2, auto_backward=False)
    def test_clip_grad_norm(test_case):
        m = torch.nn.Linear(3, 2)
        m(random_tensor(ndim=2, dim0=2, dim1=3) * 10).sum().backward()
        total = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        return total, m.weight.grad, m.bias.grad

    @autotest(n=2, auto_backward=False)
    def test_learning_rate_schedule(test_case):
        w = torch.nn.Parameter(torch.ones(2))
        opt = torch.optim.SGD([w], lr=1.0)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
        x = random_tensor(ndim=1, dim0=2, requires_grad=False)
        for _ in range(3):
            opt.zero_grad()
            (w * x).sum().backward()
            opt.step()
            sched.step()
        test_case.assertAlmostEqual(opt.param_groups[0]["lr"], 0.125)
        return w


if __name__ == "__main__":
    unittest.main()
