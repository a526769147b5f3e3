"""Hosts a framework as a subject of Plumb: an Adapter says what the framework
is, this file runs programs on it (docs/subject.md).

Tensors cross as arrays of numpy (plumb_arrays.py), or as bytes where an adapter
says so (plumb_plain.py).
"""

import contextlib
import math
import operator
import re
from time import perf_counter_ns as now

import plumb_check as kernel  # plumb_subject.kernel.check judges one function
import plumb_table
from plumb_names import DENIED, DTYPES, TYPES, Unsupported, is_open

OPERATORS = {"__%s__" % name.strip("_") for name in dir(operator)}
SCOPES = ("torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled")
CALLED = ("Module.__call__", "Module.__repr__")
INPUT_LATER = ("torch.where", "torch.searchsorted", "torch.polygamma", "torch.special.polygamma")  # input is not the first argument
WATCHED = 1 << 18  # elements of a program's tensors up to which changes in place are looked for
MESSAGE = 4000  # characters kept of an exception's message
COLOURS = re.compile("\x1b\\[[0-9;]*m")
SUMMED = ("bool", *plumb_table.GROUPS["integers"])  # dtypes whose sums are int64
INT64 = range(-1 << 63, 1 << 63)


class Adapter:
    """What Plumb has to know of a framework; one that copies PyTorch's API needs little of it.

    `root` is its module, `tensor_class` and `module_class` its classes (None: it
    has no modules), `gaps` the texts of exceptions which say that something is
    not there, `table` the differences of its names and arguments from PyTorch's.

    One with an interface of its own has `own`: its table says how it makes each
    operator's call (plumb_table.py). Where its tensors never change, `functional`
    says so, `vjp`, `stop` and `cast` take the place of the methods about
    gradients, and `modes` has what compiles a function of tensors. Where there is
    a tape, `modes` has what runs a function of tensors and modules as one program,
    given it, a list of tensors and the modules. One that has no `gradients`, or none in the modes
    `forward`, is asked for none; where they are "program", Plumb writes them as
    programs of forward calls. Exceptions of the classes `forms` say, where
    a call raises them, that the framework does not take its arguments in this form.
    One that `watches` has calls change tensors as PyTorch's do, buffers of norms
    included: what they changed is told. `nodes` are the names of classes of what
    a tensor's grad_fn is. `calls` has what an adapter with `own` does itself, by
    PyTorch's names: what is asked of a tape.
    """

    name, version = "", ""
    root = tensor_class = module_class = None
    gaps = forms = nodes = ()
    table = {}
    own = functional = False
    gradients = True
    forward = ()
    watches = False
    modes = {}
    calls = {}

    @property
    def arrays(self):
        """The module that carries tensors over: plumb_arrays, with numpy, or plumb_plain."""
        import plumb_arrays

        return plumb_arrays

    def is_tensor(self, v):
        return isinstance(v, self.tensor_class)

    def cast(self, t, dtype):
        """Returns a tensor in a dtype, by its name."""
        raise Unsupported("%s converts no dtypes" % self.name)

    def vjp(self, f, leaves, cotangents):
        """Returns the gradient of each leaf, where f returns a list of tensors of the leaves."""
        raise Unsupported("%s has no gradients" % self.name)

    def stop(self, v):
        """Returns what is equal and has no gradient."""
        return v

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

    def backward_once(self, values, cotangents):
        """Differentiates results of one captured program."""
        self.root.autograd.backward(values, cotangents)

    def gradients_of(self, values, wanted, cotangents, create_graph):
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

    # What the calls of a table use, as self.NAME.

    def alike(self, *values):
        """Returns tensors in the dtype to which PyTorch promotes them and the numbers beside them."""
        dtype = plumb_table.promoted(self, values)
        return [self.cast(v, dtype) if self.is_tensor(v) and self.dtype_name(v.dtype) != dtype else v for v in values]

    def summed(self, t, dtype=None):
        """Returns a tensor in the dtype of its sums: the one asked for, int64 of integers."""
        name = "int64" if self.dtype_name(t.dtype) in SUMMED else None
        return self.cast(t, self.dtype_name(dtype)) if dtype is not None else self.cast(t, name) if name else t

    def axes(self, dim):
        """Returns the dimensions of a reduction: no list of them is all."""
        if dim is None or isinstance(dim, int):
            return dim
        return tuple(dim) or None

    def ddof(self, correction, unbiased):
        return correction if correction is not None else int(unbiased is not False)

    def each(self, v, n):
        """Returns an argument of each of n dimensions, which may be given as one for all."""
        if isinstance(v, int) or len(v) == 1:
            return (v if isinstance(v, int) else v[0],) * n
        if len(v) != n:
            raise Unsupported("an argument of %d dimensions, not of %d" % (len(v), n))
        return tuple(v)

    def listed(self, v):
        return [v] if isinstance(v, int) else v

    def given(self, v):
        """Returns an argument without which PyTorch chooses."""
        if v is None:
            raise Unsupported("an argument is not given")
        return v

    def axis(self, t, dim):
        """Returns a dimension counted from the first."""
        if not -len(t.shape) <= dim < len(t.shape):
            raise Unsupported("no dimension %d" % dim)
        return dim % len(t.shape)

    def place(self, t, dim, start):
        """Returns where along a dimension something starts, counted from the first."""
        return start + t.shape[dim] if start < 0 else start

    def sliced(self, t, dim, start, end, step):
        """Returns the index of a slice along one dimension."""
        return (slice(None),) * self.axis(t, dim) + (slice(start, end, step),)

    def last(self, t, shape):
        """Returns the last dimensions of a tensor, which have a shape."""
        n = len(t.shape) - len(shape)
        if tuple(t.shape[n:]) != tuple(shape):
            raise Unsupported("a tensor of another shape")
        return tuple(range(n, len(t.shape)))

    def without(self, t, dim):
        """Returns all dimensions of a tensor but one."""
        return tuple(i for i in range(len(t.shape)) if i != dim)

    def sizes(self, t, size):
        """Returns the shape of an expanded tensor, in which -1 stands for its own size."""
        own = (0,) * (len(size) - len(t.shape)) + tuple(t.shape)
        return tuple(n if d == -1 else d for d, n in zip(size, own))

    def parted(self, t, dim, sizes):
        """Returns the shape of a tensor whose dimension becomes several."""
        dim = self.axis(t, dim)
        return tuple(t.shape[:dim]) + tuple(sizes) + tuple(t.shape[dim + 1:])

    def repeats(self, t, repeats):
        if len(repeats) < len(t.shape):
            raise Unsupported("a number of repeats for each dimension")
        return tuple(repeats)

    def share(self, total, n):
        """Returns the size of n chunks of a dimension."""
        return max(1, -(-total // n))

    def bounds(self, sizes, total):
        """Returns where a dimension is split: before each part but the first."""
        if isinstance(sizes, int):
            return list(range(sizes, total, sizes))
        if sum(sizes) != total:
            raise Unsupported("sizes that are not all of a dimension")
        return [sum(sizes[:i]) for i in range(1, len(sizes))]

    def widths(self, t, pad):
        """Returns how much is added before and after each dimension, the first one first."""
        pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad) - 1, 2)][::-1]
        return [(0, 0)] * (len(t.shape) - len(pairs)) + pairs

    def number(self, v):
        if not isinstance(v, (int, float)):
            raise Unsupported("a number is needed")
        return v

    def default(self, dtype, *numbers):
        """Returns the dtype of a tensor made of numbers: the one asked for, or PyTorch's."""
        if dtype is not None:
            return dtype
        return self.dtype(plumb_table.promoted(self, numbers) or "float32")

    def leaves(self, data):
        """Lists the numbers of nested lists."""
        return [v for e in data for v in self.leaves(e)] if isinstance(data, (tuple, list)) else [data]

    def beside(self, t, index, dim=None):
        """Returns the part of a tensor that gather reads by an index, or whose elements scatter puts by one."""
        return t[tuple(slice(None) if dim is not None and i == dim % len(t.shape) else slice(n) for i, n in enumerate(index.shape))]

    def gap(self, e):
        """Tells whether an exception says that something is not there."""
        return isinstance(e, (Unsupported, NotImplementedError)) or any(g in str(e) for g in self.gaps)


