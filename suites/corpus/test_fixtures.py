"""Fixtures, marks and set-up of pytest, in the ways that files have them."""

import logging
import math
import os
import sys
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
log = logging.getLogger(__name__)

SHAPES = [(2, 3), (4,), (1, 2, 3)]
OPS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "square": torch.square, "neg": lambda t: -t}


STATE = {}


def setup_module(module):
    STATE["ready"] = True
    global BASE
    BASE = torch.full((2,), 3.0)


def setup_function(function):
    STATE["function"] = function.__name__


@pytest.fixture
def make_linear():
    made = []

    def _make(i, o, bias=True):
        m = torch.nn.Linear(i, o, bias=bias)
        made.append(m)
        return m

    yield _make
    made.clear()


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def dtype(request):
    return request.param


@pytest.fixture
def batch(request, dtype):
    marker = request.node.get_closest_marker("batch_size")
    n = marker.args[0] if marker else 2
    request.addfinalizer(lambda: STATE.update(done=n))
    return torch.arange(n * 3, dtype=dtype).view(n, 3)


@pytest.fixture
def vocab():
    return {w: i for i, w in enumerate(["<pad>", "<unk>", "the", "cat", "sat", "on", "mat"])}


def test_module_is_set_up():
    assert STATE["ready"] and STATE["function"] == "test_module_is_set_up"
    assert BASE.sum() == 6


@pytest.fixture
def activation(request):
    return {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}[request.param]


@pytest.fixture(scope="class")
def shared():
    return {"calls": []}


@pytest.fixture(params=[pytest.param(0, id="first"), pytest.param(-1, id="last"), pytest.param(5, marks=pytest.mark.skip(reason="no such dim"))])
def dim(request):
    return request.param


@pytest.fixture
def inputs(dim):
    x = torch.linspace(-2, 2, 6).view(2, 3).requires_grad_()
    return x, dim


def pairs():
    for a in (1, 2):
        for b in ("x", "y"):
            yield pytest.param(a, b, id=f"{a}{b}")


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"], indirect=True)
def test_indirect(activation):
    x = torch.linspace(-1, 1, 5)
    y = activation(x)
    assert y.shape == x.shape and y[-1] > 0


@pytest.mark.parametrize("op", list(OPS.values()), ids=list(OPS))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_ops(op, shape):
    x = torch.randn(shape, requires_grad=True)
    op(x).sum().backward()
    assert x.grad.shape == torch.Size(shape)


def test_factory(make_linear):
    a, b = make_linear(3, 4), make_linear(4, 2, bias=False)
    y = b(torch.tanh(a(torch.ones(1, 3))))
    assert y.shape == (1, 2) and b.bias is None


@pytest.mark.batch_size(4)
def test_marker(batch, dtype):
    assert batch.shape == (4, 3) and batch.dtype is dtype
    torch.testing.assert_close(batch.mean(0), batch.sum(0) / 4)


def test_without_marker(batch):
    assert len(batch) == 2


def test_softmax_dims(inputs):
    x, dim = inputs
    y = x.softmax(dim)
    torch.testing.assert_close(y.sum(dim), torch.ones_like(y.sum(dim)))
    y.select(dim, 0).sum().backward()


@pytest.mark.parametrize("a,b", pairs())
def test_generated_parameters(a, b):
    t = torch.full((a,), float(ord(b)))
    assert t.sum() == a * ord(b)


@pytest.mark.parametrize(("p", "want"), [(1, 6.0), (2, pytest.approx(math.sqrt(14))), (float("inf"), 3.0)])
def test_norms(p, want):
    assert torch.linalg.norm(torch.tensor([1.0, -2.0, 3.0]), p).item() == want


@pytest.mark.usefixtures("shared")
class TestShared:
    limit = 3

    @pytest.fixture(autouse=True)
    def attach(self, shared):
        self.shared = shared
        self.x = torch.arange(6.0).view(2, 3)

    @classmethod
    def setup_class(cls):
        cls.weights = torch.ones(3)

    def setup_method(self, method):
        self.name = method.__name__

    def test_first(self):
        self.shared["calls"].append(self.name)
        assert torch.equal(self.x @ self.weights, torch.tensor([3.0, 12.0]))

    def test_second(self, make_linear):
        assert self.name == "test_second"
        assert make_linear(3, self.limit)(self.x).shape == (2, 3)

    @staticmethod
    def helper(x):
        return x.clamp(max=2)

    def test_helper(self):
        assert self.helper(self.x).max() == 2


def test_monkeypatch(monkeypatch):
    monkeypatch.setenv("MODE", "fast")
    monkeypatch.setitem(OPS, "double", lambda t: t * 2)
    monkeypatch.setattr(TestShared, "limit", 6)
    assert os.environ["MODE"] == "fast" and TestShared.limit == 6
    assert OPS["double"](torch.ones(2)).sum() == 4
    with monkeypatch.context() as m:
        m.delenv("MODE")
        assert os.getenv("MODE") is None


def test_capsys(capsys):
    print("loss", 0.5)
    x = torch.ones(2) * 3
    out, err = capsys.readouterr()
    assert out == "loss 0.5\n" and err == ""
    assert x.sum() == 6


def test_caplog(caplog):
    with caplog.at_level(logging.INFO):
        log.info("step %d", 3)
    assert torch.ones(1).item() == 1


def test_tmp_path(tmp_path):
    f = tmp_path / "w.pt"
    t = torch.arange(3.0)
    torch.save({"t": t, "epoch": 2}, f)
    state = torch.load(str(f))
    assert torch.equal(state["t"], t) and state["epoch"] == 2


def test_tmpdir_numpy(tmpdir):
    path = os.path.join(str(tmpdir), "a.npy")
    a = np.arange(4, dtype=np.float32)
    assert torch.from_numpy(a).sum() == 6 and path.endswith("a.npy")


def test_request(request):
    assert request.node.name == "test_request"
    x = request.getfixturevalue("make_linear")(2, 2)
    assert x(torch.zeros(1, 2)).shape == (1, 2)


def test_vocab(vocab):
    ids = [vocab.get(w, vocab["<unk>"]) for w in "the dog sat".split()]
    assert ids == [2, 1, 4]
    emb = torch.eye(len(vocab))[torch.tensor(ids)]
    assert emb.argmax(1).tolist() == ids


def test_approx_containers():
    x = torch.tensor([0.1, 0.2]) * 3
    assert x.tolist() == pytest.approx([0.3, 0.6])
    assert {"a": x[0].item()} == pytest.approx({"a": 0.3}, rel=1e-3)
    assert np.asarray([0.3, 0.6]) == pytest.approx(x.numpy(), abs=1e-6)


@pytest.mark.skipif(sys.version_info < (3, 8), reason="old Python")
def test_not_skipped():
    with pytest.warns(UserWarning, match="careful"):
        warnings.warn("be careful", UserWarning)
    assert torch.zeros(1).sum() == 0


def test_importorskip():
    np_ = pytest.importorskip("numpy")
    assert torch.from_numpy(np_.ones(2)).sum() == 2


@pytest.mark.parametrize("bad", [-1, 7])
def test_raises_info(bad):
    with pytest.raises(IndexError) as e:
        torch.ones(2, 3).sum(dim=bad + 10)
    assert "out of range" in str(e.value).lower() and e.type is IndexError


@pytest.mark.timeout(20)
@pytest.mark.slow
def test_custom_marks():
    x = torch.ones(3)
    assert (x.cumsum(0) == torch.tensor([1.0, 2, 3])).all()
