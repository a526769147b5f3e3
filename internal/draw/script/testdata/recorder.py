"""Runs snippets of test files in CPython and records the calls of torch.

Reads a JSON list of snippets from standard input, each with its source, its
inputs and the values that were drawn; writes a JSON list of the recorded
programs. Names are canonical: in0, in1, … for inputs, c0, c1, … for calls.
"""

import builtins
import contextlib
import json
import math
import operator
import sys
import traceback
import types
import unittest

import numpy as np
import random as real_random
import torch as real_torch


class Run:
    def __init__(self, case):
        self.inputs = list(case["inputs"])
        self.taken = 0
        self.trace = list(case["trace"])
        self.lines = []
        self.count = 0
        self.scopes = []  # open now: (header)
        self.printed = []  # open in the text
        self.shown = []

    def record(self, text):
        same = 0
        while same < len(self.printed) and same < len(self.scopes) and self.printed[same] is self.scopes[same]:
            same += 1
        del self.printed[same:]
        for scope in self.scopes[same:]:
            self.lines.append("    " * len(self.printed) + "with %s:" % scope.text)
            self.printed.append(scope)
        name = "c%d" % self.count
        self.count += 1
        self.lines.append("    " * len(self.printed) + name + " = " + text)
        return name

    def pop(self, what):
        if not self.trace:
            raise AssertionError("nothing was drawn for %s" % what)
        name, value = self.trace.pop(0)
        if name != what:
            raise AssertionError("%s was drawn, %s is asked" % (name, what))
        return value_of(value)

    def next_input(self):
        entry = self.inputs[self.taken]
        name = "in%d" % self.taken
        self.taken += 1
        return Sym(name, tensor_of(entry))


RUN = None


def numbers(texts, dtype):
    if "complex" in dtype:
        return [complex(float(r), float(i)) for r, i in texts]
    if "float" in dtype:
        return [float(t) for t in texts]
    return [int(t) for t in texts]


def tensor_of(entry):
    dtype = getattr(real_torch, entry["dtype"])
    t = real_torch.tensor(numbers(entry["data"], entry["dtype"]), dtype=dtype).reshape(entry["shape"])
    return t.requires_grad_(entry["requires_grad"])


class Missing:
    pass


def value_of(v):
    tag = v[0]
    if tag == "i":
        return int(v[1])
    if tag == "f":
        return float(v[1])
    if tag in ("s", "b"):
        return v[1]
    if tag == "n":
        return None
    if tag == "l":
        return [value_of(e) for e in v[1]]
    if tag == "t":
        return tuple(value_of(e) for e in v[1])
    if tag == "a":
        a = np.array(numbers(v[3], v[1]), dtype=v[1]).reshape(v[2])
        return a if v[2] else a[()]
    if tag == "d":
        return getattr(real_torch, v[1])
    return Missing()


# Text.

def fmt_float(f):
    if math.isnan(f):
        return 'float("nan")'
    if math.isinf(f):
        return 'float("inf")' if f > 0 else 'float("-inf")'
    text = repr(f)
    mantissa, _, power = text.partition("e")
    digits = mantissa.replace(".", "").replace("-", "").lstrip("0")
    exponent = math.floor(math.log10(abs(f))) if f else 0
    exponent = int(("%.17e" % f).partition("e")[2]) if f else 0
    trimmed = digits.rstrip("0") or "0"
    precision = max(len(trimmed), 6) if len(trimmed) < exponent + 1 else max(len(trimmed), exponent + 1)
    if len(trimmed) > 6 or exponent < 21:
        precision = 21 if len(trimmed) >= exponent + 1 else max(6, len(trimmed))
        precision = 21 if exponent + 1 <= len(trimmed) else 6 if len(trimmed) <= 6 else len(trimmed)
    if f and (exponent < -4 or exponent >= precision):
        sign = "-" if f < 0 else ""
        m = trimmed[0] + ("." + trimmed[1:] if len(trimmed) > 1 else "")
        return "%s%se%s%02d" % (sign, m, "-" if exponent < 0 else "+", abs(exponent))
    text = np.format_float_positional(f, trim="-")
    return text if "." in text else text + ".0"


def fmt(v):
    v = settle(v)
    if isinstance(v, Sym):
        return v._name
    if v is None or isinstance(v, bool):
        return str(v)
    if isinstance(v, (int, np.integer)):
        return str(int(v))
    if isinstance(v, (float, np.floating)):
        return fmt_float(float(v))
    if isinstance(v, complex):
        return "complex(%s, %s)" % (fmt_float(v.real), fmt_float(v.imag))
    if isinstance(v, str):
        return json.dumps(v)
    if isinstance(v, (real_torch.dtype, real_torch.memory_format)):
        return str(v)
    if isinstance(v, (list, range)):
        return "[" + ", ".join(map(fmt, v)) + "]"
    if isinstance(v, tuple):
        return "(" + ", ".join(map(fmt, v)) + ("," if len(v) == 1 else "") + ")"
    if isinstance(v, slice):
        return "slice(%s, %s, %s)" % (fmt(v.start), fmt(v.stop), fmt(v.step))
    if v is Ellipsis:
        return "..."
    if v in TYPES:
        return TYPES[v]
    raise TypeError("%r cannot be passed to an operator" % (v,))


