"""What a reference calls, written as a program: its results' error bounds follow from that.

A call that changes a tensor in place is written as one that gives another tensor: what has it
as a part is put together anew, and what else shows a part of it is taken out again when it is
next read.
"""

import contextlib

import plumb_torch
import torch
from plumb_opinfo import REFLECTED, Calls, Left, Text
from torch.overrides import resolve_name


class Traced(Calls):
    """Writes the calls that return tensors or change them; what asks for a size or a dtype is known, what asks for
    elements is not: other values may lead to other calls."""

    def __torch_function__(self, f, types, args=(), kwargs=None):
        f, kwargs = getattr(f, "plain", f), kwargs or {}
        name = getattr(f, "__name__", "")
        if f in COMPOSED:
            with self:
                return COMPOSED[f](*args, **kwargs)
        if name in READING:
            raise Left("its calls depend on values (%s)" % name)
        try:
            line, left = self.text.called(f, args, kwargs), None
        except Left as e:
            left = e
        before = [(t, t._version) for t in tensors(args) + tensors(list(kwargs.values())) if id(t) in self.text.known]
        v = f(*args, **kwargs)
        changed = any(t._version != version for t, version in before)
        if left and (changed or tensors(flat(v))):
            raise left
        if changed:
            self.text.change(line, self.changed([t for t, version in before if t._version != version], args, v))
        elif tensors(flat(v)):
            self.text.add(line, v)
            self.text.show(f, args, kwargs, v)
        return v

    def changed(self, those, args, v):
        """Returns the tensor that a call changes: others have been seen to change with it."""
        for t in those:
            if t is v or v is None and t is args[0]:
                return t
        raise Left("a call changes what is no result of it")


@contextlib.contextmanager
def indexed():
    """Lets a mode see x[i] and x[i] = v for one index as for several: PyTorch 1.13 does not."""
    of = torch.Tensor
    resolve_name(of.__getitem__)  # while it has its place in the table of names, which is made once

    def by_several(plain):
        def index(x, at, *v):
            return plain(x, at if isinstance(at, (tuple, list)) else (at, ...) if isinstance(at, torch.Tensor) else (at,), *v)

        index.plain = plain
        return index

    of.__getitem__, of.__setitem__ = by_several(of.__getitem__), by_several(of.__setitem__)
    try:
        yield
    finally:
        del of.__getitem__, of.__setitem__


def weight_norm(v, g, dim=0):
    """PyTorch's, of which no program knows by its name; a dim of -1 is none that is left out."""
    return v * (g / (v * v).sum([k for k in range(v.dim()) if k != dim], keepdim=True).sqrt())


COMPOSED = {torch._weight_norm: weight_norm}
READING = {"item", "tolist", "numpy", "equal", "allclose", "is_nonzero", "__bool__", "__int__", "__float__", "__index__", "__contains__"}
OPERATORS = {"Tensor.__%s__" % name: "operator." + to for name, to in (
    ("invert", "invert"), ("eq", "eq"), ("ne", "ne"), ("and", "and_"), ("or", "or_"), ("xor", "xor"), ("pow", "pow"), ("floordiv", "floordiv"), ("truediv", "truediv"), ("mod", "mod"), ("lshift", "lshift"), ("rshift", "rshift"), ("setitem", "setitem"))}
