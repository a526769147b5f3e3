"""Tests as research repositories have them: pytest over modules, training steps and data."""

import math
import copy
import pytest
import numpy as np
import torch
from torch import nn, optim, Tensor
from torch.nn import functional as F
from torch.nn.parameter import Parameter
from typing import Optional, List, Tuple
from functools import partial
from torch.optim.lr_scheduler import StepLR, CosineAnnealingLR, LambdaLR, OneCycleLR
from torch.utils.data import DataLoader, TensorDataset


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)
    np.random.seed(0)


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        return self._norm(x.float()).type_as(x) * self.weight


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q, k, cos, sin):
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dropout=0.0):
        super().__init__()
        assert dim % heads == 0, f"dim {dim} must be divisible by heads {heads}"
        self.heads, self.head_dim = heads, dim // heads
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))
        inv_freq = 1.0 / (10000 ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x, cache: Optional[Tuple[Tensor, Tensor]] = None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        t = torch.arange(T).type_as(self.inv_freq)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)[None, None]
        q, k = apply_rotary(q, k, emb.cos(), emb.sin())
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = self.drop(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden=None):
        super().__init__()
        hidden = hidden or 4 * dim
        self.w1, self.w2, self.w3 = nn.Linear(dim, hidden), nn.Linear(hidden, dim), nn.Linear(dim, hidden)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, dim, norm=RMSNorm, **kwargs):
        super().__init__()
        self.n1, self.n2 = norm(dim), norm(dim)
        self.att, self.mlp = Attention(dim, **kwargs), SwiGLU(dim)

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab=11, dim=16, depth=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim, heads=2) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, mean=0.0, std=0.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None):
        x = self.tok(idx)
        for b in self.blocks:
            x = b(x)
        logits = self.head(self.norm(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


@pytest.mark.parametrize("dim,heads", [(8, 2), (16, 4)])
def test_attention_shapes(dim, heads):
    m = Attention(dim, heads)
    x = torch.randn(2, 5, dim)
    assert m(x).shape == (2, 5, dim)
    assert sum(p.numel() for p in m.parameters()) == dim * dim * 4 + dim


def test_gpt_loss_decreases():
    model = GPT()
    opt = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    sched = CosineAnnealingLR(opt, T_max=5)
    idx = torch.randint(0, 11, (2, 8))
    losses = []
    for step in range(3):
        opt.zero_grad(set_to_none=True)
        _, loss = model(idx, idx)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Sequential()
        if stride != 1 or cin != cout:
            self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


def test_resnet_block():
    net = nn.Sequential(BasicBlock(3, 8, 2), BasicBlock(8, 8), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8, 5))
    x = torch.randn(2, 3, 16, 16)
    y = net(x)
    assert y.shape == torch.Size([2, 5])
    y.sum().backward()
    assert all(p.grad is not None for p in net.parameters() if p.requires_grad)
    net.eval()
    with torch.no_grad():
        a, b = net(x), net(x)
    torch.testing.assert_close(a, b)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(12, 8), nn.ReLU())
        self.mu, self.logvar = nn.Linear(8, 2), nn.Linear(8, 2)
        self.dec = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 12), nn.Sigmoid())

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(self.reparameterize(mu, logvar)), mu, logvar


def test_vae():
    m = VAE()
    x = torch.rand(4, 12)
    r, mu, logvar = m(x)
    bce = F.binary_cross_entropy(r, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    loss = bce + kld
    loss.backward()
    assert torch.isfinite(loss)


def test_state_dict_roundtrip():
    a, b = SwiGLU(4, 8), SwiGLU(4, 8)
    sd = a.state_dict()
    assert set(sd.keys()) == {"w1.weight", "w1.bias", "w2.weight", "w2.bias", "w3.weight", "w3.bias"}
    b.load_state_dict(sd)
    x = torch.randn(3, 4)
    assert torch.allclose(a(x), b(x))
    c = copy.deepcopy(a)
    with torch.no_grad():
        for p in c.parameters():
            p.mul_(2)
    assert not torch.allclose(a(x), c(x))


def test_ema():
    m = nn.Linear(3, 2)
    ema = copy.deepcopy(m)
    for p in ema.parameters():
        p.requires_grad_(False)
    opt = optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for _ in range(2):
        opt.zero_grad()
        m(torch.ones(1, 3)).sum().backward()
        opt.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), m.parameters()):
                p.lerp_(q, 0.1)
    assert not torch.equal(ema.weight, m.weight)


def test_dataloader():
    ds = TensorDataset(torch.arange(10).float().view(10, 1), torch.arange(10))
    n = 0
    for xb, yb in DataLoader(ds, batch_size=4, shuffle=False):
        n += xb.shape[0]
    assert n == 10


