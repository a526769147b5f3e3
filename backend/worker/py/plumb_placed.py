"""A case of OneFlow on tensors that lie on all ranks, as one of them runs it (plumb_rank.py).

How an input lies is drawn from the case's seed: split along an axis, whole, or in summands;
a parameter is whole. Results and gradients are brought together whole, and each rank tells a
sum of what it has then.
"""

import functools
import json
import math
import operator
import random
import re
import zlib

import plumb_oneflow
import plumb_ranks
from plumb_graphs import Graphed
from plumb_names import Unsupported
from plumb_targets import Targets

ENTRY = re.compile(r"S\((\d+)\)|[BP]")
GAPS = ("has no maching sbp", "boxing", "Only local tensors have")  # in messages; what is changed in place is not brought to another sbp
FLOATS = ("float32", "float64")


class Placed(Graphed):
    """One case whose tensors are global ones."""

    mesh, hierarchy, rank = None, (), 0
    filling = False  # while a module gets its state

    def __init__(self, *args):
        super().__init__(*args)
        self.flow, self.sums = self.adapter.root, []

    # Tensors.

    def inputs(self):
        self.draws = random.Random(self.case["seed"])
        super().inputs()

    def whole(self, placement=None):
        return [self.flow.sbp.broadcast] * (self.mesh if placement is None else placement).ranks.ndim

    def load(self, entry, requires_grad=False):
        t = super().load(entry, False)
        if self.filling:
            return t
        if not all(entry[2]):
            raise Unsupported("OneFlow's global tensors end the process where one has no elements")
        room = [n // math.prod(self.hierarchy) for n in entry[2]]
        sums = entry[0] in FLOATS and (self.adapter.array(t) != 0).all()  # a sum with 0 loses the sign of -0
        drawn = [self.drawn([i for i, n in enumerate(room) if n], sums) for _ in self.hierarchy]
        t = t.to_global(self.mesh, self.whole()).to_global(self.mesh, drawn)
        return t.detach().requires_grad_() if requires_grad else t

    def drawn(self, axes, sums):
        """Draws how the ranks along a dimension of the mesh share a tensor; no piece is empty,
        since many kernels end the process there."""
        sbp = self.flow.sbp
        return self.draws.choice([sbp.broadcast] + [sbp.split(i) for i in axes] + [sbp.partial_sum] * bool(sums))

    def spread(self, v):
        """Returns a tensor that a call made of none on all ranks."""
        if self.adapter.is_tensor(v) and not v.is_global:
            return v.to_global(self.mesh, self.whole())
        return type(v)(map(self.spread, v)) if type(v) in (tuple, list) else v

    def together(self, t):
        if not t.is_global:
            return t.detach()
        return t.detach().to_global(self.mesh, self.whole()).to_local()

    def store(self, t):
        one = self.together(t)
        self.sums.append([self.call, zlib.crc32(self.adapter.array(one).tobytes())])
        if self.rank:
            return ["x", "of another rank"]
        stored = super().store(one)
        return stored[:5] + [self.adapter.requires_grad(t)] if stored[0] == "t" else stored

    def elements(self, t):
        return tuple(t.shape), self.adapter.array(self.together(t)).tobytes()

    # Calls.

    def prepared(self, call):
        f, args, kwargs = super().prepared(call)
        own = {"Tensor.to_global": self.placed, "Tensor.to_local": self.local, "Module.to_global": self.place}.get(call[0])
        if own is not None:
            return own, args, kwargs
        if not self.constructs(call) and not any(map(self.held, [*args, *kwargs.values()])):
            return lambda *args, **kwargs: self.spread(f(*args, **kwargs)), args, kwargs
        return f, args, kwargs

    def held(self, v):
        """Tells whether a value is, or has, what lies on ranks."""
        return self.adapter.is_tensor(v) or self.adapter.is_module(v) or isinstance(v, (tuple, list)) and any(map(self.held, v))

    def there(self, placement):
        """Returns a placement of the framework's."""
        ranks = json.loads(placement[placement.index("["):])
        flat = sum(ranks, []) if isinstance(ranks[0], list) else ranks
        if max(flat) >= self.mesh.ranks.size:
            raise Unsupported("rank %d, of %d" % (max(flat), self.mesh.ranks.size))
        return self.flow.placement("cpu", ranks)

    def sbp(self, text):
        entries = [m.group(0) for m in ENTRY.finditer(text)]
        sbp = self.flow.sbp
        return [sbp.split(int(e[2:-1])) if e[0] == "S" else sbp.broadcast if e == "B" else sbp.partial_sum for e in entries]

    def said(self, placement, sbp, grad_sbp=None):
        said = {"placement": self.there(placement)} if placement else {}
        for name, text in (("sbp", sbp), ("grad_sbp", grad_sbp)):
            if text:
                said[name] = self.sbp(text)
        return said

    def placed(self, t, placement=None, sbp=None, grad_sbp=None, itself=False):
        said = self.said(placement, sbp, grad_sbp)
        if not t.is_global and len(said) < 2:
            said = {"placement": self.mesh, "sbp": self.whole(), **said}
        if itself:
            with self.flow.no_grad():
                t.data = t.detach().to_global(**{name: v for name, v in said.items() if name != "grad_sbp"})
        placed = t.to_global(**said)
        return placed.clone() if placed is t else placed

    def local(self, t, placement, sbp, rank=0):
        """Returns the piece that the first rank has, on all ranks; it is held to what that rank has."""
        piece = plumb_ranks.local(operator.getitem, t, placement, sbp, rank)
        here = t.detach().to_global(self.there(placement), self.sbp(sbp)).to_local()
        whole = self.together(piece)
        if self.rank == rank and self.adapter.array(here).tobytes() != self.adapter.array(whole).tobytes():
            raise AssertionError("rank %d holds another piece than %s says" % (rank, sbp))
        return piece.clone()

    def place(self, module, placement=None, sbp=None):
        return module.to_global(**self.said(placement, sbp))

    def fill(self, i, module):
        self.filling = True
        super().fill(i, module)
        self.filling = False

    def constructed(self, i, module):
        super().constructed(i, module)
        module.to_global(self.mesh, self.whole())

    def gap(self, e):
        return super().gap(e) or any(text in str(e) for text in GAPS)

    # Gradients.

    def cotangent(self, v, offset, n):
        c = super().cotangent(v, offset, n)
        return c.to_global(v.placement, self.whole(v.placement)) if v.is_global else c


def ranked(rank, hierarchy):
    """Returns what makes a run of a memory and a case, on a rank of so many."""
    adapter = plumb_oneflow.adapter()
    adapter.arrays, adapter.encode, adapter.decode  # imported while the files are there
    ranks = list(range(math.prod(hierarchy)))
    if len(hierarchy) == 2:
        ranks = [ranks[i:i + hierarchy[1]] for i in range(0, len(ranks), hierarchy[1])]
    Placed.rank, Placed.hierarchy, Placed.mesh = rank, hierarchy, adapter.root.placement("cpu", ranks)
    return functools.partial(Placed, adapter, Targets(adapter))
