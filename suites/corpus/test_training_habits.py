"""Training as research repositories write it: schedules that watch a loss, averaged weights, buffers seen through views, warnings of one's own."""

import contextlib
import copy
import os
import warnings

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import ReduceLROnPlateau


def test_plateau():
    p = nn.Parameter(torch.zeros(1))
    opt = torch.optim.Adam([p], lr=1.0)
    sch = ReduceLROnPlateau(opt, patience=1, factor=0.1)
    for v in [1.0, 1.0, 1.0, 1.0]:
        sch.step(v)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.1)


class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {k: v.clone().detach() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            if v.dtype.is_floating_point:
                self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)
            else:
                self.shadow[k].copy_(v)


def test_ema():
    m = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    ema = EMA(m)
    before = {k: v.clone() for k, v in m.state_dict().items()}
    opt = torch.optim.SGD(m.parameters(), lr=0.5)
    for _ in range(2):
        opt.zero_grad()
        m(torch.randn(4, 2)).pow(2).sum().backward()
        opt.step()
        ema.update(m)
    for k, v in ema.shadow.items():
        if v.is_floating_point():
            assert v.shape == before[k].shape
    assert ema.shadow["1.num_batches_tracked"] == 2
    m.load_state_dict(ema.shadow)
    assert torch.equal(m[0].weight, ema.shadow["0.weight"])


def test_gradient_accumulation():
    torch.manual_seed(0)
    a = nn.Linear(3, 1)
    b = copy.deepcopy(a)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    F.mse_loss(a(x), y).backward()
    for xs, ys in zip(x.chunk(4), y.chunk(4)):
        (F.mse_loss(b(xs), ys) / 4).backward()
    torch.testing.assert_close(a.weight.grad, b.weight.grad)
    total = torch.nn.utils.clip_grad_norm_(a.parameters(), 0.1)
    assert total > 0
    assert torch.stack([p.grad.norm() for p in a.parameters()]).norm() <= 0.1 + 1e-5


def test_jit_and_trace():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(2, 2)

        def forward(self, x):
            if x.sum() > 0:
                return self.l(x)
            return -self.l(x)

    m = M()
    s = torch.jit.script(m)
    x = torch.randn(3, 2)
    assert torch.allclose(m(x), s(x))
    t = torch.jit.trace(nn.ReLU(), torch.ones(1))
    assert torch.equal(t(x), x.relu())


@contextlib.contextmanager
def frozen(m):
    before = [p.requires_grad for p in m.parameters()]
    for p in m.parameters():
        p.requires_grad_(False)
    try:
        yield m
    finally:
        for p, b in zip(m.parameters(), before):
            p.requires_grad_(b)


def test_frozen():
    m = nn.Linear(2, 2)
    with frozen(m):
        assert not m(torch.ones(1, 2)).requires_grad
    assert m(torch.ones(1, 2)).requires_grad


class MyWarning(UserWarning):
    pass


def old(x):
    warnings.warn("old is deprecated, use new", DeprecationWarning, stacklevel=2)
    return x + 1


def test_record():
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        y = old(torch.ones(2))
        warnings.warn("careful")
        warnings.warn(MyWarning("mine"))
    assert len(w) == 3 and "deprecated" in str(w[0].message)
    assert issubclass(w[0].category, DeprecationWarning)
    assert issubclass(w[1].category, UserWarning) and w[2].category is MyWarning
    assert y.sum() == 4


def test_pytest_warns():
    with pytest.warns(DeprecationWarning, match="use new"):
        old(torch.ones(1))
    with pytest.warns(UserWarning) as rec:
        warnings.warn("a")
    assert len(rec) == 1
    with pytest.warns(MyWarning):
        warnings.warn("x", MyWarning)
    warnings.warn("nobody listens")


def test_no_warning():
    with pytest.raises(BaseException):
        with pytest.warns(MyWarning):
            warnings.warn("x")


def test_env(monkeypatch):
    monkeypatch.setenv("MY_FLAG", "3")
    assert int(os.environ["MY_FLAG"]) == 3 and os.getenv("MY_FLAG") == "3"
    assert os.environ.get("NOT_THERE", "x") == "x" and "NOT_THERE" not in os.environ
    os.environ["OTHER"] = "1"
    assert "OTHER" in os.environ and os.environ.get("OTHER") == "1"
    assert os.environ.pop("OTHER") == "1" and "OTHER" not in os.environ
    assert os.environ.setdefault("THIRD", "3") == "3" and os.environ["THIRD"] == "3" and os.environ.setdefault("THIRD", "4") == "3"
    os.environ.update({"FOURTH": "4"})
    assert os.environ["FOURTH"] == "4"
    monkeypatch.delenv("MY_FLAG")
    assert os.getenv("MY_FLAG") is None
    try:
        os.environ["MY_FLAG"]
    except KeyError:
        pass
    else:
        raise AssertionError
    x = torch.ones(2)
    if os.environ.get("USE_RELU", "1") == "1":
        x = x.relu()
    assert x.sum() == 2


def test_recording_ends_with_its_block():
    try:
        with warnings.catch_warnings(record=True) as outer:
            warnings.warn("first")
            raise ValueError("out")
    except ValueError:
        pass
    with warnings.catch_warnings(record=True) as inner:
        warnings.simplefilter("always")
        warnings.warn("second")
    assert len(inner) == 1 and len(outer) <= 1


def test_not_set():
    assert "MY_FLAG" not in os.environ
