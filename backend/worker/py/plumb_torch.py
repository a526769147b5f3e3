"""PyTorch, whose API is what names mean: the adapter of the reference, and its runs
in the mode eager. What the kit does by numpy and by adapters is done at once here.
"""

import ctypes
import functools
import importlib
import os
import re

import plumb_measure
import plumb_subject
import plumb_targets
import torch
from plumb_names import DTYPES, Refusal, Unsupported
from torch.autograd import backward as differentiate
from torch.nn import Module, Parameter
from torch.nn.parameter import is_lazy

Tensor = torch.Tensor
PLAIN = (Tensor, Parameter)  # the classes of most tensors
strided = torch.strided
frombuffer = torch.frombuffer
memmove = ctypes.memmove
seed_default = torch.default_generator.manual_seed


def own_device(name, imports):
    """Returns the device where tensors live, which a module may have brought."""
    for module in imports:
        try:
            importlib.import_module(module)
        except Exception as e:
            raise Refusal("--import %s: %s: %s; this Python has to have it" % (module, type(e).__name__, e)) from None
    try:
        device = torch.device(name)
        t = torch.zeros(1, device=device)
        if not t.is_meta:
            t.cpu()
    except Exception as e:
        why = re.split(r"\n|\. (?=[A-Z])", str(e))[0]
        kind = name.partition(":")[0]
        known = why.partition("Expected one of ")[2].partition(" device type")[0].split(", ")
        if known[0] and kind not in known:
            why = "PyTorch knows no such name; of a plugin it is known once its module is imported, by --import"
        elif hasattr(torch, kind) and hasattr(getattr(torch, kind), "is_available"):
            why += "; torch.%s.is_available() is %s" % (kind, getattr(torch, kind).is_available())
        raise Refusal("torch %s has no device %s here: %s" % (torch.__version__, name, why)) from None
    return device


DEVICE = own_device(os.environ.get("PLUMB_WORKER_DEVICE") or "cpu", [m for m in os.environ.get("PLUMB_WORKER_IMPORT", "").split(",") if m])
ON_CPU = DEVICE.type == "cpu"
META = DEVICE.type == "meta"  # tensors have no elements there
if not ON_CPU and hasattr(torch, "set_default_device"):
    torch.set_default_device(DEVICE)  # what a program makes and says no device of, beside its inputs

OF_NAME = {name: getattr(torch, name) for name in DTYPES}
NAME_OF = {dtype: name for name, dtype in OF_NAME.items()}
FORMATS = {name: getattr(torch, name) for name in ("contiguous_format", "channels_last", "preserve_format")}
WORDS = (torch.dtype, torch.device, torch.layout, torch.memory_format)  # the classes of values that their text stands for


class Torch(plumb_subject.Adapter):
    name, version = "torch", torch.__version__
    root, tensor_class, module_class = torch, Tensor, Module
    tensor_classes = PLAIN
    table = None
    watches = True
    scopes = (
        "torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.autograd.no_grad", "torch.autograd.enable_grad",
        "torch.autocast", "torch.cpu.amp.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast",
    )

    def seed(self, n):
        if ON_CPU:
            seed_default(int(n))
        else:
            torch.manual_seed(n)

    def dtype(self, name):
        dtype = OF_NAME.get(name)
        if dtype is None:
            raise Unsupported("no dtype %s" % name)
        return dtype

    memory_format = staticmethod(FORMATS.__getitem__)
    device = staticmethod(torch.device)

    def word(self, v):
        return str(v) if isinstance(v, WORDS) else "grad_fn" if hasattr(v, "next_functions") else None

    def member(self, path):
        return plumb_targets.member(torch, path, "torch." + path)

    def method(self, name):
        try:
            return super().method(name)
        except Unsupported as e:
            raise Unsupported("%s%s" % (e, plumb_targets.guess(name, dir(torch.Tensor)))) from None

    def elsewhere(self, target):
        root, _, path = target.partition(".")
        if root != "torchvision":
            return super().elsewhere(target)
        try:
            import torchvision.ops
        except ImportError:
            raise Unsupported("no callable %s: there is no torchvision" % target) from None
        return plumb_targets.member(torchvision, path, target)

    def construct(self, dtype, f, *args, **kwargs):
        before = torch.get_default_dtype()
        torch.set_default_dtype(OF_NAME[dtype])
        try:
            return f(*args, **kwargs)
        finally:
            torch.set_default_dtype(before)

    def state(self, module):
        for name, t in module.state_dict(keep_vars=True).items():
            if t is None or type(t) in PLAIN or isinstance(t, Tensor) and not is_lazy(t):
                yield name, t

    def parameters(self, module):
        return [(name, p) for name, p in module.named_parameters() if not is_lazy(p)]

    def gap(self, e):
        return isinstance(e, Unsupported) or not ON_CPU and lacks(e)

    def exhausted(self, e):
        if isinstance(e, MemoryError) or type(e).__name__ == "OutOfMemoryError":
            return True
        text = str(e) if isinstance(e, RuntimeError) else ""
        return "DefaultCPUAllocator" in text and "memory" in text or "out of memory" in text


