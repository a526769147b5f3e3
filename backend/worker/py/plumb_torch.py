"""PyTorch runs a case call by call, forward and backward: the mode eager."""

import contextlib
import ctypes
import importlib
import operator
import os
from time import perf_counter_ns as now
from types import GeneratorType

import torch
from torch.autograd import backward as differentiate
from torch.nn import Module, Parameter
from torch.nn.parameter import is_lazy

from plumb_names import DENIED, LISTED, MODULES, TYPES, Refusal, is_open

Tensor = torch.Tensor
strided = torch.strided
frombuffer = torch.frombuffer
memmove = ctypes.memmove


def own_device(name, imports):
    """Returns the device where tensors live, which a module may have brought."""
    for module in imports:
        try:
            importlib.import_module(module)
        except Exception as e:
            raise Refusal("--import %s: %s: %s" % (module, type(e).__name__, e)) from None
    try:
        device = torch.device(name)
        t = torch.zeros(1, device=device)
        if not t.is_meta:
            t.cpu()
    except Exception as e:
        raise Refusal("torch %s has no device %s here: %s" % (torch.__version__, name, str(e).partition("\n")[0])) from None
    return device


DEVICE = own_device(os.environ.get("PLUMB_WORKER_DEVICE") or "cpu", [m for m in os.environ.get("PLUMB_WORKER_IMPORT", "").split(",") if m])
ON_CPU = DEVICE.type == "cpu"
META = DEVICE.type == "meta"  # tensors have no elements there

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128")
DTYPES = {name: getattr(torch, name) for name in NAMES}
NAME_OF = {dtype: name for name, dtype in DTYPES.items()}
FORMATS = {name: getattr(torch, name) for name in ("contiguous_format", "channels_last", "preserve_format")}

INT64 = range(-1 << 63, 1 << 63)
MESSAGE = 8000  # characters kept of an exception's message


# Targets: what a public name stands for.

OPERATORS = {"__%s__" % name.strip("_") for name in dir(operator)}


class Unknown(Exception):
    """A name, or a kind of argument, that this subject does not have."""


class Breach(BaseException):
    """The host sent what the protocol does not have."""


def resolve(target):
    root, _, name = target.partition(".")
    if target == "getattr":
        return attribute
    if target == "setattr":
        return assign
    if target == "torch.manual_seed":
        return reseed
    if target in DENIED:
        raise Unknown("%s is not open to programs" % target)
    if root == "Tensor":
        return member(Tensor, name, target)
    if root == "Module":
        return module_method(name, target)
    owner, _, last = target.rpartition(".")
    if owner not in MODULES and not owner.startswith("torch.ops.aten."):
        raise Unknown("no callable %s" % target)
    if owner in MODULES and not is_open(target):
        raise Unknown("%s is not open to programs" % target)
    if owner == "torch.Tensor":
        return resolve("Tensor." + last)
    found = vision(target) if root == "torchvision" else {"torch": torch, "operator": operator}[root]
    for part in target.split(".")[1:]:
        found = member(found, part, target)
    return found


def reseed(seed):
    torch.manual_seed(seed)


def vision(target):
    try:
        import torchvision.ops
    except ImportError:
        raise Unknown("no callable %s: there is no torchvision" % target) from None
    return torchvision


def member(owner, name, target):
    if name.startswith("_") and not (owner is Tensor and name in OPERATORS or owner is torch and name.startswith(LISTED)):
        raise Unknown("%s is not open to programs" % target)
    found = getattr(owner, name, None)
    if not callable(found) and owner is Tensor:
        raise Unknown("no method %s" % target)
    if found is None:
        raise Unknown("no callable %s" % target)
    if owner is torch and isinstance(found, type) and name not in TYPES:
        raise Unknown("%s is not open to programs" % target)
    return found


