"""Hooks of tensors and modules in backward passes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import pytest


def test_look():
    x = torch.randn(4, requires_grad=True)
    seen = []
    y = x * 3
    y.register_hook(seen.append)
    y.register_hook(lambda g: seen.append(g * 2))
    (y**2).sum().backward()
    assert len(seen) == 2
    assert torch.allclose(seen[0], 2 * y.detach())
    assert torch.allclose(seen[1], 4 * y.detach())


def test_order():
    x = torch.randn(3, requires_grad=True)
    order = []
    x.register_hook(lambda g: order.append("x"))
    a = x.sin()
    a.register_hook(lambda g: order.append("a"))
    b = a.exp()
    b.register_hook(lambda g: order.append("b"))
    b.sum().backward()
    assert order == ["b", "a", "x"]


def test_replace_chain():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [40.0, 40.0, 40.0]


def test_remove():
    x = torch.ones(2, requires_grad=True)
    h = x.register_hook(lambda g: g * 5)
    (x * 2).sum().backward()
    h.remove()
    (x * 2).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 12.0))


def test_parameter_hooks():
    m = nn.Linear(3, 2)
    norms = {}
    for n, p in m.named_parameters():
        p.register_hook(lambda g, n=n: norms.update({n: g.norm()}))
    m.weight.register_hook(lambda g: g.clamp(-0.01, 0.01))
    x = torch.randn(5, 3)
    m(x).pow(2).sum().backward()
    assert set(norms) == {"weight", "bias"}
    assert m.weight.grad.abs().max() <= 0.01
    torch.testing.assert_close(norms["bias"], m.bias.grad.norm())
    assert norms["weight"] > m.weight.grad.norm()


def test_requires():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(2).register_hook(lambda g: g)


class GradCAM:
    def __init__(self, model, layer):
        self.model = model
        self.handles = [layer.register_forward_hook(self.save_activation), layer.register_full_backward_hook(self.save_gradient)]

    def save_activation(self, module, inp, out):
        self.activations = out.detach()

    def save_gradient(self, module, gin, gout):
        self.gradients = gout[0].detach()

    def __call__(self, x, idx=None):
        self.model.zero_grad()
        out = self.model(x)
        if idx is None:
            idx = out.argmax(1)
        score = out.gather(1, idx.view(-1, 1)).sum()
        score.backward()
        w = self.gradients.mean(dim=(2, 3), keepdim=True)
        cam = F.relu((w * self.activations).sum(1, keepdim=True))
        return cam

    def release(self):
        for h in self.handles:
            h.remove()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 5, 3, padding=1), nn.ReLU())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(5, 3)

    def forward(self, x):
        x = self.features(x)
        return self.fc(self.pool(x).flatten(1))


def test_gradcam():
    net = Net()
    cam = GradCAM(net, net.features[2])
    x = torch.randn(2, 3, 6, 6)
    m = cam(x, torch.tensor([0, 2]))
    assert m.shape == (2, 1, 6, 6)
    # the same by autograd.grad
    a = net.features[:3](x)
    s = net.fc(net.pool(net.features[3](a)).flatten(1)).gather(1, torch.tensor([[0], [2]])).sum()
    (g,) = torch.autograd.grad(s, a)
    ref = F.relu((g.mean((2, 3), keepdim=True) * a).sum(1, keepdim=True))
    torch.testing.assert_close(m, ref.detach(), rtol=1e-4, atol=1e-6)
    cam.release()
    del cam.gradients
    net(x).sum().backward()
    assert not hasattr(cam, "gradients")


def test_guided_relu():
    relu = nn.ReLU()
    relu.register_full_backward_hook(lambda m, gi, go: (torch.clamp(gi[0], min=0.0),))
    x = torch.randn(6, requires_grad=True)
    y = relu(x)
    y.backward(torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]))
    exp = (x > 0).float() * torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    assert torch.equal(x.grad, exp)


def test_module_order_and_sizes():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    calls = []
    for i, m in enumerate(net):
        m.register_full_backward_hook(lambda m, gi, go, i=i: calls.append((i, gi[0] is None, tuple(go[0].shape))))
    net(torch.randn(5, 3)).sum().backward()
    assert calls == [(2, False, (5, 2)), (1, False, (5, 4)), (0, True, (5, 4))]


class TwoOut(nn.Module):
    def forward(self, a, b, scale=1.0):
        return a * b * scale, a + b


def test_two_outputs():
    m = TwoOut()
    got = []
    h = m.register_full_backward_hook(lambda mod, gi, go: got.append((gi, go)))
    a = torch.randn(3, requires_grad=True)
    b = torch.randn(3, requires_grad=True)
    p, s = m(a, b, scale=2.0)
    (p.sum() + (3 * s).sum()).backward()
    gi, go = got[0]
    assert torch.equal(go[0], torch.ones(3)) and torch.equal(go[1], torch.full((3,), 3.0))
    assert torch.allclose(gi[0], 2 * b.detach() + 3)
    assert torch.allclose(gi[0], a.grad) and torch.allclose(gi[1], b.grad)


def test_training_with_hooks():
    lin = nn.Linear(2, 1)
    seen = []
    lin.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].abs().sum().item()))
    opt = torch.optim.SGD(lin.parameters(), lr=0.1)
    for _ in range(4):
        opt.zero_grad()
        loss = (lin(torch.randn(3, 2)) - 1).pow(2).mean()
        loss.backward()
        opt.step()
    assert len(seen) == 4 and all(s >= 0 for s in seen)


class GradReverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lambd * grad, None


def test_hook_and_function():
    x = torch.randn(3, requires_grad=True)
    seen = []
    h = x * 2
    h.register_hook(lambda g: seen.append(g))
    y = GradReverse.apply(h, 0.5)
    y.sum().backward()
    assert torch.equal(seen[0], torch.full((3,), -0.5))
    assert torch.equal(x.grad, torch.full((3,), -1.0))


def test_grad_calls_hook():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    n = []
    y.register_hook(lambda g: n.append(g.shape))
    y.register_hook(lambda g: g * 2)
    (g,) = torch.autograd.grad(y.sum(), x)
    assert len(n) == 1
    assert torch.allclose(g, 2 * y)


def test_create_graph():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    y = x**3
    y.register_hook(lambda g: g * x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    assert torch.allclose(x.grad, 9 * x.detach() ** 2)


def test_retained():
    x = torch.randn(2, requires_grad=True)
    y = x * 2
    c = []
    y.register_hook(lambda g: c.append(1))
    z = y.sum()
    z.backward(retain_graph=True)
    z.backward()
    assert len(c) == 2
    assert x.grad.eq(4).all()


def test_pick_in_loop():
    w = nn.Parameter(torch.randn(2, 2))
    mask = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    w.register_hook(lambda grad: grad.mul_(mask))
    x = torch.randn(4, 2)
    (x @ w).pow(2).mean().backward()
    assert w.grad[0, 1] == 0 and w.grad[1, 0] == 0
    assert w.grad[0, 0] != 0


def test_attention_has_two_outputs():
    m = nn.MultiheadAttention(4, 2)
    seen = []
    m.register_full_backward_hook(lambda m, gi, go: seen.append([g is None for g in go]))
    q = torch.ones(3, 1, 4, requires_grad=True)
    y, w = m(q, q, q)
    y.sum().backward()
    assert len(seen) == 1 and len(seen[0]) == 2


def test_arguments_by_name():
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(seen.append)
    y.backward(gradient=torch.full((3,), 3.0), retain_graph=True)
    torch.autograd.backward(tensors=y, grad_tensors=torch.ones(3), retain_graph=True)
    torch.autograd.grad(outputs=y, inputs=x, grad_outputs=torch.full((3,), 5.0))
    assert [g[0].item() for g in seen] == [3.0, 1.0, 5.0]


def test_one_pass_of_several_outputs():
    x = torch.randn(3, requires_grad=True)
    h = x * 2
    seen = []
    h.register_hook(lambda g: seen.append(g))
    h.register_hook(lambda g: g * 10)
    torch.autograd.backward([h.sum(), (h * 3).sum()])
    assert len(seen) == 1 and torch.equal(seen[0], torch.full((3,), 4.0))
    assert torch.allclose(x.grad, torch.full((3,), 80.0))
