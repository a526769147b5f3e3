import collections
import dataclasses
from collections import defaultdict
from dataclasses import InitVar, asdict, astuple, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Dict, List, Optional

import pytest
import torch
import torch.nn as nn


@dataclass
class Config:
    dim: int = 4
    heads: int = 2
    dropout: float = 0.0
    names: List[str] = field(default_factory=list)
    act: str = "relu"
    registry: ClassVar[Dict[str, Any]] = {}
    helper = 3

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads

    @classmethod
    def from_dict(cls, d: Dict[str, Any]) -> "Config":
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in d.items() if k in known})


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0

    def norm(self):
        return (self.x**2 + self.y**2) ** 0.5


@dataclass(order=True)
class Version:
    major: int
    minor: int = 0
    note: str = field(default="", compare=False, repr=False)


@dataclass
class Scaled:
    scale: InitVar[float]
    values: torch.Tensor = field(init=False, repr=False)
    count: int = field(default=0, init=False)

    def __post_init__(self, scale):
        self.values = torch.arange(3.0) * scale
        self.count = self.values.numel()


@dataclass
class Child(Config):
    dim: int = 8
    extra: Optional[int] = None

    def __post_init__(self):
        if self.heads > self.dim:
            raise ValueError("too many heads")


@dataclass
class Output(collections.OrderedDict):
    loss: Optional[torch.Tensor] = None


@dataclass(eq=False)
class Layer(nn.Module):
    dim: int
    bias: bool = True

    def __post_init__(self):
        super().__init__()
        self.lin = nn.Linear(self.dim, self.dim, bias=self.bias)

    def forward(self, x):
        return self.lin(x)


@dataclass
class Nested:
    inner: Config = field(default_factory=Config)
    points: List[Point] = field(default_factory=lambda: [Point(1.0, 2.0)])


class Tracker:
    def __init__(self):
        self.history: collections.deque = collections.deque(maxlen=2)
        self.table: Dict[str, List[int]] = defaultdict(list)
        self.best: "float" = 0.0
        self.later: Optional[torch.Tensor]

    def add(self, name: str, v: int) -> None:
        total: int = v + 1
        self.table[name].append(total)
        self.history.append(v)
        last: List[int]
        last = self.table[name]
        self.table["all"]: List[int] = last


def test_defaults_and_class_variables():
    a, b = Config(), Config()
    a.names.append("q")
    assert b.names == [] and a != b and Config() == b
    assert a.head_dim == 2
    assert [f.name for f in fields(a)] == ["dim", "heads", "dropout", "names", "act"]
    assert Config.registry == {} and Config.helper == 3
    with pytest.raises(TypeError):
        Config(helper=4)
    x = torch.ones(2, a.dim).view(2, a.heads, a.head_dim)
    assert (x.sum(-1) == 2).all()


def test_from_dict_and_replace():
    c = Config.from_dict({"dim": 6, "heads": 3, "unknown": 1})
    assert c.dim == 6 and c.head_dim == 2
    d = replace(c, dim=12)
    assert (d.dim, d.heads, c.dim) == (12, 3, 6)
    assert asdict(d) == {"dim": 12, "heads": 3, "dropout": 0.0, "names": [], "act": "relu"}
    assert astuple(Point(1.0, 2.0)) == (1.0, 2.0)
    assert is_dataclass(c) and is_dataclass(Config) and not is_dataclass(3)
    assert repr(Point(1.0)) == "Point(x=1.0, y=0.0)"


def test_frozen_is_hashable():
    p = Point(3.0, 4.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.x = 1.0
    with pytest.raises(AttributeError):
        p.y = 2.0
    table = {p: "a", Point(0.0): "b"}
    assert table[Point(3.0, 4.0)] == "a" and len({p, Point(3.0, 4.0)}) == 1
    t = torch.full((2,), p.norm())
    assert t.sum() == 10


def test_order():
    vs = sorted([Version(2, 1), Version(1, 13, "old"), Version(2)])
    assert [(v.major, v.minor) for v in vs] == [(1, 13), (2, 0), (2, 1)]
    assert Version(1, 0, "a") == Version(1, 0, "b") and Version(1) < Version(1, 1) and max(vs).minor == 1
    assert repr(vs[0]) == "Version(major=1, minor=13)"


def test_initvar_and_fields_that_are_made():
    s = Scaled(2.0)
    assert s.values.tolist() == [0.0, 2.0, 4.0] and s.count == 3
    with pytest.raises(TypeError):
        Scaled(1.0, torch.ones(3))
    out = torch.softmax(s.values, 0)
    assert out.argmax() == 2


def test_inherited():
    c = Child(extra=5)
    assert torch.full((c.dim,), 2.0).sum() == 16
    assert (c.dim, c.heads, c.extra) == (8, 2, 5)
    assert [f.name for f in fields(Child)][-1] == "extra"
    with pytest.raises(ValueError, match="too many"):
        Child(dim=1)
    assert Child(16).head_dim == 8


def test_module_is_dataclass():
    layer = Layer(3, bias=False)
    x = torch.randn(2, 3, requires_grad=True)
    layer(x).sum().backward()
    assert layer.lin.bias is None and layer.lin.weight.grad.shape == (3, 3)


def test_nested():
    n = Nested()
    n.inner.dim = 10
    d = asdict(n)
    assert d["inner"]["dim"] == 10 and d["points"] == [{"x": 1.0, "y": 2.0}]
    assert Nested() != n and Nested().inner == Config()


def test_attributes_are_annotated():
    t = Tracker()
    t.add("a", 1)
    t.add("a", 2)
    t.add("b", 3)
    assert list(t.history) == [2, 3] and t.table["a"] == [2, 3] and t.table["all"] == [4]
    assert t.best == 0.0 and not hasattr(t, "later")
    y: torch.Tensor = torch.tensor(t.table["a"]) * 2
    z: "torch.Tensor"
    z = y + 1
    assert z.tolist() == [5, 7]


def test_torch_assert():
    t = torch.ones(2)
    torch._assert(t.sum() == 2, "message")
    with pytest.raises(AssertionError, match="no good"):
        torch._assert(t.sum() == 3, "no good")