def lacks(e):
    """Tells whether an exception says that a device has no kernel, or no elements."""
    return isinstance(e, NotImplementedError) or isinstance(e, RuntimeError) and ("Could not run '" in str(e) or META and "meta tensor" in str(e))


adapter = Torch()
decode = adapter.decode
targets = plumb_targets.Targets(adapter)


# Tensors.

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


# Cases.

# Functions that change arguments without counting it.
SILENT = {torch.batch_norm, torch.instance_norm, torch.nn.functional.batch_norm, torch.nn.functional.instance_norm}


def version(v):
    """Returns how often a tensor was changed in place; None for other values."""
    return v._version if isinstance(v, Tensor) else None


def memory_of(t):
    """Names the memory of a tensor, which its views share."""
    if t.layout is not strided or t.is_meta:
        return id(t)
    return (t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()).data_ptr() or id(t)


class Run(plumb_subject.Run):
    """One case: tensors are views of shared memory, what calls change is told by
    version counters."""

    late = True

    def inputs(self):
        super().inputs()
        self.versions = [version(x) for x in self.env]

    def load(self, entry, requires_grad=False):
        name, offset, shape, strides = entry[:4]
        t = view(self.memory, OF_NAME.get(name) or adapter.dtype(name), offset, shape, strides)
        if not ON_CPU:
            t = t.to(DEVICE)
        return t.requires_grad_() if requires_grad else t

    def store(self, t):
        """Copies t with the gaps of its strides into shared memory."""
        name = NAME_OF.get(t.dtype)
        if name is None or t.layout is not strided or not t.is_cpu or t.is_neg() or t.is_conj():
            kind = "torch.Tensor(%s, %s, %s, %s)" % (list(t.shape), t.dtype, t.layout, t.device.type)
            if name is None or t.layout is not strided or t.is_meta and not META:
                return ["x", kind]
            if META:
                # One element stands for all.
                at = self.memory.reserve(t.element_size())
                ctypes.memset(self.memory.base + at, 0, t.element_size())
                return ["t", name, at, t.shape, [0] * t.dim(), t.requires_grad]
            grad = t.requires_grad
            t = t.detach().cpu().resolve_conj().resolve_neg().requires_grad_(grad)
        memory, strides = self.memory, None
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
                return self.store(torch.zeros(t.shape, dtype=t.dtype).requires_grad_(t.requires_grad))
            if not start:
                return ["x", "torch.Tensor(%s, %s) without storage" % (list(t.shape), t.dtype)]
            n *= t.element_size()
            offset = memory.reserve(n)
            memmove(memory.base + offset, start, n)
        return ["t", name, offset, t.shape, strides, t.requires_grad]

    def prepared(self, call):
        f, env = targets[call[0]], self.env
        args = [decode(a, env) for a in call[1]]
        if isinstance(f, type) and self.case.get("dtype"):
            f = functools.partial(adapter.construct, self.case["dtype"], f)
        return f, args, {name: decode(a, env) for name, a in call[2].items()} if len(call) > 2 else {}

    # What calls change.

    def kept(self, call, f, args):
        noticed = self.unnoticed(f, args)
        return [(k, x.detach().clone()) for k, x in noticed] if noticed else noticed

    def unnoticed(self, f, args):
        """Lists the values that a call may change without its arguments telling:
        norms do not count it, and a module may change its buffers, and what is
        a view of one."""
        if f in SILENT:
            return [(k, x) for k, x in enumerate(self.env) if isinstance(x, Tensor)]
        if not args or not isinstance(args[0], Module):
            return ()
        buffers = set(map(memory_of, args[0].buffers()))
        return [(k, x) for k, x in enumerate(self.env) if isinstance(x, Tensor) and memory_of(x) in buffers] if buffers else ()

    def changed(self, i, call, kept, v):
        if self.bumped(call[1]) or len(call) > 2 and self.bumped(call[2].values()):
            for k, old in enumerate(self.versions):
                new = version(self.env[k])
                if new != old:
                    self.versions[k] = new
                    self.changes.append((i, k, self.store(self.env[k])))
        for k, x in kept:
            told = any(c[:2] == (i, k) for c in self.changes)
            if not told and not torch.equal(x, self.env[k].detach()):
                self.changes.append((i, k, self.store(self.env[k])))
            self.versions[k] = version(self.env[k])
        self.versions.append(version(v))

    def bumped(self, arguments):
        """Tells whether the version of a tensor among the arguments is another one."""
        for a in arguments:
            if type(a) is list:
                if a[0] == "r":
                    if version(self.env[a[1]]) != self.versions[a[1]]:
                        return True
                elif (a[0] == "u" or a[0] == "l") and self.bumped(a[1]):
                    return True
        return False

    def fill(self, i, module):
        if not ON_CPU:
            module.to(DEVICE)
        state = (self.case.get("state") or {}).get(str(i))
        if state:
            held = {id(t) for m in self.modules.values() for t in m.state_dict(keep_vars=True).values()}
            held = {name for name, t in module.state_dict(keep_vars=True).items() if id(t) in held}  # calls may have used them
            module.load_state_dict({name: self.load(t) for name, t in state.items() if name not in held}, strict=not held)

    # Gradients.

    def requires(self, index):
        return self.env[index].requires_grad

    def differentiated(self):
        given = OF_NAME.get(self.case.get("cotangents"))
        for index, offset, length, auto in self.case["backward"] if given else ():
            v = self.env[index]
            if isinstance(v, Tensor) and v.requires_grad and v.dtype is not given and offset is not None:
                return [], [], length + 1  # the host sends float64 then
        return super().differentiated()

    def differentiate(self, indices, cotangents):
        if "second" in self.case:
            return super().differentiate(indices, cotangents)
        differentiate([self.env[i] for i in indices], cotangents)

    def size(self, v):
        return v.numel() * (2 if v.is_complex() else 1)

    def cotangent(self, v, offset, n):
        if offset is None:
            return torch.ones_like(v)
        if not n:
            return torch.zeros_like(v)
        c = frombuffer(self.memory.bytes, dtype=OF_NAME[self.case.get("cotangents", "float64")], count=n, offset=offset)
        if v.is_complex():
            c = torch.view_as_complex(c.view(-1, 2))
        return c.to(dtype=v.dtype, device=v.device, copy=True).view(v.shape)

    def received(self, wanted, grads):
        for x, g in zip(wanted, grads):
            x.grad = None if g is None else g.detach()

    def gradient(self, x):
        return x.grad

    def step(self):
        """Takes one step of SGD and stores the parameters after it."""
        rate, momentum = self.case["sgd"]
        unique = {}
        for entry, named in self.parameters():
            unique.update((id(p), p) for _, p in named if p.requires_grad)
        if unique:
            torch.optim.SGD(list(unique.values()), lr=rate, momentum=momentum).step()
        for entry, named in self.parameters():
            entry["stepped"] = self.state(named)

    def measured(self, times, backward):
        return plumb_measure.measured(self, times, backward, None if ON_CPU else getattr(torch, DEVICE.type, None))