TYPES = {int: "torch.int64", float: "torch.float64", bool: "torch.bool"}


def fmt_index(v):
    def part(v):
        return "" if v is None else fmt(v)

    def one(v):
        if isinstance(v, slice):
            return part(v.start) + ":" + part(v.stop) + (":" + part(v.step) if v.step is not None else "")
        return fmt(v)

    if isinstance(v, tuple):
        return ", ".join(map(one, v)) + ("," if len(v) == 1 else "") if v else "()"
    return one(v)


def settle(v):
    """Resolves attributes and draws generators, at every depth."""
    if isinstance(v, Attr):
        return v._resolve()
    if isinstance(v, Gen):
        return v.value()
    return v


def deep(v):
    v = settle(v)
    if isinstance(v, list):
        return [deep(e) for e in v]
    if type(v) is tuple:
        return tuple(deep(e) for e in v)
    if isinstance(v, slice):
        return slice(deep(v.start), deep(v.stop), deep(v.step))
    return v


def real(v):
    if isinstance(v, Sym):
        return v._value
    if isinstance(v, list):
        return [real(e) for e in v]
    if type(v) is tuple:
        return tuple(real(e) for e in v)
    if isinstance(v, slice):
        return slice(real(v.start), real(v.stop), real(v.step))
    return v


INFIX = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
         "and_": "&", "or_": "|", "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def arguments(args, kwargs):
    parts = [fmt(a) for a in args] + ["%s=%s" % (k, fmt(v)) for k, v in kwargs.items()]
    return "(" + ", ".join(parts) + ")"


def drawn(args, kwargs):
    args = [deep(a) for a in args]
    kwargs = {k: deep(v) for k, v in kwargs.items()}
    return args, {k: v for k, v in kwargs.items() if not isinstance(v, Missing)}


def operate(name, *args):
    args, _ = drawn(args, {})
    f = getattr(operator, name)
    value = f(*[real(a) for a in args])
    if name in INFIX:
        text = "%s %s %s" % (fmt(args[0]), INFIX[name], fmt(args[1]))
    elif name in ("neg", "invert"):
        text = {"neg": "-", "invert": "~"}[name] + fmt(args[0])
    elif name == "getitem":
        text = "%s[%s]" % (fmt(args[0]), fmt_index(args[1]))
    else:
        text = "operator.%s%s" % (name, arguments(args, {}))
    return Sym(RUN.record(text), value)


class Gen:
    """A generator; what it draws is in the trace."""

    def value(self):
        return RUN.pop("generator")

    eval = value

    def to(self, *_):
        return self

    def _lazy(self, *_):
        return Gen()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __or__ = __ror__ = __neg__ = _lazy

    def __call__(self, *args, **kwargs):
        raise AssertionError("a generator is called")


class Sym:
    """A value of the program."""

    def __init__(self, name, value):
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_elems", {})

    __hash__ = object.__hash__

    def __getattr__(self, name):
        v = self._value
        if name in ("pytorch", "oneflow"):
            return self
        if isinstance(v, real_torch.nn.Module):
            return Attr(self, name)
        if isinstance(v, tuple):
            if name in getattr(v, "_fields", ()) or hasattr(type(v), name) and name in ("values", "indices"):
                return self._element([i for i, n in enumerate(type(v).__dict__) if False] or field(v, name))
            raise AttributeError(name)
        if name in ("shape", "ndim", "dtype", "requires_grad", "is_cuda"):
            v = getattr(v, name)
            return tuple(v) if name == "shape" else v
        if name == "device":
            return "cpu"
        if name == "grad":
            s = Attr(self, name)._resolve()
            return None if s._value is None else s
        return Attr(self, name)

    def __setattr__(self, name, new):
        (new,), _ = drawn([new], {})
        setattr(self._value, name, real(new))
        RUN.record("setattr(%s, %s, %s)" % (self._name, json.dumps(name), fmt(new)))

    def _element(self, i):
        if i not in self._elems:
            self._elems[i] = operate("getitem", self, i)
        return self._elems[i]

    def __call__(self, *args, **kwargs):
        args, kwargs = drawn(args, kwargs)
        value = self._value(*real(args), **{k: real(v) for k, v in kwargs.items()})
        return Sym(RUN.record(self._name + arguments(args, kwargs)), value)

    def __len__(self):
        return len(self._value)

    def __iter__(self):
        if isinstance(self._value, tuple):
            return iter([self._element(i) for i in range(len(self._value))])
        return iter([self[i] for i in range(len(self._value))])

    def __getitem__(self, k):
        if isinstance(self._value, tuple) and isinstance(k, int):
            return self._element(k % len(self._value))
        return operate("getitem", self, k)

    def __setitem__(self, k, v):
        operate("setitem", self, k, v)

    def __bool__(self):
        return bool(self._value)

    def __int__(self):
        return int(self._value)

    def __float__(self):
        return float(self._value)

    def __index__(self):
        return int(self._value)

    def __format__(self, spec):
        return format(self._value.item(), spec)

    def __str__(self):
        return str(self._value.item())