def module_method(name, target):
    if name.startswith("_") and name not in ("__call__", "__repr__"):
        raise Unknown("%s is not open to programs" % target)

    def call(module, *args, **kwargs):
        if not isinstance(module, Module):
            raise TypeError("%s: expected a Module, got %s" % (target, type(module).__name__))
        found = getattr(module, name)(*args, **kwargs)
        return list(found) if isinstance(found, GeneratorType) else found

    return call


def attribute(value, name, *default):
    if name.startswith("_") or "Tensor." + name in DENIED:
        raise Unknown("attribute %s is not open to programs" % name)
    try:
        return getattr(value, name, *default)
    except AttributeError as e:
        raise Unknown(str(e)) from None


ASSIGNABLE = {"grad", "data", "requires_grad", "training"}


def assign(value, name, new):
    if isinstance(value, Module):
        if name.startswith("_") or callable(getattr(type(value), name, None)):
            raise Unknown("attribute %s cannot be assigned by programs" % name)
    elif not isinstance(value, Tensor) or name not in ASSIGNABLE:
        raise Unknown("attribute %s cannot be assigned by programs" % name)
    setattr(value, name, new)


CONTEXTS = {
    "torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.no_grad", "torch.autograd.enable_grad",
    "torch.autocast", "torch.cpu.amp.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast",
}


def context(call, env):
    """Returns the context manager that a scope of a call describes."""
    if call[0] not in CONTEXTS:
        raise Unknown("no context %s" % call[0])
    found = torch
    for part in call[0].split(".")[1:]:
        found = getattr(found, part, None)
    if found is None:
        raise Unknown("no context %s" % call[0])
    args = [decode(a, env) for a in call[1]]
    kwargs = {name: decode(a, env) for name, a in call[2].items()} if len(call) > 2 else {}
    return found(*args, **kwargs)


class Targets(dict):
    def __missing__(self, target):
        found = self[target] = resolve(target)
        return found


targets = Targets()


# Arguments.

def decode(a, env):
    if type(a) is not list:
        return a
    tag = a[0]
    if tag == "r":
        return env[a[1]]
    if tag == "u":
        return tuple([decode(e, env) for e in a[1]])
    if tag == "l":
        return [decode(e, env) for e in a[1]]
    if tag == "d":
        return dtype_of(a[1])
    if tag == "s":
        return slice(decode(a[1], env), decode(a[2], env), decode(a[3], env))
    if tag == "e":
        return Ellipsis
    if tag == "f":
        return float(a[1])
    if tag == "c":
        return complex(float(a[1]), float(a[2]))
    if tag == "m":
        return FORMATS[a[1]]
    if tag == "v":
        return torch.device(a[1])
    raise Breach("unknown argument tag %r" % (tag,))


def dtype_of(name):
    dtype = DTYPES.get(name)
    if dtype is None:
        raise Unknown("no dtype %s" % name)
    return dtype


def view(memory, dtype, offset, shape, strides):
    """Returns a tensor over shared memory that is nobody's view."""
    n = 1
    if strides is None:
        strides, step = [], 1
        for d in reversed(shape):
            strides.append(step)
            n *= d
            step *= d or 1
        strides.reverse()
    else:
        for d, s in zip(shape, strides):
            n = n + (d - 1) * s if d else 0
            if not n:
                break
    if not n:
        return torch.empty_strided(shape, strides, dtype=dtype)
    return frombuffer(memory.bytes, dtype=dtype, count=n, offset=offset).as_strided_(shape, strides)


def load(memory, entry):
    name, offset, shape, strides = entry[:4]
    t = view(memory, dtype_of(name), offset, shape, strides)
    return t if ON_CPU else t.to(DEVICE)


# Values.

