"""PyTorch's own sample inputs (op_db of torch.testing) as texts of programs."""

import functools
import importlib.util
import json
import sys
import types
import unittest
import zlib

import torch
from plumb_names import DTYPES, is_open
from torch.overrides import resolve_name

LARGEST = 1 << 14  # elements of a sample's tensors
DTYPE_NAMES = {getattr(torch, name): "torch." + name for name in DTYPES}
FORMATS = {getattr(torch, name): "torch." + name for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")}
REFLECTED = {"__r%s__" % name: "operator." + to for name, to in (
    ("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "truediv"), ("matmul", "matmul"), ("mod", "mod"),
    ("pow", "pow"), ("and", "and_"), ("or", "or_"), ("xor", "xor"))}
OPEN = ("getattr", "operator.getitem")
PUBLIC = {"Tensor.__getitem__": "operator.getitem"}


class Left(Exception):
    """Why a sample is no program."""


def complete():
    """Tells whether the package is here that op_db imports: its tests, not its samples, need it."""
    return importlib.util.find_spec("expecttest") is not None


@functools.lru_cache(None)
def entries():
    if not complete():
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase, stand_in.ACCEPT = unittest.TestCase, False
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def names(entry):
    return ".".join(n for n in (entry.name, entry.variant_test_name) if n)


def listed():
    """Returns for each entry its name, its dtypes, and whether it has calls to refuse."""
    return [[names(e), [DTYPE_NAMES[d][6:] for d in sorted(e.supported_dtypes("cpu"), key=str) if d in DTYPE_NAMES],
             getattr(e, "error_inputs_func", None) is not None] for e in entries()]


def cases(index, dtype, seed):
    """Returns the programs of an entry's samples, and for each reason how many are none.
    Without a dtype they are the calls that PyTorch has to refuse."""
    entry = entries()[index]
    torch.manual_seed(seed)
    texts, left = [], {}
    for i, (sample, legal) in enumerate(drawn(entry, dtype)):
        try:
            texts.append(Text("opinfo::%s[%s]" % (names(entry), dtype or "illegal"), seed + i).of(entry, sample, legal))
        except Left as e:
            left[str(e)] = left.get(str(e), 0) + 1
    return {"cases": texts, "left": left}


def drawn(entry, dtype):
    if dtype is None:
        for e in entry.error_inputs("cpu"):
            yield e.sample_input, False
        return
    d = getattr(torch, dtype)
    grad = d in entry.supported_backward_dtypes("cpu") and entry.supports_autograd and not skipped(entry, d)
    for sample in entry.sample_inputs("cpu", d, requires_grad=grad):
        yield sample, True


def skipped(entry, dtype):
    """Tells whether PyTorch's own test of an entry's gradient is skipped or expected to fail."""
    return any(s.test_name == "test_fn_grad" and (not s.dtypes or dtype in s.dtypes) and s.device_type in (None, "cpu") and s.active_if
               for s in getattr(entry, "decorators", ()) if hasattr(s, "test_name"))


class Calls(torch.overrides.TorchFunctionMode):
    """Writes the calls of PyTorch's that are made, each before it changes its arguments."""

    def __init__(self, text):
        super().__init__()
        self.text = text

    def __torch_function__(self, f, types, args=(), kwargs=None):
        if getattr(f, "__name__", "") == "__get__":
            result = f(*args, **(kwargs or {}))
            if not isinstance(result, torch.Tensor):
                return result  # a dtype or size, which stands in the program where it is used
            self.text.add(self.text.called(f, args, kwargs or {}), result)
            return result
        line = self.text.called(f, args, kwargs or {})
        result = f(*args, **(kwargs or {}))
        self.text.add(line, result)
        return result


class Text:
    """Writes a program (docs/programs.md)."""

    def __init__(self, name, seed):
        self.head = "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(%s, seed=%d)\n" % (json.dumps(name), seed)
        self.inputs, self.lines, self.elements, self.seed = [], [], 0, seed
        self.known = {}  # tensors and their names, by identity: a recurrence has ten thousands

    def of(self, entry, sample, legal):
        given = (sample.input, *sample.args)
        if not legal:
            self.lines.append("y = %s\n" % self.public(entry, given, sample.kwargs))
        elif self.same(entry):
            line = self.public(entry, given, sample.kwargs)
            self.add(line, entry.op(*given, **sample.kwargs))
        else:
            with Calls(self):
                entry.op(*given, **sample.kwargs)
        if not self.lines:
            raise Left("not a public function")
        return self.head + "".join(self.inputs + self.lines) + (self.backward() if legal else "")

    def add(self, line, result):
        """Writes a call and names its results."""
        name = "y%s" % (len(self.lines) or "")
        self.lines.append("%s = %s\n" % (name, line))
        self.named(name, result)
        self.last = (name, result)

    def named(self, name, result):
        """Gives a tensor a name, which it may have had before it was changed in place."""
        if isinstance(result, torch.Tensor):
            self.known[id(result)] = result, name

    def same(self, entry):
        """Tells whether an entry is the public function of its name."""
        f = functools.reduce(lambda f, part: getattr(f, part, None), entry.name.split("."), torch)
        return f is not None and f is entry.op or entry.name in REFLECTED

    def public(self, entry, args, kwargs):
        if entry.name in REFLECTED:
            if not any(isinstance(a, torch.Tensor) for a in args):
                raise Left("an operator of Python's numbers")
            return self.call(REFLECTED[entry.name], args[::-1], kwargs)
        if not self.same(entry):
            raise Left("not a public function")
        return self.call("torch." + entry.name, args, kwargs)

    def called(self, f, args, kwargs):
        target = (resolve_name(f) or "").replace("torch.Tensor.", "Tensor.")
        if target.endswith(".__get__"):
            return self.call("getattr", (args[0], target.split(".")[1]), {})
        return self.call(PUBLIC.get(target, target), args, kwargs)

    def call(self, target, args, kwargs):
        if target not in OPEN and not target.startswith("operator.") and not is_open(target) and not self.method(target):
            raise Left("%s is not open to programs" % (target or "an internal function"))
        parts = [self.argument(a) for a in args]
        named = ["%s=%s" % (k, self.argument(v)) for k, v in kwargs.items()]
        if target == "getattr":
            return "%s.%s" % (parts[0], args[1])
        if target.startswith("Tensor."):
            return "%s.%s(%s)" % (parts[0], target[len("Tensor."):], ", ".join(parts[1:] + named))
        return "%s(%s)" % (target, ", ".join(parts + named))

    def method(self, target):
        return target.startswith("Tensor.") and not target[7:].startswith("_")

    def backward(self):
        """Returns the lines that differentiate the last call's results."""
        name, result = self.last
        if isinstance(result, torch.Tensor):
            return self.differentiated(name, result)
        taken, back = "", ""
        for i, r in enumerate(result if isinstance(result, (tuple, list)) else ()):
            if isinstance(r, torch.Tensor) and r.requires_grad:
                taken += "z%d = %s[%d]\n" % (i, name, i)
                back += self.differentiated("z%d" % i, r)
        return taken + back

    def differentiated(self, name, t):
        if not t.requires_grad:
            return ""
        return "%s.backward(uniform(-1.0, 1.0, key=%d), auto=True)\n" % (name, zlib.crc32(("%d %s" % (self.seed, name)).encode()))

    # Arguments.

    def argument(self, v):
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if v is None or v is Ellipsis or isinstance(v, bool):
            return "..." if v is Ellipsis else str(v)
        if isinstance(v, int):
            if not -1 << 63 <= v < 1 << 63:
                raise Left("an integer of more than 64 bits")
            return str(int(v))
        if isinstance(v, float):
            return number(float(v))
        if isinstance(v, complex):
            return "complex(%s, %s)" % (number(v.real), number(v.imag))
        if isinstance(v, str):
            return json.dumps(v)
        if isinstance(v, torch.device) and v.type == "cpu":
            return '"cpu"'
        if isinstance(v, torch.dtype) and v in DTYPE_NAMES:
            return DTYPE_NAMES[v]
        if isinstance(v, torch.memory_format):
            return FORMATS[v]
        if isinstance(v, list):
            return "[%s]" % ", ".join(map(self.argument, v))
        if isinstance(v, tuple):
            return "(%s%s)" % (", ".join(map(self.argument, v)), "," if len(v) == 1 else "")
        if isinstance(v, slice):
            return "slice(%s)" % ", ".join(map(self.argument, (v.start, v.stop, v.step)))
        raise Left("an argument of type %s" % type(v).__name__)

    def tensor(self, t):
        if id(t) in self.known:
            return self.known[id(t)][1]
        if t.layout != torch.strided or t.dtype not in DTYPE_NAMES or t.is_quantized or t.device.type != "cpu":
            raise Left("a tensor of %s, %s" % (t.layout, t.dtype))
        self.elements += t.numel()
        if self.elements > LARGEST:
            raise Left("more than %d elements" % LARGEST)
        strides = ""
        if t.numel() and not t.is_contiguous() and all(s > 0 or d == 1 for s, d in zip(t.stride(), t.shape)):
            strides = ", strides=%s" % self.argument(tuple(t.stride()))
        flat = t.detach().resolve_conj().resolve_neg().reshape(-1).tolist()
        values = ", ".join(number(v) if isinstance(v, float) else self.argument(v) for v in flat)
        grad = ", requires_grad=True" if t.requires_grad and t.is_leaf else ""
        name = "x%d" % len(self.inputs)
        self.known[id(t)] = t, name
        self.inputs.append("%s = tensor(%s, %s, [%s]%s%s)\n" % (name, self.argument(tuple(t.shape)), DTYPE_NAMES[t.dtype], values, strides, grad))
        return name


def number(v):
    return repr(v) if v - v == 0 else 'float("%s")' % repr(v)