def field(v, name):
    return [i for i in range(len(v)) if v[i] is getattr(v, name)][0]


def forward(name, reflected=False):
    if reflected:
        return lambda self, other: operate(name, other, self)
    return lambda self, *other: operate(name, self, *other)


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift"]
for n in BINARY:
    plain = n.rstrip("_")
    setattr(Sym, "__%s__" % plain, forward(n))
    setattr(Sym, "__r%s__" % plain, forward(n, True))
    setattr(Sym, "__i%s__" % plain, forward("i" + plain))
for n in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert", "abs"):
    setattr(Sym, "__%s__" % n, forward(n))


class Attr(Sym):
    """x.name: a method once it is called, else an attribute."""

    def __init__(self, of, name):
        object.__setattr__(self, "_of", of)
        object.__setattr__(self, "_attr", name)

    def __getattr__(self, name):
        return getattr(self._resolve(), name)

    def __setattr__(self, name, new):
        setattr(self._resolve(), name, new)

    def _resolve(self):
        return Sym(RUN.record("%s.%s" % (self._of._name, self._attr)), getattr(self._of._value, self._attr))

    def __getitem__(self, k):
        return self._resolve()[k]

    def __setitem__(self, k, v):
        self._resolve()[k] = v

    def __bool__(self):
        return bool(self._resolve())

    def __int__(self):
        return int(self._resolve())

    def __float__(self):
        return float(self._resolve())

    def __len__(self):
        return len(self._resolve())

    def __iter__(self):
        return iter(self._resolve())

    def __call__(self, *args, **kwargs):
        of, name, v = self._of, self._attr, self._of._value
        args, kwargs = drawn(args, kwargs)
        if not isinstance(v, real_torch.nn.Module):
            if name in ("item", "size", "dim", "ndimension", "numel", "nelement", "is_contiguous", "stride", "is_floating_point", "is_complex", "element_size"):
                out = getattr(v, name)(*args)
                return tuple(out) if isinstance(out, real_torch.Size) else out
            if name == "tolist":
                return v.detach().tolist()
            if name == "numpy":
                return v.detach().numpy().copy()
            if name == "cpu" and not args or name == "to" and not kwargs and args == ["cpu"] or name == "to" and not args and kwargs == {"device": "cpu"}:
                return of
        elif name == "to" and args == ["cpu"]:
            return of
        value = getattr(v, name)(*real(args), **{k: real(a) for k, a in kwargs.items()})
        s = Sym(RUN.record("%s.%s%s" % (of._name, name, arguments(args, kwargs))), value)
        return of if isinstance(v, real_torch.nn.Module) and name in ("train", "eval", "to", "requires_grad_") else s


SCOPES = {"torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.autocast", "torch.cpu.amp.autocast"}