def encode(memory, v):
    kind = type(v)
    if kind is Tensor or kind is Parameter:
        return store(memory, v)
    if v is None or kind is bool or kind is str:
        return v
    if kind is int:
        return v if v in INT64 else str(v)
    if kind is float:
        return v if v - v == 0 else ["f", repr(v)]
    if isinstance(v, (tuple, list)):
        return ["u", [encode(memory, e) for e in v]]
    if isinstance(v, Tensor):
        return store(memory, v)
    if isinstance(v, Module):
        return ["m"]
    if kind is complex:
        return ["c", encode(memory, v.real), encode(memory, v.imag)]
    if kind is torch.dtype or kind is torch.device or kind is torch.layout or kind is torch.memory_format:
        return str(v)
    if hasattr(v, "next_functions"):
        return "grad_fn"
    return ["x", "%s.%s" % (kind.__module__, kind.__qualname__)]


def store(memory, t):
    """Copies t with the gaps of its strides into shared memory."""
    name = NAME_OF.get(t.dtype)
    if name is None or t.layout is not strided or not t.is_cpu or t.is_neg() or t.is_conj():
        kind = "torch.Tensor(%s, %s, %s, %s)" % (list(t.shape), t.dtype, t.layout, t.device.type)
        if name is None or t.layout is not strided or t.is_meta and not META:
            return ["x", kind]
        if META:
            # One element stands for all.
            at = memory.reserve(t.element_size())
            ctypes.memset(memory.base + at, 0, t.element_size())
            return ["t", name, at, t.shape, [0] * t.dim(), t.requires_grad]
        grad = t.requires_grad
        t = t.detach().cpu().resolve_conj().resolve_neg().requires_grad_(grad)
    strides = None
    n = t.numel()
    if not t.is_contiguous():
        strides = t.stride()
        if n:
            n = 1
            for d, s in zip(t.shape, strides):
                n += (d - 1) * s
    offset = memory.top
    if n:
        start = t.data_ptr()
        if not start and hasattr(t, "_is_zerotensor") and t._is_zerotensor():
            return store(memory, torch.zeros(t.shape, dtype=t.dtype).requires_grad_(t.requires_grad))
        if not start:
            return ["x", "torch.Tensor(%s, %s) without storage" % (list(t.shape), t.dtype)]
        n *= t.element_size()
        offset = memory.reserve(n)
        memmove(memory.base + offset, start, n)
    return ["t", name, offset, t.shape, strides, t.requires_grad]


def store_state(memory, named):
    state = []
    for name, t in named:
        kind = type(t)
        if t is None:
            state.append((name, None))
        elif kind is Parameter or kind is Tensor or isinstance(t, Tensor) and not is_lazy(t):
            state.append((name, store(memory, t)))
    return state


# Cases.

