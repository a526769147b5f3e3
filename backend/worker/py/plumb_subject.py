"""Hosts a framework as a subject of Plumb: an Adapter says what the framework
is, this file runs programs on it (docs/subjects.md).

It needs numpy beside the framework: tensors cross as arrays. Arrays of bfloat16,
which numpy lacks, have the dtype float32.
"""

import contextlib
import importlib
import json
import operator
import os
import re
from time import perf_counter_ns as now

import numpy as np

from plumb_names import DENIED, TYPES, Refusal, is_open

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128")
SCOPES = ("torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled")
CALLED = ("Module.__call__", "Module.__repr__")
INPUT_LATER = ("torch.where", "torch.searchsorted", "torch.polygamma", "torch.special.polygamma")  # input is not the first argument
MESSAGE = 4000  # characters kept of an exception's message
COLOURS = re.compile("\x1b\\[[0-9;]*m")
INT64 = range(-1 << 63, 1 << 63)


class Unsupported(Exception):
    """What the framework does not have: a name, an argument, a dtype."""


class Adapter:
    """What Plumb has to know of a framework; one that copies PyTorch's API needs little of it.

    `root` is its module, `tensor_class` and `module_class` its classes (None: it
    has no modules), `gaps` the texts of exceptions which say that something is
    not there, `table` the differences of its names and arguments from PyTorch's.
    """

    name, version = "", ""
    root = tensor_class = module_class = None
    gaps = ()
    table = {}

    def seed(self, n):
        self.root.manual_seed(n)

    def memory_format(self, name):
        return self.dtype(name)

    def dtype(self, name):
        found = getattr(self.root, name, None)
        if found is None:
            raise Unsupported("%s has no %s" % (self.name, name))
        return found

    def dtype_name(self, dtype):
        return str(dtype).rpartition(".")[2]

    def device(self, name):
        return self.root.device(name)

    def tensor(self, array, dtype, requires_grad):
        """Returns a tensor of an array, which it may keep."""
        t = self.root.from_numpy(array)
        if dtype == "bfloat16":
            t = t.to(self.dtype(dtype))
        return t.requires_grad_() if requires_grad else t

    def array(self, t):
        """Returns the elements of a tensor."""
        t = t.detach()
        for lazy in ("resolve_conj", "resolve_neg"):
            t = getattr(t, lazy, lambda: t)()
        if self.dtype_name(t.dtype) == "bfloat16":
            t = t.to(self.dtype("float32"))
        return t.numpy()

    def requires_grad(self, t):
        return bool(t.requires_grad)

    def is_leaf(self, t):
        return t.is_leaf

    def gradient(self, t):
        return t.grad

    def backward(self, values, cotangents):
        self.root.autograd.backward(values, cotangents)

    def gradients(self, values, wanted, cotangents, create_graph):
        """Returns gradients with None for what the values do not depend on."""
        return self.root.autograd.grad(values, wanted, cotangents, create_graph=create_graph, allow_unused=True)

    def member(self, path):
        """Returns what PyTorch has under a path below torch, such as nn.functional.relu."""
        found = self.root
        for part in path.split("."):
            found = getattr(found, part, None)
            if found is None:
                raise Unsupported("%s has no %s" % (self.name, path))
        return found

    def method(self, name):
        found = getattr(self.tensor_class, name, None)
        if not callable(found):
            raise Unsupported("%s has no method %s of tensors" % (self.name, name))
        return found

    def scope(self, name, *args):
        return self.member(name.partition(".")[2])(*args)

    def construct(self, f, dtype, args, kwargs):
        """Makes a module whose parameters have a dtype."""
        module = f(*args, **kwargs)
        return module if dtype is None else module.to(self.dtype(dtype))

    def state(self, module):
        return module.state_dict().items()

    def parameters(self, module):
        return module.named_parameters()

    def load(self, module, state):
        module.load_state_dict(state)

    def gap(self, e):
        """Tells whether an exception says that something is not there."""
        return isinstance(e, (Unsupported, NotImplementedError)) or any(g in str(e) for g in self.gaps)


def table(path):
    """Reads a table of differences, which lies beside the adapter."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), path)) as f:
        return json.load(f)


# Targets.

def resolve(adapter, target):
    """Returns the framework's callable for a public name of PyTorch."""
    own = {"getattr": attribute, "setattr": assign, "torch.manual_seed": adapter.seed}
    if target in own:
        return own[target]
    difference = adapter.table.get(target, {})
    if difference is None:
        raise Unsupported("%s has no %s" % (adapter.name, target))
    if isinstance(difference, str):
        difference = {"call": difference}
    if "dtypes" in difference:
        return checked(adapter, target, difference)
    return arranged(callable_of(adapter, difference.get("call", target)), target, difference)


