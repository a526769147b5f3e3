"""Metrics and losses as medical imaging and torchmetrics test them."""

from __future__ import annotations

import unittest
from enum import Enum
from typing import Callable, Literal

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from parameterized import parameterized
from torch.nn.modules.loss import _Loss
from torch.testing import assert_close


class LossReduction(str, Enum):
    NONE = "none"
    MEAN = "mean"
    SUM = "sum"


def one_hot(labels: torch.Tensor, num_classes: int, dtype: torch.dtype = torch.float, dim: int = 1) -> torch.Tensor:
    if labels.ndim < dim + 1:
        shape = list(labels.shape) + [1] * (dim + 1 - len(labels.shape))
        labels = torch.reshape(labels, shape)
    sh = list(labels.shape)
    if sh[dim] != 1:
        raise AssertionError("labels should have a channel with length equal to one.")
    sh[dim] = num_classes
    o = torch.zeros(size=sh, dtype=dtype, device=labels.device)
    return o.scatter_(dim=dim, index=labels.long(), value=1)


class DiceLoss(_Loss):
    def __init__(
        self,
        include_background=True,
        to_onehot_y=False,
        sigmoid=False,
        softmax=False,
        other_act: Callable | None = None,
        squared_pred=False,
        jaccard=False,
        reduction: LossReduction | str = LossReduction.MEAN,
        smooth_nr=1e-5,
        smooth_dr=1e-5,
        batch=False,
    ):
        super().__init__(reduction=LossReduction(reduction).value)
        if other_act is not None and not callable(other_act):
            raise TypeError(f"other_act must be None or callable but is {type(other_act).__name__}.")
        if int(sigmoid) + int(softmax) + int(other_act is not None) > 1:
            raise ValueError("Incompatible values: more than 1 of [sigmoid=True, softmax=True, other_act is not None].")
        self.include_background = include_background
        self.to_onehot_y = to_onehot_y
        self.sigmoid, self.softmax, self.other_act = sigmoid, softmax, other_act
        self.squared_pred, self.jaccard = squared_pred, jaccard
        self.smooth_nr, self.smooth_dr = float(smooth_nr), float(smooth_dr)
        self.batch = batch

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.sigmoid:
            input = torch.sigmoid(input)
        n_pred_ch = input.shape[1]
        if self.softmax and n_pred_ch > 1:
            input = torch.softmax(input, 1)
        if self.other_act is not None:
            input = self.other_act(input)
        if self.to_onehot_y and n_pred_ch > 1:
            target = one_hot(target, num_classes=n_pred_ch)
        if not self.include_background and n_pred_ch > 1:
            target, input = target[:, 1:], input[:, 1:]
        if target.shape != input.shape:
            raise AssertionError(f"ground truth has different shape ({target.shape}) from input ({input.shape})")
        reduce_axis: list[int] = torch.arange(2, len(input.shape)).tolist()
        if self.batch:
            reduce_axis = [0] + reduce_axis
        intersection = torch.sum(target * input, dim=reduce_axis)
        if self.squared_pred:
            ground_o, pred_o = torch.sum(target**2, dim=reduce_axis), torch.sum(input**2, dim=reduce_axis)
        else:
            ground_o, pred_o = torch.sum(target, dim=reduce_axis), torch.sum(input, dim=reduce_axis)
        denominator = ground_o + pred_o
        if self.jaccard:
            denominator = 2.0 * (denominator - intersection)
        f: torch.Tensor = 1.0 - (2.0 * intersection + self.smooth_nr) / (denominator + self.smooth_dr)
        if self.reduction == LossReduction.MEAN.value:
            f = torch.mean(f)
        elif self.reduction == LossReduction.SUM.value:
            f = torch.sum(f)
        elif self.reduction == LossReduction.NONE.value:
            f = f.view(list(f.shape[0:2]) + [1] * (len(input.shape) - 2))
        else:
            raise ValueError(f'Unsupported reduction: {self.reduction}, available options are ["mean", "sum", "none"].')
        return f