def in_dtype(name, constructor, args, kwargs):
    """Constructs a module whose parameters have the named dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, name))
    try:
        return constructor(*args, **kwargs)
    finally:
        torch.set_default_dtype(before)


# Functions that change arguments without counting it.
SILENT = (torch.batch_norm, torch.instance_norm, torch.nn.functional.batch_norm, torch.nn.functional.instance_norm)


def version(v):
    """Returns how often a tensor was changed in place; None for other values."""
    return v._version if isinstance(v, Tensor) else None


class Run:
    """One case while it runs; `reply` grows with it."""

    late = True  # whether the value of the last call is stored after the backward pass

    def __init__(self, memory, case):
        self.memory = memory
        self.case = case
        self.values = []
        self.modules = {}  # by the index of the constructing call
        self.changes = []
        self.found = None  # gradients of the second order, by the tensor's id
        self.last = None  # the value of the last call, until it is stored
        self.call = 0
        self.elapsed = 0
        self.reply = {"status": "ok", "values": self.values, "changes": self.changes}

    def inputs(self):
        memory = self.memory
        env = []
        for entry in self.case["inputs"]:
            x = load(memory, entry)
            if entry[4]:
                x.requires_grad_()
            env.append(x)
        self.env = env
        self.versions = [version(x) for x in env]
        self.leaves = [x for x, entry in zip(env, self.case["inputs"]) if entry[4]]

    def forward(self):
        memory, env, mark = self.memory, self.env, self.memory.mark
        state = self.case.get("state")
        dtype = self.case.get("dtype")
        for i, call in enumerate(self.case["calls"]):
            self.call = i
            mark[1] = i
            f = targets[call[0]]
            args = [decode(a, env) for a in call[1]]
            kwargs = {name: decode(a, env) for name, a in call[2].items()} if len(call) > 2 else {}
            kept = [(k, x.detach().clone()) for k, x in self.unnoticed(f, args)]
            t = now()
            if len(call) > 3:
                with contextlib.ExitStack() as stack:
                    for scope in call[3]:
                        stack.enter_context(context(scope, env))
                    v = self.apply(dtype, f, args, kwargs)
            else:
                v = self.apply(dtype, f, args, kwargs)
            self.elapsed += now() - t
            self.changed(i, call)
            for k, x in kept:
                told = any(c[:2] == (i, k) for c in self.changes)
                if not told and not torch.equal(x, env[k].detach()):
                    self.changes.append((i, k, store(memory, env[k])))
                self.versions[k] = version(env[k])
            env.append(v)
            self.versions.append(version(v))
            if isinstance(v, Module) and isinstance(f, type):
                self.constructed(i, v, state)
            if self.late and i == len(self.case["calls"]) - 1:
                self.last = (v,)
            else:
                self.values.append(encode(memory, v))
            mark = memory.mark

    def unnoticed(self, f, args):
        """Lists the values that a call may change without its arguments telling:
        norms do not count it, and a module may change its buffers."""
        if f in SILENT:
            return [(k, x) for k, x in enumerate(self.env) if isinstance(x, Tensor)]
        if not args or not isinstance(args[0], Module):
            return ()
        buffers = set(map(id, args[0].buffers()))
        return [(k, x) for k, x in enumerate(self.env) if id(x) in buffers] if buffers else ()

    def finish_values(self):
        """Stores the last call's value, which nothing changes: a large one after the
        backward pass, which takes the most memory."""
        if self.last:
            (v,), self.last = self.last, None
            self.values.append(encode(self.memory, v))

    def apply(self, dtype, f, args, kwargs):
        if dtype is not None and isinstance(f, type):
            return in_dtype(dtype, f, args, kwargs)
        return f(*args, **kwargs)
    def changed(self, i, call):
        """Stores what call i changed among the values before it."""
        if not (self.bumped(["u", call[1]]) or len(call) > 2 and self.bumped(["u", list(call[2].values())])):
            return
        for k, old in enumerate(self.versions):
            new = version(self.env[k])
            if new != old:
                self.versions[k] = new
                self.changes.append((i, k, store(self.memory, self.env[k])))

    def bumped(self, a):
        """Tells whether the version of a tensor among the arguments is another one."""
        if type(a) is not list:
            return False
        if a[0] == "r":
            return version(self.env[a[1]]) != self.versions[a[1]]
        return (a[0] == "u" or a[0] == "l") and any([self.bumped(e) for e in a[1]])

    def constructed(self, i, module, state):
        if not ON_CPU:
            module.to(DEVICE)
        if state and str(i) in state:
            held = {id(t) for m in self.modules.values() for t in m.state_dict(keep_vars=True).values()}
            held = {name for name, t in module.state_dict(keep_vars=True).items() if id(t) in held}  # calls may have used them
            module.load_state_dict({name: load(self.memory, t) for name, t in state[str(i)].items() if name not in held}, strict=not held)
        self.modules[i] = module
        entry = {"call": i, "initial": store_state(self.memory, module.state_dict(keep_vars=True).items())}
        self.reply.setdefault("modules", []).append(entry)

    def finals(self):
        for entry in self.reply.get("modules", ()):
            module = self.modules[entry["call"]]
            entry["final"] = store_state(self.memory, module.state_dict(keep_vars=True).items())

    def backward(self):
        """Differentiates; returns how long a cotangent stream must be, 0 when all were."""
        self.call = len(self.case["calls"])
        self.memory.mark[1] = self.call
        values, cotangents, need = self.differentiated()
        if need:
            return need
        if values:
            t = now()
            if "second" in self.case:
                self.twice(values, cotangents)
            else:
                differentiate(values, cotangents)
            self.elapsed += now() - t
        return 0

    def differentiated(self):
        """Returns the values to differentiate, their cotangents, and how long a stream must be."""
        values, cotangents, need = [], [], 0
        for index, offset, length, auto in self.case["backward"]:
            v = self.env[index]
            if not isinstance(v, Tensor):
                if auto:
                    continue
                raise TypeError("backward of a value that is not a tensor but %s" % type(v).__name__)
            if auto and not v.requires_grad:
                continue
            values.append(v)
            n = v.numel() * (2 if v.is_complex() else 1)
            if offset is None:
                cotangents.append(torch.ones_like(v))
            elif n > length:
                need = max(need, n)
            else:
                cotangents.append(cotangent(self.memory, v, offset, n))
        return values, cotangents, need

    def parameters(self):
        """Returns the parameters of each module, in the order of the constructing calls."""
        for entry in self.reply.get("modules", ()):
            yield entry, [(name, p) for name, p in self.modules[entry["call"]].named_parameters() if not is_lazy(p)]

    def twice(self, values, cotangents):
        """Differentiates, and then the gradients of the inputs, each times its cotangent."""
        wanted = list(self.leaves)
        for _, named in self.parameters():
            wanted += [p for _, p in named if p.requires_grad and all(p is not w for w in wanted)]
        if not wanted:
            differentiate(values, cotangents)
            return
        grads = torch.autograd.grad(values, wanted, cotangents, create_graph=True, allow_unused=True)
        for x, g in zip(wanted, grads):
            x.grad = None if g is None else g.detach()
        firsts, seconds = [], []
        for x, g, offset in zip(self.leaves, grads, self.case["second"]):
            if g is not None and g.requires_grad:
                firsts.append(g)
                n = g.numel() * (2 if g.is_complex() else 1)
                seconds.append(cotangent(self.memory, g, offset, n))
        found = [None] * len(wanted)
        if firsts:
            found = torch.autograd.grad(firsts, wanted, seconds, allow_unused=True)
        self.found = dict(zip(map(id, wanted), found))

    def gradients(self):
        memory = self.memory
        self.reply["grads"] = [None if x.grad is None else store(memory, x.grad) for x in self.leaves]
        for entry in self.reply.get("modules", ()):
            named = self.modules[entry["call"]].named_parameters()
            entry["grads"] = store_state(memory, ((name, p.grad) for name, p in named if not is_lazy(p)))
        if self.case.get("leaves"):
            self.reply["made"] = self.made()
        if self.found is not None:
            self.reply["grads2"] = [self.second(x) for x in self.leaves]
            for entry, named in self.parameters():
                entry["grads2"] = [(name, self.second(p)) for name, p in named]

    def step(self):
        """Takes one step of SGD and stores the parameters after it."""
        rate, momentum = self.case["sgd"]
        unique = {}
        for entry, named in self.parameters():
            unique.update((id(p), p) for _, p in named if p.requires_grad)
        if unique:
            torch.optim.SGD(list(unique.values()), lr=rate, momentum=momentum).step()
        for entry, named in self.parameters():
            entry["stepped"] = store_state(self.memory, named)

    def second(self, x):
        g = self.found.get(id(x))
        return None if g is None else store(self.memory, g.detach())

    def made(self):
        """Returns the gradients of the leaves that calls made, under their first name."""
        seen = {id(x) for x in self.leaves}
        for module in self.modules.values():
            seen.update(id(p) for p in module.parameters())
        made = []
        for i, v in enumerate(self.env):
            if isinstance(v, Tensor) and v.is_leaf and v.requires_grad and id(v) not in seen:
                seen.add(id(v))
                if v.grad is not None:
                    made.append((i, store(self.memory, v.grad)))
        return made

    def run(self):
        self.inputs()
        self.forward()
        self.finals()
        if self.case.get("backward"):
            need = self.backward()
            if need:
                return {"status": "need", "need": need}
        if self.case.get("measure"):
            self.reply["measured"] = self.measured(*self.case["measure"])
        if not self.case.get("leaves"):
            self.env[len(self.case["inputs"]):] = ()
        self.finish_values()
        if self.case.get("grads"):
            self.gradients()
        if self.case.get("sgd"):
            self.step()
        return self.reply

    def measured(self, times, backward):
        """Makes the last call again, with its gradients where asked, after once that
        does not count; returns the nanoseconds."""
        call, wanted = self.case["calls"][-1], []

        def given(a):
            a = decode(a, self.env)
            return fresh(a, wanted) if backward else a

        f = targets[call[0]]
        args = [given(a) for a in call[1]]
        kwargs = {name: given(a) for name, a in call[2].items()} if len(call) > 2 else {}
        with contextlib.ExitStack() as stack:
            for scope in call[3] if len(call) > 3 else ():
                stack.enter_context(context(scope, self.env))
            cotangents = [torch.ones_like(x) for x in results(f(*args, **kwargs))] if backward else ()
            if backward and not cotangents:
                return -1
            finish_device()
            t = now()
            for _ in range(times):
                v = f(*args, **kwargs)
                if backward:
                    torch.autograd.grad(results(v), wanted, cotangents, allow_unused=True)
            finish_device()
            return now() - t

    def failed(self, e):
        self.finish_values()
        reply = self.reply
        reply["status"] = status(e)
        reply["class"] = type(e).__name__
        reply["message"] = str(e)[:MESSAGE]
        reply["call"] = self.call
        return reply


def fresh(a, wanted):
    """Returns an argument whose float tensors are leaves, which it adds to `wanted`
    as it does parameters of modules."""
    if isinstance(a, (list, tuple)):
        return type(a)([fresh(x, wanted) for x in a])
    if isinstance(a, Module):
        wanted.extend(p for p in a.parameters() if p.requires_grad)
    if isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex()):
        a = a.detach().requires_grad_()
        wanted.append(a)
    return a


def results(v):
    """Lists the tensors of a result that can be differentiated."""
    if isinstance(v, Tensor):
        return [v] if v.requires_grad else []
    if isinstance(v, (list, tuple)):
        return [x for e in v for x in results(e)]
    return []


def finish_device():
    synchronize = getattr(getattr(torch, DEVICE.type, None), "synchronize", None)
    if synchronize and not ON_CPU:
        synchronize()


def cotangent(memory, v, offset, n):
    if not n:
        return torch.zeros_like(v)
    c = frombuffer(memory.bytes, dtype=torch.float64, count=n, offset=offset)
    if v.is_complex():
        c = torch.view_as_complex(c.view(-1, 2))
    return c.to(dtype=v.dtype, device=v.device, copy=True).view(v.shape)


def lacks(e):
    """Tells whether an exception says that a device has no kernel, or no elements."""
    return isinstance(e, NotImplementedError) or isinstance(e, RuntimeError) and ("Could not run '" in str(e) or META and "meta tensor" in str(e))


def status(e):
    if isinstance(e, Unknown) or not ON_CPU and lacks(e):
        return "unsupported"
    if isinstance(e, MemoryError) or type(e).__name__ == "OutOfMemoryError":
        return "oom"
    if isinstance(e, RuntimeError):
        text = str(e)
        if "DefaultCPUAllocator" in text and "memory" in text or "out of memory" in text:
            return "oom"
    return "raised"