def callable_of(adapter, target):
    root, _, name = target.partition(".")
    method = root in ("Tensor", "Module")
    if target in DENIED or method and name.startswith("_") and target not in CALLED or not method and not is_open(target):
        raise Unsupported("%s is not open to programs" % target)
    if root == "operator":
        return getattr(operator, name)
    if root == "Tensor":
        return adapter.method(name)
    if root == "Module":
        return lambda module, *args, **kwargs: getattr(module, name)(*args, **kwargs)
    if root != "torch":
        raise Unsupported("no callable %s" % target)
    found = adapter.member(name)
    if isinstance(found, type) and "." not in name and name not in TYPES:
        raise Unsupported("%s is not open to programs" % target)
    return found


def arranged(f, target, difference):
    """Wraps a callable whose arguments are named otherwise, or have other defaults.
    The first one, which PyTorch calls input, is given by position."""
    rename, fill, drop = (difference.get(k, {}) for k in ("rename", "fill", "drop"))
    if isinstance(f, type) and not (rename or fill or drop):
        return f
    first = target not in INPUT_LATER

    def call(*args, **kwargs):
        if first and not args and "input" in kwargs and "input" not in rename:
            args = (kwargs.pop("input"),)
        for name, value in list(kwargs.items()):
            if name in drop:
                if value != drop[name]:
                    raise Unsupported("no argument %s other than %r" % (name, drop[name]))
                del kwargs[name]
            elif name in rename:
                kwargs[rename[name]] = kwargs.pop(name)
        for name, value in fill.items():
            kwargs.setdefault(name, value)
        return f(*args, **kwargs)

    return call


def checked(adapter, target, difference):
    """Wraps a callable that has some dtypes only, and would not say so."""
    f = arranged(callable_of(adapter, difference.get("call", target)), target, difference)

    def call(*args, **kwargs):
        for a in args:
            if isinstance(a, adapter.tensor_class) and adapter.dtype_name(a.dtype) not in difference["dtypes"]:
                raise Unsupported("%s has no %s of %s" % (adapter.name, target, adapter.dtype_name(a.dtype)))
        return f(*args, **kwargs)

    return call


def attribute(value, name, *default):
    if name.startswith("_"):
        raise Unsupported("attribute %s is not open to programs" % name)
    try:
        return getattr(value, name, *default)
    except AttributeError as e:
        raise Unsupported(str(e)) from None


def assign(value, name, new):
    if name not in ("grad", "data", "requires_grad", "training", "weight", "bias"):
        raise Unsupported("attribute %s cannot be assigned" % name)
    setattr(value, name, new)


# Cases.