TEST_CASES = [
    [
        {"include_background": True, "sigmoid": True, "smooth_nr": 1e-6, "smooth_dr": 1e-6},
        {"input": torch.tensor([[[[1.0, -1.0], [-1.0, 1.0]]]]), "target": torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]])},
        0.307576,
    ],
    [
        {"include_background": True, "sigmoid": True, "smooth_nr": 1e-4, "smooth_dr": 1e-4},
        {
            "input": torch.tensor([[[[1.0, -1.0], [-1.0, 1.0]]], [[[1.0, -1.0], [-1.0, 1.0]]]]),
            "target": torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]], [[[1.0, 0.0], [1.0, 0.0]]]]),
        },
        0.416658,
    ],
    [
        {"include_background": False, "to_onehot_y": True, "smooth_nr": 0, "smooth_dr": 1e-3},
        {
            "input": torch.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]]),
            "target": torch.tensor([[[0.0, 0.0, 1.0]], [[0.0, 1.0, 0.0]]]),
        },
        0.0005,
    ],
    [
        {"include_background": True, "to_onehot_y": True, "sigmoid": True, "reduction": "sum", "smooth_nr": 1e-4, "smooth_dr": 1e-4},
        {
            "input": torch.tensor([[[-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]),
            "target": torch.tensor([[[1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0]]]),
        },
        1.740201,
    ],
    [
        {"include_background": True, "to_onehot_y": True, "other_act": torch.tanh, "smooth_nr": 1e-4, "smooth_dr": 1e-4},
        {
            "input": torch.tensor([[[-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]),
            "target": torch.tensor([[[1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0]]]),
        },
        0.428777,
    ],
]


class TestDiceLoss(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = "cuda" if torch.cuda.is_available() else "cpu"

    @parameterized.expand(TEST_CASES)
    def test_shape(self, input_param, input_data, expected_val):
        result = DiceLoss(**input_param).forward(**input_data)
        np.testing.assert_allclose(result.detach().cpu().numpy(), expected_val, rtol=1e-4, atol=1e-4)

    def test_ill_shape(self):
        loss = DiceLoss()
        with self.assertRaisesRegex(AssertionError, "ground truth has different shape"):
            loss.forward(torch.ones((1, 2, 3)), torch.ones((4, 5, 6)))

    def test_ill_opts(self):
        with self.assertRaisesRegex(ValueError, ""):
            DiceLoss(sigmoid=True, softmax=True)
        chn_input, chn_target = torch.ones((1, 1, 3)), torch.ones((1, 1, 3))
        with self.assertRaisesRegex(ValueError, ""):
            DiceLoss(reduction="unknown")(chn_input, chn_target)
        with self.assertRaisesRegex(ValueError, ""):
            DiceLoss(reduction=None)(chn_input, chn_target)

    def test_grad_descends(self):
        logits = torch.randn(2, 3, 4, 4, requires_grad=True, device=self.device)
        target = torch.randint(0, 3, (2, 1, 4, 4), device=self.device)
        loss = DiceLoss(to_onehot_y=True, softmax=True, batch=True, squared_pred=True)
        opt = torch.optim.Adam([logits], lr=0.5)
        vals = []
        for _ in range(4):
            opt.zero_grad()
            l = loss(logits, target)
            l.backward()
            opt.step()
            vals.append(l.item())
        self.assertLess(vals[-1], vals[0])
        self.assertAlmostEqual(vals[0], vals[0], places=5)


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults = {}
        self._reductions = {}

    def add_state(self, name, default, dist_reduce_fx=None):
        if not isinstance(default, (torch.Tensor, list)) or (isinstance(default, list) and default):
            raise ValueError("state variable must be a tensor or any empty list (where you can append tensors)")
        setattr(self, name, default.clone() if isinstance(default, torch.Tensor) else [])
        self._defaults[name] = default
        self._reductions[name] = dist_reduce_fx

    def reset(self):
        for k, v in self._defaults.items():
            setattr(self, k, v.clone() if isinstance(v, torch.Tensor) else [])

    def forward(self, *args, **kwargs):
        self.update(*args, **kwargs)
        return self.compute()

    def __add__(self, other):
        return Composed(torch.add, self, other)


class Composed(Metric):
    def __init__(self, op, a, b):
        super().__init__()
        self.op, self.a, self.b = op, a, b

    def update(self, *args):
        self.a.update(*args)
        if isinstance(self.b, Metric):
            self.b.update(*args)

    def compute(self):
        return self.op(self.a.compute(), self.b.compute() if isinstance(self.b, Metric) else self.b)


class Accuracy(Metric):
    def __init__(self, num_classes, average: Literal["micro", "macro"] = "micro"):
        super().__init__()
        self.num_classes, self.average = num_classes, average
        self.add_state("correct", torch.zeros(num_classes), "sum")
        self.add_state("total", torch.zeros(num_classes), "sum")

    def update(self, preds, target):
        if preds.is_floating_point():
            preds = preds.argmax(dim=-1)
        hit = (preds == target).float()
        self.correct += torch.zeros_like(self.correct).index_add_(0, target, hit)
        self.total += torch.bincount(target, minlength=self.num_classes)

    def compute(self):
        if self.average == "micro":
            return self.correct.sum() / self.total.sum()
        ok = self.total > 0
        return (self.correct[ok] / self.total[ok]).mean()


class Welford(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("n", torch.tensor(0.0))
        self.add_state("mean", torch.tensor(0.0))
        self.add_state("m2", torch.tensor(0.0))

    def update(self, x):
        for v in x.flatten():
            self.n += 1
            d = v - self.mean
            self.mean = self.mean + d / self.n
            self.m2 = self.m2 + d * (v - self.mean)

    def compute(self):
        return self.m2 / (self.n - 1)


class CatMetric(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("vals", [])

    def update(self, v):
        self.vals.append(torch.as_tensor(v, dtype=torch.float32))

    def compute(self):
        return torch.cat([torch.atleast_1d(v) for v in self.vals])


def test_accuracy():
    torch.manual_seed(42)
    m = Accuracy(4)
    all_p, all_t = [], []
    for _ in range(3):
        p, t = torch.rand(6, 4).softmax(-1), torch.randint(4, (6,))
        m(p, t)
        all_p.append(p)
        all_t.append(t)
    ref = (torch.cat(all_p).argmax(-1) == torch.cat(all_t)).float().mean()
    assert_close(m.compute(), ref)
    m.reset()
    assert m.total.sum() == 0


def test_macro():
    m = Accuracy(3, average="macro")
    v = m(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 0, 0]))
    assert_close(v, torch.tensor((2 / 3 + 1.0) / 2))


def test_welford_and_composition():
    a, b = Welford(), Welford()
    x = torch.randn(5, 3)
    s = a + b
    s.update(x)
    assert_close(s.compute(), 2 * x.var(), rtol=1e-4, atol=1e-5)
    assert_close((a + 1.0).compute(), x.var() + 1, rtol=1e-4, atol=1e-5)


def test_cat():
    m = CatMetric()
    m.update(1.0)
    m.update(torch.tensor([2.0, 3.0]))
    assert m.compute().tolist() == [1.0, 2.0, 3.0]
    try:
        m.add_state("bad", [1])
    except ValueError as e:
        assert "empty list" in e.args[0]


def psnr(a, b, data_range=1.0, dim=None):
    mse = (a - b).pow(2).mean(dim=dim) if dim is not None else F.mse_loss(a, b)
    return 10 * torch.log10(data_range**2 / mse)


def gaussian(kernel_size, sigma, dtype):
    dist = torch.arange(start=(1 - kernel_size) / 2, end=(1 + kernel_size) / 2, step=1, dtype=dtype)
    g = torch.exp(-torch.pow(dist / sigma, 2) / 2)
    return (g / g.sum()).unsqueeze(dim=0)


def ssim(x, y, k=5, sigma=1.5, L=1.0):
    c = x.size(1)
    g = gaussian(k, sigma, x.dtype)
    w = torch.matmul(g.t(), g).expand(c, 1, k, k)
    pad = (k - 1) // 2
    x, y = (F.pad(t, (pad, pad, pad, pad), mode="reflect") for t in (x, y))
    inp = torch.cat((x, y, x * x, y * y, x * y))
    out = F.conv2d(inp, w, groups=c).split(x.shape[0])
    mx, my = out[0], out[1]
    sx, sy, sxy = out[2] - mx.pow(2), out[3] - my.pow(2), out[4] - mx * my
    c1, c2 = (0.01 * L) ** 2, (0.03 * L) ** 2
    return (((2 * mx * my + c1) * (2 * sxy + c2)) / ((mx.pow(2) + my.pow(2) + c1) * (sx + sy + c2))).mean((1, 2, 3))


def test_psnr_ssim():
    a = torch.rand(2, 3, 12, 12)
    b = (a + 0.05 * torch.randn_like(a)).clamp(0, 1)
    assert psnr(a, b) > psnr(a, torch.rand_like(a))
    assert_close(psnr(a, b, dim=(1, 2, 3)).shape, torch.Size([2]))
    s = ssim(a, b)
    assert s.shape == (2,) and (s < 1).all()
    assert_close(ssim(a, a), torch.ones(2), atol=1e-4, rtol=0)


def focal(logits, target, gamma=2.0, alpha=0.25, reduction="none"):
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    pt = p * target + (1 - p) * (1 - target)
    loss = ce * ((1 - pt) ** gamma)
    if alpha >= 0:
        loss = (alpha * target + (1 - alpha) * (1 - target)) * loss
    return getattr(loss, reduction)() if reduction != "none" else loss


def test_focal_limits():
    x, t = torch.randn(4, 3), torch.randint(0, 2, (4, 3)).float()
    assert_close(focal(x, t, gamma=0.0, alpha=-1), F.binary_cross_entropy_with_logits(x, t, reduction="none"))
    assert focal(x, t, reduction="mean") <= F.binary_cross_entropy_with_logits(x, t)


def hausdorff(a, b):
    d = torch.cdist(a.nonzero().float(), b.nonzero().float())
    return max(d.min(1).values.max().item(), d.min(0).values.max().item())


def test_hausdorff():
    a, b = torch.zeros(6, 6), torch.zeros(6, 6)
    a[1:3, 1:3] = 1
    b[1:3, 1:5] = 1
    assert hausdorff(a, a) == 0
    assert abs(hausdorff(a, b) - 2) < 1e-6


def auroc(p, t):
    order = torch.argsort(p, descending=True, stable=True)
    t = t[order]
    tps = t.cumsum(0)
    fps = (1 - t).cumsum(0)
    tpr = torch.cat([torch.zeros(1), tps / tps[-1]])
    fpr = torch.cat([torch.zeros(1), fps / fps[-1]])
    return torch.trapz(tpr, fpr)


def test_auroc():
    p = torch.tensor([0.1, 0.4, 0.35, 0.8])
    t = torch.tensor([0, 0, 1, 1])
    assert_close(auroc(p, t).item(), 0.75)


def tversky(p, t, alpha, beta):
    tp = (p * t).sum((2, 3))
    fp = (p * (1 - t)).sum((2, 3))
    fn = ((1 - p) * t).sum((2, 3))
    return 1 - (tp + 1) / (tp + alpha * fp + beta * fn + 1)


def test_tversky_is_dice():
    p, t = torch.rand(2, 2, 3, 3, dtype=torch.double), (torch.rand(2, 2, 3, 3) > 0.5).double()
    tv = tversky(p, t, 0.5, 0.5)
    dice = 1 - (2 * (p * t).sum((2, 3)) + 2) / (p.sum((2, 3)) + t.sum((2, 3)) + 2)
    assert_close(tv, dice)


def sinkhorn(C, eps=0.5, n=50):
    a = torch.full((C.size(0),), 1.0 / C.size(0))
    b = torch.full((C.size(1),), 1.0 / C.size(1))
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(n):
        f = -eps * torch.logsumexp((g[None] - C) / eps + b.log()[None], dim=1)
        g = -eps * torch.logsumexp((f[:, None] - C) / eps + a.log()[:, None], dim=0)
    return ((f[:, None] + g[None] - C) / eps).exp() * a[:, None] * b[None]


def test_sinkhorn_marginals():
    x, y = torch.randn(4, 2), torch.randn(5, 2)
    P = sinkhorn(torch.cdist(x, y) ** 2 / 4)
    assert_close(P.sum(0), torch.full((5,), 0.2), atol=1e-3, rtol=1e-3)
    assert_close(P.sum(1), torch.full((4,), 0.25), atol=1e-3, rtol=1e-3)


def triplet_hard(emb, labels, margin=0.3):
    d = torch.cdist(emb, emb)
    same = labels[:, None].eq(labels[None])
    eye = torch.eye(len(labels), dtype=torch.bool)
    hp = d.masked_fill(~(same & ~eye), -1).max(1)[0]
    hn = d.masked_fill(same, float("inf")).min(1)[0]
    return F.relu(hp - hn + margin).mean()


def test_triplet():
    e = F.normalize(torch.randn(6, 4), dim=1).requires_grad_()
    l = torch.tensor([0, 0, 1, 1, 2, 2])
    loss = triplet_hard(e, l)
    assert loss >= 0
    if loss > 0:
        loss.backward()


def info_nce(q, k, t=0.1):
    q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
    logits = q @ k.T / t
    return F.cross_entropy(logits, torch.arange(len(q)))


def test_info_nce():
    q = torch.randn(5, 8, requires_grad=True)
    l1 = info_nce(q, q.detach())
    l2 = info_nce(q, q.detach().roll(1, 0))
    assert l1 < l2
    l1.backward()
    assert (q.grad * q).sum(1).abs().max() < 1e-4