table = plumb_table.load


# Targets.

def resolve(adapter, target):
    """Returns the framework's callable for a public name of PyTorch."""
    if target == "torch.manual_seed":
        return adapter.seed
    if adapter.own:
        return plumb_table.resolve(adapter, target)
    if target in ("getattr", "setattr"):
        return attribute if target == "getattr" else assign
    difference = adapter.table.get(target, {})
    if difference is None:
        raise Unsupported("%s has no %s" % (adapter.name, target))
    if isinstance(difference, str):
        difference = {"call": difference}
    if "dtypes" in difference:
        return checked(adapter, target, difference)
    return arranged(adapter, target, difference)


def callable_of(adapter, target):
    root, _, name = target.partition(".")
    method = root in ("Tensor", "Module")
    if target in DENIED or method and name.startswith("_") and name not in OPERATORS and target not in CALLED or not method and not is_open(target):
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


def arranged(adapter, target, difference):
    """Wraps a callable whose arguments are named or ordered otherwise, or have other defaults.
    The first one, which PyTorch calls input, is given by position."""
    f = callable_of(adapter, difference.get("call", target))
    rename, fill, drop, order, flag = (difference.get(k, {}) for k in ("rename", "fill", "drop", "order", "flag"))
    if isinstance(f, type) and not (rename or fill or drop):
        return f
    first = target not in INPUT_LATER

    def call(*args, **kwargs):
        if first and not args and "input" in kwargs and "input" not in rename:
            args = (kwargs.pop("input"),)
        if order or flag and any(isinstance(a, bool) for a in args[1:2]):
            kwargs.update(zip(order or [flag], args[1:]))
            args = args[:1]
        for name, value in list(kwargs.items()):
            if name in drop:
                if value != drop[name]:
                    raise Unsupported("no argument %s other than %r" % (name, drop[name]))
                del kwargs[name]
            elif name in rename:
                kwargs[rename[name]] = kwargs.pop(name)
        for name, value in fill.items():
            kwargs.setdefault(name, filled(adapter, value, args))
        return f(*args, **kwargs)

    return call


