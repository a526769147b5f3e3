"""Optimizers, layers and training that a file makes for itself."""

import copy
import math
from typing import Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import Parameter, init
from torch.nn import functional as F


class LoRALinear(nn.Linear):
    def __init__(self, in_features, out_features, r=2, alpha=4, **kwargs):
        super().__init__(in_features, out_features, **kwargs)
        self.A = Parameter(torch.zeros(r, in_features))
        self.B = Parameter(torch.zeros(out_features, r))
        self.scaling = alpha / r
        self.merged = False
        self.weight.requires_grad = False
        init.kaiming_uniform_(self.A, a=math.sqrt(5))

    def delta(self):
        return (self.B @ self.A) * self.scaling

    def train(self, mode: bool = True):
        super().train(mode)
        if mode == self.merged:
            sign = -1 if mode else 1
            self.weight.data += sign * self.delta()
            self.merged = not mode
        return self

    def forward(self, x):
        out = super().forward(x)
        return out if self.merged else out + F.linear(F.linear(x, self.A), self.B) * self.scaling


class Lookahead:
    def __init__(self, base, k=2, alpha=0.5):
        self.base, self.k, self.alpha, self.n = base, k, alpha, 0
        self.slow = [[p.detach().clone() for p in g["params"]] for g in base.param_groups]

    def zero_grad(self):
        self.base.zero_grad()

    @torch.no_grad()
    def step(self):
        self.base.step()
        self.n += 1
        if self.n % self.k:
            return
        for group, slow in zip(self.base.param_groups, self.slow):
            for p, s in zip(group["params"], slow):
                s.add_(p - s, alpha=self.alpha)
                p.copy_(s)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                m, (b1, b2) = state["exp_avg"], group["betas"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((m * b1 + p.grad * (1 - b1)).sign_(), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss


class Ensemble(nn.Module):
    __constants__ = ["n"]
    n: int

    def __init__(self, n):
        super().__init__()
        self.n = n
        for i in range(n):
            setattr(self, f"m{i}", nn.Linear(2, 2))
            self.add_module(f"act{i}", nn.ReLU() if i % 2 else nn.Tanh())
        self.register_buffer("scale", torch.ones(n), persistent=False)
        self.register_parameter("bias", None)

    def __len__(self):
        return self.n

    def __iter__(self):
        return (getattr(self, f"m{i}") for i in range(self.n))

    def forward(self, x: Tensor, *, which: Optional[List[int]] = None) -> Dict[str, Tensor]:
        which = range(self.n) if which is None else which
        return {f"out{i}": getattr(self, f"act{i}")(getattr(self, f"m{i}")(x)) * self.scale[i] for i in which}


def test_lora():
    layer = LoRALinear(4, 3)
    x = torch.randn(2, 4)
    base = F.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(layer(x), base)
    with torch.no_grad():
        layer.B.fill_(0.1)
    a = layer(x)
    layer.eval()
    assert layer.merged
    torch.testing.assert_close(layer(x), a, rtol=1e-4, atol=1e-5)
    layer.train()
    layer(x).sum().backward()
    assert layer.weight.grad is None and layer.B.grad is not None


def test_lookahead():
    w = Parameter(torch.tensor([1.0, -2.0]))
    opt = Lookahead(torch.optim.SGD([w], lr=0.1))
    for _ in range(4):
        opt.zero_grad()
        (w**2).sum().backward()
        opt.step()
    assert w.abs().max() < 2


def test_lion():
    w = Parameter(torch.tensor([1.0, -2.0, 0.5]))
    opt = Lion([{"params": [w], "weight_decay": 0.1}], lr=0.05)
    before = w.detach().clone()
    for _ in range(2):
        loss = opt.step(lambda: None)
        opt.zero_grad()
        (w * torch.arange(3.0)).sum().backward()
        opt.step()
    assert not torch.equal(before, w) and len(opt.state) == 1
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        Lion([w], lr=-1)


def test_ensemble():
    m = Ensemble(3)
    out = m(torch.ones(1, 2), which=[0, 2])
    assert sorted(out) == ["out0", "out2"] and len(m) == 3 and len(list(m)) == 3
    assert "scale" not in m.state_dict() and m.bias is None
    assert {n.split(".")[0] for n, _ in m.named_parameters()} == {"m0", "m1", "m2"}
    assert [type(c).__name__ for c in m.children()][:2] == ["Linear", "Tanh"]
    total = sum(o.sum() for o in m(torch.ones(1, 2)).values())
    total.backward()


def test_apply_and_init():
    def init_weights(m):
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            init.trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                init.zeros_(m.bias)
        elif isinstance(m, nn.LayerNorm):
            init.ones_(m.weight)

    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2, bias=False)).apply(init_weights)
    assert net[0].bias.abs().sum() == 0 and net[0].weight.abs().max() <= 2
    assert sum(p.numel() for p in net.parameters() if p.requires_grad) == 12 + 4 + 8 + 8
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_state_dict_surgery():
    src = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    sd = {("net." + k).replace("net.2", "head"): v for k, v in src.state_dict().items()}

    class Dst(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            self.head = nn.Linear(3, 1)

        def forward(self, x):
            return self.head(self.net(x))

    dst = Dst()
    missing, unexpected = dst.load_state_dict(sd, strict=False)
    assert missing == [] and unexpected == []
    x = torch.randn(4, 2)
    assert torch.equal(dst(x), src(x))


def test_module_hooks_collect():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    feats = {}
    handles = [m.register_forward_hook(lambda mod, i, o, n=n: feats.__setitem__(n, o.detach())) for n, m in net.named_children()]
    net(torch.ones(1, 2))
    for h in handles:
        h.remove()
    assert list(feats) == ["0", "1", "2"] and feats["1"].min() >= 0
    feats.clear()
    net(torch.ones(1, 2))
    assert not feats


def test_grad_accumulation_equals_big_batch():
    torch.manual_seed(3)
    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    F.mse_loss(net(x), y).backward()
    big = net.weight.grad.clone()
    net.zero_grad(set_to_none=False)
    for xb, yb in zip(x.chunk(4), y.chunk(4)):
        (F.mse_loss(net(xb), yb) / 4).backward()
    torch.testing.assert_close(net.weight.grad, big)


def test_label_smoothing_by_hand():
    logits, target = torch.randn(4, 5), torch.tensor([0, 4, 2, 1])
    lp = logits.log_softmax(-1)
    nll = -lp.gather(-1, target[:, None]).squeeze(1)
    want = (0.9 * nll + 0.1 * -lp.mean(-1)).mean()
    torch.testing.assert_close(nn.CrossEntropyLoss(label_smoothing=0.1)(logits, target), want)


@pytest.mark.parametrize(
    "cls,kw",
    [(nn.GELU, {}), (nn.GELU, {"approximate": "tanh"}), (nn.Softplus, {"beta": 2}), (nn.PReLU, {}), (nn.Hardswish, {}), (nn.GLU, {"dim": -1})],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_activations(cls, kw):
    m = cls(**kw)
    x = torch.linspace(-3, 3, 8).view(2, 4).requires_grad_()
    m(x).sum().backward()
    assert x.grad.shape == x.shape and m.training


def test_multihead_and_transformer_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
    mask = torch.triu(torch.full((5, 5), float("-inf")), diagonal=1)
    x = torch.randn(2, 5, 8)
    y = layer(x, src_mask=mask)
    x2 = x.clone()
    x2[:, -1] += 1
    torch.testing.assert_close(layer(x2, src_mask=mask)[:, :-1], y[:, :-1], rtol=1e-4, atol=1e-5)
    mha = nn.MultiheadAttention(8, 4, batch_first=True)
    out, w = mha(x, x, x, key_padding_mask=torch.tensor([[False] * 5, [False, False, True, True, True]]), need_weights=True)
    assert out.shape == x.shape and (w[1, :, 2:] == 0).all()
