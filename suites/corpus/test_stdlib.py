"""
What tests take from Python's library.
Licensed under the Apache License, Version 2.0.
"""
import abc
import bisect
import enum
import gc
import heapq
import logging
import numbers
import platform
import statistics
import string
import types
from collections import Counter, defaultdict, deque, namedtuple
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple, Optional

import torch
from plumb import *

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)


class Reduction(enum.Enum):
    TOTAL = "sum"
    MEAN = "mean"


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()


@dataclass
class Config:
    dim: int
    shape: tuple = (2, 3)
    names: list = field(default_factory=list)
    scale: Optional[float] = None

    def __post_init__(self):
        if self.scale is None:
            self.scale = 0.5

    def tensor(self):
        return torch.ones(self.shape) * self.scale


@dataclass()
class Wide(Config):
    shape: tuple = (4, 5)


class Size(NamedTuple):
    rows: int
    columns: int = 2

    def count(self):
        return self.rows * self.columns


class Case(abc.ABC):
    @abc.abstractmethod
    def factor(self):
        ...


class Double(Case):
    def factor(self):
        return 2


@autotest(n=2)
def test_enum():
    x = random_tensor(2, 3, 4)
    for r in Reduction:
        x = x + getattr(torch, r.value)(x)
    assert [r.name for r in Reduction] == ["TOTAL", "MEAN"] and len(Reduction) == 2
    assert Reduction("mean") is Reduction.MEAN and Reduction["TOTAL"] == Reduction.TOTAL
    assert Reduction.TOTAL != Reduction.MEAN and isinstance(Reduction.MEAN, Reduction)
    assert str(Reduction.MEAN) == "Reduction.MEAN"
    return x * Level.HIGH + Level.LOW


@autotest(n=2)
def test_dataclass():
    c = Config(1, names=["a"])
    c.names.append("b")
    assert asdict(c) == {"dim": 1, "shape": (2, 3), "names": ["a", "b"], "scale": 0.5}
    assert Config(dim=2).names == [] and replace(c, dim=3).dim == 3
    assert str(Config(1)) == "Config(dim=1, shape=(2, 3), names=[], scale=0.5)"
    return random_tensor(2, 2, 3).sum(c.dim), c.tensor(), Wide(0).tensor()


def test_dataclass_arguments():
    try:
        Config()
        raise AssertionError("dim is not given")
    except TypeError:
        pass


@autotest(n=2)
def test_namedtuple_class():
    s = Size(3)
    rows, columns = s
    assert s == (3, 2) and s.count() == 6 and s.rows == rows
    return random_tensor(2, rows, columns) * s[1]


@autotest(n=2)
def test_logging():
    log.info("shape %s", (2, 3))
    logging.warning("nobody reads this")
    return random_tensor(1, 3)


@autotest(n=2)
def test_small_modules():
    gc.collect()
    args = types.SimpleNamespace(dim=1, p=2.0)
    heap = [3, 1, 2]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    assert [heapq.heappop(heap), heapq.heappop(heap)] == [0, 1]
    assert bisect.bisect_left([1, 2, 2, 4], 2) == 1 and bisect.bisect([1, 2, 2, 4], 2) == 3
    assert statistics.mean([1, 2, 3]) == 2 and statistics.median([3, 1, 2, 10]) == 2.5
    assert isinstance(3, numbers.Number) and isinstance(2.5, numbers.Real) and not isinstance(2.5, numbers.Integral)
    assert string.ascii_lowercase[:3] == "abc" and platform.system() == "Linux"
    return random_tensor(2, 3, 4).sum(args.dim) * args.p * Double().factor()


@autotest(n=1)
def test_format_of_repr():
    x = 3.25
    assert f"{x!r:>6}|{x=:.1f}|{[1]!r:<5}|" == "  3.25|x=3.2|[1]  |"
    return random_tensor(1, 2)


Point = namedtuple("Point", ["x", "y"])


class Mapping:
    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return key * 2


@autotest(n=1)
def test_collections():
    d = defaultdict(list)
    d["a"].append(1)
    d["b"].append(2)
    assert dict(d) == {"a": [1], "b": [2]} and d == {"b": [2], "a": [1]}
    assert d != 5 and not d == [1]
    del d["a"]
    assert d.setdefault("c", 5) == 5 and sorted(d.keys()) == ["b", "c"] and d.pop("b") == [2] and len(d) == 1
    c = Counter("hello")
    c.update({"l": 3})
    c.update("zz")
    assert c.most_common(1) == [("l", 5)] and c.total() == 10 and dict(Counter([1, 1, 2])) == {1: 2, 2: 1}
    assert sorted(Counter("aab").elements()) == ["a", "a", "b"]
    q = deque([1, 2, 3], maxlen=2)
    assert list(q) == [2, 3]
    q.appendleft(9)
    assert list(q) == [9, 2]
    r = deque([1, 2, 3, 4])
    r.rotate(1)
    assert list(r) == [4, 1, 2, 3]
    r.rotate(-2)
    r[0] = 7
    r.remove(4)
    r.extendleft([5, 6])
    assert list(r) == [6, 5, 7, 3, 1] and 3 in r and r != deque([1])
    assert dict(Mapping()) == {"a": "aa", "b": "bb"}
    p = Point(1, y=2)._replace(x=5)
    assert p == (5, 2) and p._asdict() == {"x": 5, "y": 2} and Point._fields == ("x", "y") and Point._make([1, 2]).y == 2
    return random_tensor(2, p.x, p.y)