STORED = 1 << 22  # elements of what is put together anew, which the judge does some thirty times
IN_PLACE = {"Tensor.__i%s__" % name: "Tensor.%s_" % to for name, to in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"))}


class Trace(Text):
    """The calls of a function of given tensors; each result has a name, those of tuples by further calls."""

    def __init__(self, tensors):
        super().__init__("trace", 0)
        self.views, self.stale, self.sharing, self.versions, self.stored = {}, set(), {}, {}, 0
        self.inputs = ["x%d = tensor((%s), torch.%s, constant(0.0))\n" % (i, "".join("%d, " % n for n in t.shape), str(t.dtype)[6:]) for i, t in enumerate(tensors)]
        for i, t in enumerate(tensors):
            self.named("x%d" % i, t)

    def call(self, target, args, kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k != "out" or v is not None}
        reflected = REFLECTED.get(target.split(".")[-1].replace("__rtruediv__", "__rdiv__"))
        if reflected:
            return super().call(reflected, args[::-1], kwargs)
        return super().call(IN_PLACE.get(target) or OPERATORS.get(target, target), args, kwargs)

    def add(self, line, result):
        super().add(line, result)
        name, _ = self.last
        for i, r in enumerate(result if isinstance(result, (tuple, list)) else ()):
            super().add("%s[%d]" % (name, i), r)

    def named(self, name, result):
        if isinstance(result, torch.Tensor) and id(result) not in self.known:
            memory = plumb_torch.memory_of(result)
            self.sharing.setdefault(memory, []).append(result)
            self.versions.setdefault(memory, result._version)
        super().named(name, result)

    def tensor(self, t):
        if id(t) not in self.known:
            raise Left("a tensor that no traced call gives")
        if t.numel() and self.versions.get(plumb_torch.memory_of(t)) != t._version:
            raise Left("a tensor is changed by what is not seen")
        if id(t) in self.stale:
            self.stale.remove(id(t))
            _, f, args, kwargs, i = self.views[id(t)]
            super().add(self.called(f, args, kwargs), t if i is None else None)
            if i is not None:
                super().add("%s[%d]" % (self.last[0], i), t)
        return self.known[id(t)][1]

    def show(self, f, args, kwargs, result):
        """Remembers how a call has made views of one of its arguments."""
        several = isinstance(result, (tuple, list))
        for i, r in enumerate(result if several else [result]):
            of = [t for t in tensors(args) if isinstance(r, torch.Tensor) and t is not r and plumb_torch.memory_of(t) == plumb_torch.memory_of(r)]
            if of and id(r) not in self.views:
                self.views[id(r)] = of[0], f, args, kwargs, i if several else None

    def change(self, line, t):
        """Writes a call that gives what another tensor is from then on, and what that is a part of."""
        self.versions[plumb_torch.memory_of(t)] = t._version
        super().add(line, t)
        fresh = {id(t)}
        while id(t) in self.views:
            whole = self.views[id(t)][0]
            self.stored += whole.numel()
            if self.stored > STORED:
                raise Left("it changes large tensors in place many times")
            self.stale.discard(id(whole))
            super().add(self.put(t, whole), whole)
            t = whole
            fresh.add(id(t))
        for other in self.sharing.get(plumb_torch.memory_of(t), ()):
            if id(other) not in fresh and id(other) not in self.views:
                raise Left("a call changes what another tensor shows")
            if id(other) not in fresh:
                self.stale.add(id(other))

    def put(self, part, whole):
        """Returns the call that puts a view where it was taken from."""
        _, f, args, kwargs, i = self.views[id(part)]
        name = getattr(f, "__name__", "")
        name = (resolve_name(f) or "").split(".")[-2] if name == "__get__" else name
        if name in ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"):
            return self.call("Tensor.reshape", (part, list(whole.shape)), {})
        if name in ("T", "t", "mT"):
            return self.call("Tensor.transpose", (part, -2, -1), {})
        if name in ("transpose", "swapaxes", "swapdims") and not kwargs:
            return self.call("Tensor.transpose", (part, *args[1:]), {})
        if name == "__getitem__":
            return self.call("operator.setitem", (whole, args[1], part), {})
        if name in ("select", "unbind", "narrow") and not kwargs:
            dim = args[1] if len(args) > 1 else 0
            at = args[2] if name == "select" else i if name == "unbind" else slice(args[2], args[2] + args[3])
            return self.call("operator.setitem", (whole, (slice(None),) * (dim % whole.dim()) + (at,), part), {})
        raise Left("a call changes its argument's view by %s" % name)


def tensors(v):
    """Lists the tensors among arguments, of which a call can change any in place."""
    return [v] if isinstance(v, torch.Tensor) else [t for e in v for t in tensors(e)] if isinstance(v, (list, tuple)) else []


def flat(v):
    return [t for e in v for t in flat(e)] if isinstance(v, (list, tuple)) else [v]
