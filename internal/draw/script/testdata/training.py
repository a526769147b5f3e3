import copy
import unittest
import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *

class TestTraining(flow.unittest.TestCase):
    @autotest(n=2, auto_backward=False)
    def test_sgd(test_case):
        m = torch.nn.Linear(3, 2)
        opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        for _ in range(3):
            loss = m(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss, m.weight

    @autotest(n=2, auto_backward=False)
    def test_all(test_case):
        for cls in [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Adadelta]:
            w = torch.nn.Parameter(torch.ones(2, 3))
            opt = cls([w], lr=0.1)
            x = random_tensor(ndim=2, dim0=2, dim1=3)
            for _ in range(2):
                opt.zero_grad()
                (x * w).sum().backward()
                opt.step()
        return w

    @autotest(n=2, auto_backward=False)
    def test_groups_and_schedule(test_case):
        a, b = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
        opt = torch.optim.SGD([{"params": [a], "lr": 0.5}, {"params": b}], lr=0.1, weight_decay=1e-2)
        sch = torch.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.1)
        x = random_tensor(ndim=1, dim0=3)
        for _ in range(2):
            opt.zero_grad()
            (x * a + x * b).sum().backward()
            opt.step()
            sch.step()
        test_case.assertTrue(np.allclose(sch.get_last_lr(), [0.005, 0.001]))
        test_case.assertTrue(np.allclose(opt.param_groups[0]["lr"], 0.005))
        return a, b

    @autotest(n=2, auto_backward=False)
    def test_graph_forward(test_case):
        m = torch.nn.Linear(3, 2)
        class G(flow.nn.Graph):
            def __init__(self):
                super().__init__()
                self.m = m
                self.config.allow_fuse_add_to_output(True)
            def build(self, x):
                return self.m(x)
        g = G()
        g.debug(1)
        x = random_tensor(ndim=2, dim0=5, dim1=3)
        y, z = m(x), g(x)
        test_case.assertTrue(np.array_equal(y.detach().numpy(), z.detach().numpy()))
        return y, z

    @autotest(n=2, auto_backward=False)
    def test_graph_training(test_case):
        eager = torch.nn.Linear(3, 2)
        m = copy.deepcopy(eager)
        x = random_tensor(ndim=2, dim0=4, dim1=3, requires_grad=False)
        opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        sch = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
        class TrainGraph(flow.nn.Graph):
            def __init__(self):
                super().__init__()
                self.m = m
                self.add_optimizer(opt, lr_sch=sch)
                self.config.set_gradient_accumulation_steps(2)
            def build(self, x):
                loss = self.m(x).pow(2).mean()
                loss.backward()
                return loss
        g = TrainGraph()
        losses = [g(x) for _ in range(2)]
        other = torch.optim.SGD(eager.parameters(), lr=0.1, momentum=0.9)
        plan = torch.optim.lr_scheduler.ExponentialLR(other, gamma=0.5)
        for k in range(2):
            other.zero_grad()
            loss = eager(x).pow(2).mean()
            loss.backward()
            test_case.assertTrue(np.allclose(losses[k].mean().item(), loss.item(), 1e-4, 1e-5))
            other.step()
            plan.step()
        test_case.assertTrue(np.allclose(m.weight.detach().numpy(), eager.weight.detach().numpy(), 1e-4, 1e-5))
        test_case.assertEqual(losses[0].shape, (2,))
        return losses, m.weight, eager.weight

    @autotest(n=1, auto_backward=False)
    def test_closure(test_case):
        w = torch.nn.Parameter(torch.ones(3))
        opt = torch.optim.Adam([w], 0.1, betas=(0.5, 0.9), amsgrad=True)
        x = random_tensor(ndim=1, dim0=3)
        def closure():
            opt.zero_grad()
            loss = (x * w).pow(2).sum()
            loss.backward()
            return loss
        l = opt.step(closure)
        for p in opt.param_groups:
            p["lr"] = 0.0
        before = w.detach().clone()
        opt.step(closure)
        test_case.assertTrue(np.array_equal(before.numpy(), w.detach().numpy()))
        return l, w

if __name__ == "__main__":
    unittest.main()
