"""
Habits of pytest files around models: parts of tuples, containers that change,
contexts, registries, buffers that no state_dict has.
"""
import contextlib
import itertools
import json
import math
import random
from abc import ABC, abstractmethod
from typing import Callable, Dict, Generic, Sequence, TypeVar, Union

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from torch.distributions import Categorical, Normal, kl_divergence
from torch.testing import make_tensor
from torch.utils.checkpoint import checkpoint

T = TypeVar("T")


def test_parts_of_lists():
    x = torch.randn(2, 6, 4)
    parts = torch.chunk(x, chunks=3, dim=1)
    out = parts[0]
    for p in parts[1:]:
        out = torch.cat([out, p * 2], dim=1)
    a, b = x.topk(2)[:2]
    last = [t.sum() for t in torch.split(x, 2, dim=1)[::-1]]
    state = nn.LSTM(4, 5)(x)
    return out, a, last, state[1:][0][0], torch.stack(x.unbind(1)[::2], dim=-1)


def test_sizes():
    x = torch.randn(3, 6, 2)
    assert x.shape.numel() == 36 and torch.Size([3, 6]).numel() == 18
    return x.reshape(-1, x.shape[1:].numel()), x.reshape(x.size()[:2].numel(), 2)


def test_containers_change():
    ms = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    ms.append(nn.Linear(2, 1))
    ms.insert(0, nn.Linear(2, 2))
    x = torch.ones(1, 2)
    for m in ms[:-1]:
        x = m(x).relu()
    s = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 4))
    s.append(nn.Tanh())
    s[0] = nn.Linear(2, 2, bias=False)
    del s[1]
    d = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.ReLU()})
    d["c"] = nn.Linear(2, 3)
    del d["b"]
    assert len(ms) == 5 and len(s) == 3 and list(d) == ["a", "c"]
    return ms[-1](x), s(torch.ones(1, 2)), d["c"](d["a"](x))


def test_state():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn = nn.BatchNorm1d(2)
            self.fc = nn.Linear(2, 3)
            self.register_buffer("scale", torch.ones(2))
            self.register_buffer("calls", torch.zeros(1), persistent=False)

        def forward(self, x):
            self.calls += 1
            return self.fc(self.bn(x) * self.scale)

    net = Net()
    y = net(torch.randn(4, 2))
    assert list(net.state_dict()) == [
        "scale", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked", "fc.weight", "fc.bias",
    ]
    assert [n for n, _ in net.named_buffers()][:2] == ["scale", "calls"]
    return y, net.calls


class Base(nn.Module, ABC):
    registry: Dict[str, type] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Base.registry[cls.__name__] = cls

    @abstractmethod
    def forward(self, x): ...


class MLP(Base, Generic[T]):
    def __init__(self, sizes: Sequence[int], act: Union[str, Callable] = "relu"):
        super().__init__()
        self.act = {"relu": F.relu, "tanh": torch.tanh}[act]
        for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
            setattr(self, f"fc{i}", nn.Linear(a, b))
        self.n = self.last = len(sizes) - 1

    def forward(self, x):
        for i in range(self.n):
            x = getattr(self, f"fc{i}")(x)
            x = self.act(x) if i != self.n - 1 else x
        return x


def test_registry():
    return Base.registry["MLP"]([4, 8, 2], act="tanh")(torch.randn(3, 4))


def test_contexts():
    x = torch.randn(2, 3, requires_grad=True)
    with torch.inference_mode():
        m = x.mean()
    y = x
    with contextlib.suppress(RuntimeError, ValueError):
        y = x.view(5, 5)
    with contextlib.suppress(KeyError):
        {}["missing"]
    z = checkpoint(lambda t: torch.tanh(t) * 2, y, use_reentrant=False)
    z.sum().backward()
    return m, z, x.grad