def focal_loss(logits, targets, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    return (ce * ((1 - p_t) ** gamma) * (alpha * targets + (1 - alpha) * (1 - targets))).mean()


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0], ids=lambda g: f"g{g}")
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_focal(shape, gamma):
    x = torch.randn(*shape, requires_grad=True)
    t = torch.randint(0, 2, shape).float()
    loss = focal_loss(x, t, gamma=gamma)
    (g,) = torch.autograd.grad(loss, x)
    assert g.shape == x.shape and loss.ndim == 0
    if gamma == 0.0:
        expected = F.binary_cross_entropy_with_logits(x, t, weight=0.25 * t + 0.75 * (1 - t))
        torch.testing.assert_close(loss, expected)


def test_iou():
    def box_iou(a, b):
        area = lambda z: (z[:, 2] - z[:, 0]) * (z[:, 3] - z[:, 1])
        lt = torch.max(a[:, None, :2], b[None, :, :2])
        rb = torch.min(a[:, None, 2:], b[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]
        return inter / (area(a)[:, None] + area(b)[None] - inter)
    a = torch.tensor([[0, 0, 2, 2], [1, 1, 3, 3]], dtype=torch.float)
    i = box_iou(a, a)
    assert i.diag().eq(1).all()
    assert i[0, 1].item() == pytest.approx(1 / 7)


def test_beam_search_like():
    logits = torch.randn(3, 7).log_softmax(-1)
    scores, idx = logits.view(-1).topk(4)
    beams, toks = idx // 7, idx % 7
    assert ((beams >= 0) & (beams < 3)).all()
    assert scores.diff().le(0).all()


def test_scatter_embedding():
    src = torch.randn(6, 3)
    index = torch.tensor([0, 1, 0, 2, 1, 1])
    out = torch.zeros(3, 3).index_add_(0, index, src)
    ref = torch.zeros(3, 3).scatter_add_(0, index[:, None].expand(-1, 3), src)
    torch.testing.assert_close(out, ref)
    counts = torch.bincount(index, minlength=3)
    assert counts.tolist() == [2, 3, 1]


def test_lr_lambda():
    p = [nn.Parameter(torch.zeros(1))]
    opt = optim.Adam(p, lr=1.0)
    s = LambdaLR(opt, lr_lambda=lambda e: 0.5 ** e)
    lrs = []
    for _ in range(3):
        lrs.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step()
    assert lrs == [1.0, 0.5, 0.25]


class LoRA(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.randn(r, base.in_features) * 0.01)
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.A.T @ self.B.T) * self.scale


def test_lora():
    m = LoRA(nn.Linear(4, 3))
    x = torch.randn(2, 4)
    torch.testing.assert_close(m(x), m.base(x))
    m(x).sum().backward()
    assert m.base.weight.grad is None and m.B.grad is not None
    names = [n for n, p in m.named_parameters() if p.requires_grad]
    assert names == ["A", "B"]


def test_moe_routing():
    x = torch.randn(6, 4)
    gate = nn.Linear(4, 3)
    experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    probs = gate(x).softmax(-1)
    w, sel = probs.topk(2, dim=-1)
    w = w / w.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for e, expert in enumerate(experts):
        rows, k = torch.where(sel == e)
        if rows.numel() == 0:
            continue
        out[rows] += expert(x[rows]) * w[rows, k, None]
    assert out.shape == x.shape


def test_approx_of_containers():
    assert [0.1 + 0.2, 1.0] == pytest.approx([0.3, 1.0])
    assert {"loss": 2.0 + 1e-9} == pytest.approx({"loss": 2.0})
    assert 1.1 != pytest.approx(1.0) and 1.05 == pytest.approx(1.0, abs=0.1) and 100.5 == pytest.approx(100, rel=0.01)
    assert float("nan") != pytest.approx(float("nan")) and float("nan") == pytest.approx(float("nan"), nan_ok=True)


def test_batches():
    data = [(torch.full((2,), float(i)), i) for i in range(5)]
    loader = DataLoader(data, batch_size=2, drop_last=True)
    x, labels = next(iter(loader))
    assert len(loader) == 2 and x.shape == (2, 2) and labels.tolist() == [0, 1]
    assert [len(y) for _, y in DataLoader(data, 2)] == [2, 2, 1]


def test_gradients_add_up():
    m = nn.Linear(3, 2)
    for k in range(3):
        assert all((p.grad is None) == (k == 0) for p in m.parameters())
        m(torch.ones(1, 3)).sum().backward()
        assert all((p.grad == k + 1).all() for p in m.parameters())