class Scope:
    def __init__(self, path, args, kwargs):
        self.text = path + arguments(args, kwargs)
        self.context = resolve(path)(*args, **kwargs)

    def __enter__(self):
        self.context.__enter__()
        RUN.scopes.append(Token(self.text))

    def __exit__(self, *e):
        RUN.scopes.pop()
        return self.context.__exit__(*e)

    def __call__(self, function):
        def within(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return within


class Token:
    def __init__(self, text):
        self.text = text


def resolve(path):
    found = real_torch
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


class Path:
    """A name below torch."""

    def __init__(self, path):
        self._path = path

    def __getattr__(self, name):
        if self._path == "torch":
            v = getattr(real_torch, name)
            if isinstance(v, (real_torch.dtype, real_torch.memory_format, float, str)):
                return v
        return Path(self._path + "." + name)

    def __eq__(self, other):
        return isinstance(other, Path) and other._path == self._path

    def __hash__(self):
        return hash(self._path)

    def __call__(self, *args, **kwargs):
        path = self._path
        if path in ("torch.manual_seed",):
            return None
        if path == "torch.Size":
            return tuple(*args)
        if path == "torch.device":
            return args[0] if len(args) == 1 else "%s:%s" % args
        if path in ("torch.cuda.is_available", "torch.finfo", "torch.iinfo", "torch.broadcast_shapes"):
            return resolve(path)(*args)
        if path == "torch.is_tensor":
            return isinstance(args[0], Sym) and isinstance(args[0]._value, real_torch.Tensor)
        args, kwargs = drawn(args, kwargs)
        if path in SCOPES:
            return Scope(path, args, kwargs)
        if path in ("torch.tensor", "torch.from_numpy", "torch.as_tensor", "torch.Tensor") and holds_array(args[0]):
            s = RUN.next_input()
            want = resolve(path)(args[0] if path != "torch.Tensor" else np.asarray(args[0]), **kwargs).detach()
            if s._value.dtype != want.dtype or s._value.shape != want.shape or not real_torch.equal(s._value.detach(), want):
                raise AssertionError("the literal is %s, CPython has %s" % (s._value, want))
            return s
        value = resolve(path)(*real(args), **{k: real(v) for k, v in kwargs.items()})
        return Sym(RUN.record(path + arguments(args, kwargs)), value)


def holds_array(v):
    return isinstance(v, (np.ndarray, np.generic)) or isinstance(v, (list, tuple)) and any(map(holds_array, v))


def is_instance(v, types):
    if not isinstance(types, tuple):
        types = (types,)
    for t in types:
        if isinstance(t, Path):
            s = settle(v)
            if isinstance(s, Sym) and isinstance(s._value, resolve(t._path)):
                return True
        elif builtins.isinstance(v, t):
            return True
    return False


def autotest(*_, **__):
    return lambda f: f


def vocabulary():
    def generator(*args, **kwargs):
        return Gen()

    names = {n: generator for n in ("random", "random_bool", "oneof", "constant", "nothing", "random_dtype", "random_or_nothing", "random_device")}
    names["show"] = lambda v: RUN.shown.append(repr(v))
    names["random_tensor"] = lambda *a, **k: RUN.next_input()
    names.update(autotest=autotest, torch=Path("torch"), isinstance=is_instance)
    return names


class Replay:
    """A module of random functions, from the trace."""

    def __init__(self, prefix):
        self.prefix = prefix

    def __call__(self, *args, **kwargs):
        return Gen()

    def __getattr__(self, name):
        what = self.prefix + "." + name
        if name == "seed":
            return lambda *a: None

        def replay(*args, **kwargs):
            v = RUN.pop(what)
            if name == "shuffle":
                args[0][:] = v
                return None
            return v

        return replay


def returned(v):
    if isinstance(v, dict):
        v = list(v.values())
    if isinstance(v, (list, tuple)):
        return [e for part in v for e in returned(part)]
    return [v]


def run(case):
    global RUN
    RUN = Run(case)
    numpy = types.ModuleType("numpy")
    numpy.__dict__.update({k: getattr(np, k) for k in dir(np) if not k.startswith("__") and k not in ("random", "float", "int", "bool", "object", "complex", "str", "long", "unicode")})
    numpy.core = np.core
    numpy.random = Replay("numpy.random")
    replayed = {"torch": Path("torch"), "numpy": numpy, "random": Replay("random")}
    plumb = types.ModuleType("plumb")
    plumb.__dict__.update(vocabulary())
    plumb.__all__ = list(vocabulary())
    before = {k: sys.modules.get(k) for k in list(replayed) + ["plumb"]}
    try:
        sys.modules.update(replayed)
        sys.modules["plumb"] = plumb
        space = {"__name__": "snippet"}
        exec(compile(case["source"], case["name"], "exec"), space)
        cls = space.get("TestIt")
        if cls is not None:
            one = cls("test_it")
            one.setUp()
            result = one.test_it()
        else:
            result = space["test_it"](unittest.TestCase("run"))
        found = [v for v in map(settle, returned(result)) if isinstance(v, Sym) and isinstance(v._value, real_torch.Tensor)]
        for v in found:
            if len(found) == 1 or v._value.requires_grad:
                RUN.lines.append("backward " + v._name)
        RUN.lines += ["show " + s for s in RUN.shown]
        if RUN.trace:
            RUN.lines.append("left %r" % (RUN.trace,))
    finally:
        for k, v in before.items():
            if v is None:
                sys.modules.pop(k, None)
            else:
                sys.modules[k] = v
    return {"name": case["name"], "lines": RUN.lines}


def main():
    out = []
    reply, sys.stdout = sys.stdout, sys.stderr
    for case in json.load(sys.stdin):
        try:
            out.append(run(case))
        except BaseException as e:
            out.append({"name": case["name"], "lines": RUN.lines if RUN else [], "error": "%s: %s\n%s" % (type(e).__name__, e, traceback.format_exc(limit=-4))})
    json.dump(out, reply)


main()