class Run:
    """One case while it runs; `reply` grows with it."""

    def __init__(self, adapter, targets, memory, case):
        self.adapter, self.targets, self.memory, self.case = adapter, targets, memory, case
        self.values, self.modules, self.call, self.elapsed = [], {}, 0, 0
        self.found = {}  # gradients of the first and the second order, by the tensor's id
        self.reply = {"status": "ok", "values": self.values}

    def run(self):
        self.adapter.seed(self.case["seed"])
        self.env = [self.load(entry, entry[4]) for entry in self.case["inputs"]]
        self.leaves = [x for x, entry in zip(self.env, self.case["inputs"]) if entry[4]]
        for i, call in enumerate(self.case["calls"]):
            self.step(i, call)
        for entry in self.reply.get("modules", ()):
            entry["final"] = self.state(self.adapter.state(self.modules[entry["call"]]))
        if "measure" in self.case:
            raise Unsupported("no measurements")
        if self.case.get("backward"):
            need = self.backward()
            if need:
                return {"status": "need", "need": need}
        if self.case.get("grads"):
            self.gradients()
        return self.reply

    def step(self, i, call):
        self.call = self.memory.mark[1] = i
        f = self.targets.get(call[0])
        if f is None:
            f = self.targets[call[0]] = resolve(self.adapter, call[0])
        args = [self.decode(a) for a in call[1]]
        kwargs = {name: self.decode(a) for name, a in call[2].items()} if len(call) > 2 else {}
        t = now()
        with contextlib.ExitStack() as stack:
            for scope in call[3] if len(call) > 3 else ():
                if scope[0] not in SCOPES:
                    raise Unsupported("no context %s" % scope[0])
                stack.enter_context(self.adapter.scope(scope[0], *[self.decode(a) for a in scope[1]]))
            if self.constructs(f):
                v = self.adapter.construct(f, self.case.get("dtype"), args, kwargs)
            else:
                v = f(*args, **kwargs)
        self.elapsed += now() - t
        self.env.append(v)
        if self.constructs(f):
            self.constructed(i, v)
        self.values.append(self.encode(v))

    def constructs(self, f):
        modules = self.adapter.module_class
        return modules is not None and isinstance(f, type) and issubclass(f, modules)

    def constructed(self, i, module):
        state = (self.case.get("state") or {}).get(str(i))
        if state:
            self.adapter.load(module, {name: self.load(entry, False) for name, entry in state.items()})
        self.modules[i] = module
        self.reply.setdefault("modules", []).append({"call": i, "initial": self.state(self.adapter.state(module))})

    def backward(self):
        """Differentiates; returns how long a cotangent stream must be, 0 when all were."""
        self.call = self.memory.mark[1] = len(self.case["calls"])
        values, cotangents, need = [], [], 0
        for index, offset, length, auto in self.case["backward"]:
            v = self.env[index]
            if not isinstance(v, self.adapter.tensor_class) or auto and not self.adapter.requires_grad(v):
                if auto:
                    continue
                raise TypeError("backward of a value that is no tensor")
            dtype = self.adapter.dtype_name(v.dtype)
            n = int(np.prod(v.shape, dtype=np.int64)) * (2 if dtype.startswith("complex") else 1)
            if offset is not None and n > length:
                need = max(need, n)
                continue
            values.append(v)
            cotangents.append(self.cotangent(v, offset, n))
        if values and not need:
            t = now()
            if "second" in self.case:
                self.twice(values, cotangents)
            else:
                self.adapter.backward(values, cotangents)
            self.elapsed += now() - t
        return need

    def cotangent(self, v, offset, n):
        dtype = self.adapter.dtype_name(v.dtype)
        stream = np.ones(n) if offset is None else np.frombuffer(self.memory.bytes, np.float64, n, offset)
        if dtype.startswith("complex"):
            stream = stream.view(np.complex128) if offset is not None else stream[::2]
        return self.adapter.tensor(stream.astype(array_dtype(dtype)).reshape(tuple(v.shape)), dtype, False)

    def twice(self, values, cotangents):
        """Differentiates, and then the gradients of the inputs, each times its cotangent."""
        wanted = list(self.leaves)
        for _, named in self.parameters():
            wanted += [p for _, p in named if self.adapter.requires_grad(p) and all(p is not w for w in wanted)]
        if not wanted:
            return
        grads = self.adapter.gradients(values, wanted, cotangents, True)
        firsts, seconds = [], []
        for g, offset in zip(grads[:len(self.leaves)], self.case["second"]):
            if g is not None and self.adapter.requires_grad(g):
                n = int(np.prod(g.shape, dtype=np.int64)) * (2 if self.adapter.dtype_name(g.dtype).startswith("complex") else 1)
                firsts.append(g)
                seconds.append(self.cotangent(g, offset, n))
        found = self.adapter.gradients(firsts, wanted, seconds, False) if firsts else [None] * len(wanted)
        self.found = {id(x): (g, second) for x, g, second in zip(wanted, grads, found)}

    def parameters(self):
        for entry in self.reply.get("modules", ()):
            yield entry, list(self.adapter.parameters(self.modules[entry["call"]]))

    def gradient(self, x):
        return self.found[id(x)][0] if id(x) in self.found else self.adapter.gradient(x)

    def gradients(self):
        self.reply["grads"] = [self.optional(self.gradient(x)) for x in self.leaves]
        for entry, named in self.parameters():
            entry["grads"] = self.state((name, self.gradient(p)) for name, p in named)
        if self.case.get("leaves"):
            self.reply["made"] = self.made()
        if self.found:
            self.reply["grads2"] = [self.optional(self.found[id(x)][1]) for x in self.leaves]
            for entry, named in self.parameters():
                entry["grads2"] = self.state((name, self.found.get(id(p), (None, None))[1]) for name, p in named)

    def made(self):
        """Returns the gradients of the leaves that calls made, under their first name."""
        seen = {id(x) for x in self.leaves}
        seen.update(id(p) for _, named in self.parameters() for _, p in named)
        made = []
        for i, v in enumerate(self.env):
            if isinstance(v, self.adapter.tensor_class) and self.adapter.requires_grad(v) and self.adapter.is_leaf(v) and id(v) not in seen:
                seen.add(id(v))
                g = self.adapter.gradient(v)
                if g is not None:
                    made.append((i, self.store(g)))
        return made

    def failed(self, e):
        out_of_memory = isinstance(e, MemoryError) or "out of memory" in str(e)
        self.reply["status"] = "oom" if out_of_memory else "unsupported" if self.adapter.gap(e) else "raised"
        self.reply["class"], self.reply["call"] = type(e).__name__, self.call
        self.reply["message"] = COLOURS.sub("", str(e)).strip()[:MESSAGE]
        return self.reply

    # Tensors and values.

    def load(self, entry, requires_grad):
        name, offset, shape, strides = entry[:4]
        dtype = np.dtype(np.uint16 if name == "bfloat16" else array_dtype(name))
        n = int(np.prod(shape, dtype=np.int64))
        if strides is not None and n:
            n = 1 + sum((d - 1) * s for d, s in zip(shape, strides))
        flat = np.frombuffer(self.memory.bytes, dtype, n, offset) if n else np.empty(0, dtype)
        flat = (flat.astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else flat.copy()
        if strides is None or not flat.size:
            flat = flat.reshape(shape)
        else:
            flat = np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])
        return self.adapter.tensor(flat, name, requires_grad)

    def store(self, t):
        name = self.adapter.dtype_name(t.dtype)
        if name not in NAMES:
            return ["x", "%s.Tensor(%s)" % (self.adapter.name, name)]
        array = np.ascontiguousarray(self.adapter.array(t))
        if name == "bool":
            array = array.view(np.uint8) != 0
        if name == "bfloat16":
            array = (array.view(np.uint32) >> 16).astype(np.uint16)
        offset = self.memory.reserve(array.nbytes) if array.nbytes else self.memory.top
        np.frombuffer(self.memory.bytes, np.uint8, array.nbytes, offset)[:] = array.reshape(-1).view(np.uint8)
        return ["t", name, offset, list(t.shape), None, self.adapter.requires_grad(t)]

    def optional(self, t):
        return None if t is None else self.store(t)

    def state(self, named):
        return [(name, self.optional(t)) for name, t in named]

    def decode(self, a):
        if type(a) is not list:
            return a
        tag = a[0]
        if tag == "r":
            return self.env[a[1]]
        if tag == "u":
            return tuple([self.decode(e) for e in a[1]])
        if tag == "l":
            return [self.decode(e) for e in a[1]]
        if tag == "d":
            return self.adapter.dtype(a[1])
        if tag == "s":
            return slice(*[self.decode(e) for e in a[1:]])
        if tag == "e":
            return Ellipsis
        if tag == "f":
            return float(a[1])
        if tag == "c":
            return complex(float(a[1]), float(a[2]))
        if tag == "v":
            return self.adapter.device(a[1])
        if tag == "m":
            return self.adapter.memory_format(a[1])
        raise Unsupported("no argument of the kind %r" % (tag,))

    def encode(self, v):
        if isinstance(v, self.adapter.tensor_class):
            return self.store(v)
        if v is None or type(v) in (bool, str):
            return v
        if type(v) is int:
            return v if v in INT64 else str(v)
        if type(v) is float:
            return v if v - v == 0 else ["f", repr(v)]
        if isinstance(v, (tuple, list)):
            return ["u", [self.encode(e) for e in v]]
        if self.adapter.module_class is not None and isinstance(v, self.adapter.module_class):
            return ["m"]
        if type(v) is complex:
            return ["c", self.encode(v.real), self.encode(v.imag)]
        if self.adapter.dtype_name(v) in NAMES + ("cpu",):
            return str(v).replace(self.adapter.name, "torch")
        return ["x", "%s.%s" % (type(v).__module__, type(v).__qualname__)]


def array_dtype(name):
    return np.bool_ if name == "bool" else np.dtype("float32" if name == "bfloat16" else name)


class Subject:
    """What plumb_worker asks of a subject."""

    def __init__(self, adapter):
        self.adapter, self.targets = adapter, {}

    def hello(self):
        device = os.environ.get("PLUMB_WORKER_DEVICE") or "cpu"
        if device != "cpu":
            raise Refusal("%s runs on the CPU alone, not on %s" % (self.adapter.name, device))
        return {"name": self.adapter.name, "version": self.adapter.version, "devices": ["cpu"], "modes": ["eager"],
                "features": {"numpy": np.__version__}}

    def run(self, memory, cases):
        replies = []
        for i, case in enumerate(cases):
            memory.mark[1] = 0
            memory.mark[0] = i + 1
            one = Run(self.adapter, self.targets, memory, case)
            try:
                reply = one.run()
            except Exception as e:
                reply = one.failed(e)
            reply["elapsed"] = one.elapsed
            replies.append(reply)
        return replies

    def signatures(self, name):
        return None


def of(name):
    """Returns the subject that the module plumb_NAME adapts."""
    return Subject(importlib.import_module("plumb_" + name).adapter())