def filled(adapter, value, args):
    """Returns a default of the table: a dtype, an attribute of the first argument, or what stands there."""
    owner, _, name = value.partition(".") if isinstance(value, str) else ("", "", "")
    return adapter.dtype(name) if owner == "torch" else getattr(args[0], name) if owner == "input" else value


def checked(adapter, target, difference):
    """Wraps a callable that has some dtypes only, and would not say so."""
    f = arranged(adapter, target, difference)

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
        self.values, self.modules, self.call, self.elapsed, self.watched = [], {}, 0, 0, 0
        self.found = {}  # gradients of the first and the second order, by the tensor's id
        self.reply = {"status": "ok", "values": self.values}

    def run(self):
        self.adapter.seed(self.case["seed"])
        self.inputs()
        self.calls()
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

    def inputs(self):
        self.env = [self.load(entry, entry[4]) for entry in self.case["inputs"]]
        self.leaves = [x for x, entry in zip(self.env, self.case["inputs"]) if entry[4]]

    def calls(self):
        if self.adapter.watches:
            self.reply["changes"] = []
        for i, call in enumerate(self.case["calls"]):
            self.call = self.memory.mark[1] = i
            kept = self.kept(call)
            t = now()
            with contextlib.ExitStack() as stack:
                for scope in call[3] if len(call) > 3 else ():
                    if scope[0] not in SCOPES:
                        raise Unsupported("no context %s" % scope[0])
                    stack.enter_context(self.adapter.scope(scope[0], *[self.decode(a) for a in scope[1]]))
                v = self.evaluate(call)
            self.elapsed += now() - t
            for k, old in kept:
                if self.elements(self.env[k]) != old:
                    self.reply["changes"].append((i, k, self.store(self.env[k])))
            self.env.append(v)
            if self.constructs(self.targets[call[0]]):
                self.constructed(i, v)
            self.values.append(self.encode(v))

    def kept(self, call):
        """Lists the shapes and elements of all tensors before a call that may change some; watching ends
        where they are many."""
        if "changes" not in self.reply or not self.may_change(call):
            return []
        kept = [(k, v) for k, v in enumerate(self.env) if self.adapter.is_tensor(v) and self.adapter.dtype_name(v.dtype) in DTYPES]
        self.watched += len(kept)
        if self.watched > 1 << 12 or sum(self.size(v) for _, v in kept) > WATCHED:
            del self.reply["changes"]
            return []
        return [(k, self.elements(v)) for k, v in kept]

    def may_change(self, call):
        """Tells whether a call changes a tensor by its name, by an argument, or as norms and embeddings do."""
        named = len(call) > 2 and call[2].get("inplace")
        return plumb_table.changes(call[0]) or call[0].endswith(("_norm", "embedding", "Module.__call__")) or named or any(a is True for a in call[1])

    def elements(self, t):
        return tuple(t.shape), self.adapter.array(t).tobytes()

    def evaluate(self, call):
        """Makes a call and returns its value."""
        f = self.targets.get(call[0])
        if f is None:
            f = self.targets[call[0]] = resolve(self.adapter, call[0])
        args = [self.decode(a) for a in call[1]]
        kwargs = {name: self.decode(a) for name, a in call[2].items()} if len(call) > 2 else {}
        if self.constructs(f) and not self.adapter.own:
            return self.adapter.construct(f, self.case.get("dtype"), args, kwargs)
        return f(*args, **kwargs)

    def constructs(self, f):
        modules = self.adapter.module_class
        return getattr(f, "constructs", False) or modules is not None and isinstance(f, type) and issubclass(f, modules)

    def constructed(self, i, module):
        self.fill(i, module)
        self.modules[i] = module
        self.reply.setdefault("modules", []).append({"call": i, "initial": self.state(self.adapter.state(module))})

    def fill(self, i, module):
        """Gives a module the state that the request has for it."""
        state = (self.case.get("state") or {}).get(str(i))
        if state:
            self.adapter.load(module, {name: self.load(entry, self.adapter.own and trains(module, name, entry[0])) for name, entry in state.items()})

    def backward(self):
        """Differentiates; returns how long a cotangent stream must be, 0 when all were."""
        self.call = self.memory.mark[1] = len(self.case["calls"])
        values, cotangents, need = [], [], 0
        for index, offset, length, auto in self.case["backward"]:
            v = self.env[index]
            if not self.adapter.is_tensor(v) or auto and not self.requires(index):
                if auto:
                    continue
                raise TypeError("backward of a value that is no tensor")
            n = self.size(v)
            if offset is not None and n > length:
                need = max(need, n)
                continue
            values.append(index)
            cotangents.append(self.cotangent(v, offset, n))
        if values and not need:
            t = now()
            self.differentiate(values, cotangents)
            self.elapsed += now() - t
        return need

    def requires(self, index):
        """Tells whether a value requires a gradient."""
        return self.adapter.requires_grad(self.env[index])

    def size(self, v):
        """Returns how many numbers the cotangent of a value has."""
        return math.prod(v.shape) * (2 if self.adapter.dtype_name(v.dtype).startswith("complex") else 1)

    def differentiate(self, indices, cotangents):
        values = [self.env[i] for i in indices]
        if "second" in self.case:
            self.twice(values, cotangents)
        else:
            self.adapter.backward(values, cotangents)

    def cotangent(self, v, offset, n):
        dtype = self.adapter.dtype_name(v.dtype)
        array = self.adapter.arrays.cotangent(self.memory.bytes, dtype, offset, n, tuple(v.shape))
        return self.adapter.tensor(array, dtype, False)

    def twice(self, values, cotangents):
        """Differentiates, and then the gradients of the inputs, each times its cotangent."""
        wanted = list(self.leaves)
        for _, named in self.parameters():
            wanted += [p for _, p in named if self.adapter.requires_grad(p) and all(p is not w for w in wanted)]
        if not wanted:
            return
        grads = self.adapter.gradients_of(values, wanted, cotangents, True)
        firsts, seconds = [], []
        for g, offset in zip(grads[:len(self.leaves)], self.case["second"]):
            if g is not None and self.adapter.requires_grad(g):
                firsts.append(g)
                seconds.append(self.cotangent(g, offset, self.size(g)))
        found = self.adapter.gradients_of(firsts, wanted, seconds, False) if firsts else [None] * len(wanted)
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
            if self.adapter.is_tensor(v) and self.adapter.requires_grad(v) and self.adapter.is_leaf(v) and id(v) not in seen:
                seen.add(id(v))
                g = self.adapter.gradient(v)
                if g is not None:
                    made.append((i, self.store(g)))
        return made

    def gap(self, e):
        """Tells whether an exception of the call, or of the backward pass, says that something is not there."""
        return self.adapter.gap(e) or isinstance(e, self.adapter.forms) and self.call < len(self.case["calls"])

    def failed(self, e):
        out_of_memory = isinstance(e, MemoryError) or "out of memory" in str(e)
        self.reply["status"] = "oom" if out_of_memory else "unsupported" if self.gap(e) else "raised"
        self.reply["class"], self.reply["call"] = type(e).__name__, self.call
        self.reply["message"] = COLOURS.sub("", str(e)).strip()[:MESSAGE]
        return self.reply

    # Tensors and values.

    def load(self, entry, requires_grad):
        return self.adapter.tensor(self.adapter.arrays.read(self.memory.bytes, *entry[:4]), entry[0], requires_grad)

    def store(self, t):
        name = self.adapter.dtype_name(t.dtype)
        if name not in DTYPES:
            return ["x", "%s.Tensor(%s)" % (self.adapter.name, name)]
        offset = self.adapter.arrays.write(self.memory, name, self.adapter.array(t))
        return ["t", name, offset, list(t.shape), None, self.requires_grad(t)]

    def requires_grad(self, t):
        return self.adapter.requires_grad(t)

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
        if self.adapter.is_tensor(v):
            return self.store(v)
        if v is None or type(v) in (bool, str):
            return v
        if type(v) is int:
            return v if v in INT64 else str(v)
        if type(v) is float:
            return v if v - v == 0 else ["f", repr(v)]
        if isinstance(v, (tuple, list)):
            return ["u", [self.encode(e) for e in v]]
        if isinstance(v, (self.adapter.module_class or plumb_table.Module, plumb_table.Module)):
            return ["m"]
        if type(v) is complex:
            return ["c", self.encode(v.real), self.encode(v.imag)]
        if self.adapter.dtype_name(v) in DTYPES:
            return "torch." + self.adapter.dtype_name(v)
        if str(v) == "cpu":
            return "cpu"
        if type(v).__name__ in self.adapter.nodes:
            return "grad_fn"
        return ["x", "%s.%s" % (type(v).__module__, type(v).__qualname__)]


def trains(module, name, dtype):
    """Tells whether an entry of a module's state is a parameter."""
    return name not in module.buffers and not dtype.startswith(("bool", "int", "uint"))