@pytest.mark.parametrize("fn, ref", [(torch.erf, math.erf), (torch.lgamma, math.lgamma)])
def test_scalars(fn, ref):
    xs = make_tensor((7,), device="cpu", dtype=torch.float32, low=0.5, high=3)
    torch.testing.assert_close(fn(xs), torch.tensor([ref(v) for v in xs.tolist()]), rtol=1e-4, atol=1e-5)


@pytest.mark.xfail(reason="known")
def test_expected_to_fail():
    assert False


class Samples:
    def __init__(self, n):
        self.x = torch.arange(float(n))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return self.x[i] * 2


def test_slices():
    return torch.stack(Samples(5)[1:4])


class Cache:
    def __init__(self):
        self.k = self.v = None

    def update(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], dim=-2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=-2)
        return self.k, self.v


def test_cache():
    c = Cache()
    for _, n in itertools.product(range(1), range(3)):
        k, v = c.update(torch.randn(1, 1, 4), torch.randn(1, 1, 4))
    return torch.softmax(k @ v.mT, -1) @ v


class Output(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self._gain = 1.0

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    @property
    def gain(self):
        return self._gain

    @gain.setter
    def gain(self, value):
        self._gain = 2 * value

    def forward(self, x):
        return Output(logits=self.inner(x) * self.gain, loss=None)


rng = random.Random(0)


def test_objects():
    m = Wrapped()
    m.gain = 1.5
    assert m.weight is m.inner.weight and m.in_features + 1 == 3
    out = m(torch.ones(1, 2))
    assert out.loss is None and isinstance(out, dict) and not hasattr(out, "hidden")
    conv = nn.Conv2d(1, 2, 3, padding=1)
    assert conv.padding == (1, 1) and conv.kernel_size[0] == 3 and conv.groups == 1
    shape = [rng.randint(1, 3) for _ in range(2)]
    assert json.loads(json.dumps({"shape": shape})) == {"shape": shape}
    return out.logits, torch.ones(shape)


def test_changed_in_place():
    a = torch.randn(2, requires_grad=True)
    b = a + 1
    before = id(b)
    b *= 2
    assert id(b) == before and b.add_(1) is b
    b.sum().backward()
    return a.grad


def test_random_state():
    state = torch.get_rng_state()
    a = torch.rand(3)
    with torch.random.fork_rng():
        torch.rand(2)
    torch.set_rng_state(state)
    assert torch.equal(a, torch.rand(3))


def test_distributions():
    mean = torch.randn(3, 2, requires_grad=True)
    d = Normal(mean, torch.rand(3, 2) + 0.5)
    z = d.rsample()
    kl = kl_divergence(d, Normal(torch.zeros_like(mean), torch.ones_like(mean))).sum()
    (d.log_prob(z).mean() + kl).backward()
    c = Categorical(logits=torch.randn(4, 5))
    return z, kl, mean.grad, c.log_prob(c.sample()), c.entropy()


def test_parts_of_a_model():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    for name, child in list(m.named_children()):
        if isinstance(child, nn.Linear):
            setattr(m, name, nn.Sequential(child, nn.Tanh()))
    return m(torch.randn(3, 4))


def test_einops():
    x = torch.randn(2, 3, 4, 4)
    y = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2)
    z = reduce(x, "b c ... -> b c", "mean")
    return y, z, repeat(z, "b c -> (b n) c 2", n=2), rearrange(list(x), "b ... -> (...) b"), Rearrange("b c h w -> b (c h w)")(x)


def test_padded():
    lengths = torch.tensor([2, 4, 1])
    mask = torch.arange(4)[None, :] < lengths[:, None]
    x = torch.randn(3, 4, 2)
    rows = [x[i, :n] for i, n in enumerate(lengths.tolist())]
    assert not hasattr(torch, "no_such_name") and hasattr(F, "softmax")
    return x[mask], nn.utils.rnn.pad_sequence(rows, batch_first=True)


def test_training_loop():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    losses = []
    for step in range(10):
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if step % 5 == 0:
            print(f"{step}: {loss.item():.4f}")
    assert losses[-1] < losses[0]
