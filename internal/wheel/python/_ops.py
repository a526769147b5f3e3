"""Operators on numpy's arrays and on those that speak DLPack."""

import ctypes
import sys

import numpy
from numpy import empty, ndarray

from . import _library
from ._library import Unaligned, lib

_most = 4096  # plans that an operator keeps
_dtypes = {
    numpy.dtype(name): name
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
}


def _dtype(name):
    """Returns numpy's dtype of a name."""
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError("numpy has no bfloat16: install ml_dtypes, or give tensors of PyTorch") from None
        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(name)


def _name(dtype):
    name = _dtypes.get(dtype)
    if name is None and dtype.name == "bfloat16":
        return "bfloat16"
    if name is None:
        raise TypeError(f"arrays of numpy's dtype {dtype} have no dtype of Plumb's; it has {', '.join(_dtypes.values())}")
    return name


def _as_array(x):
    """Returns an array as the library takes it, a copy where it has to be one."""
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    size = x.itemsize
    if any(s < 0 or s % size for s in x.strides) or not x.flags.aligned:
        x = x.copy("C")
    return x


class _Result:
    """A result in memory of the library's, or of the input that it views."""

    def __init__(self, managed, base):
        t = managed.contents.tensor
        self.managed, self.base, self.ndim = managed, base, t.ndim
        kind = {0: "i", 1: "u", 2: "f", 4: "u", 5: "c", 6: "b"}[t.code]
        size = t.bits // 8
        self.brain = t.code == 4
        self.__array_interface__ = {
            "version": 3, "typestr": f"{'|' if size == 1 else '<'}{kind}{size}", "data": (t.data or 0, False),
            "shape": tuple(t.shape[: t.ndim]), "strides": tuple(s * size for s in t.strides[: t.ndim]),
        }

    def array(self):
        if 0 in self.__array_interface__["shape"]:
            x = empty(self.__array_interface__["shape"], self.__array_interface__["typestr"])
        else:
            x = numpy.asarray(self)
        return x.view(_dtype("bfloat16")) if self.brain else x

    def __del__(self):
        lib.delete(self.managed)


class Plan:
    """A call bound for arrays of known layouts."""

    def __init__(self, call):
        d = _library.prepare(call)
        self.load = lib.loads
        self.handle, self.new, self.mutates = d["plan"], d.get("new", False), d.get("mutates", ())
        self.dense = None  # whether the result is contiguous, once that was asked
        self.many, self.plain = d.get("many", False), d.get("plain", False)
        self.results = [(tuple(r["shape"]), r["dtype"], tuple(r["strides"])) for r in d["results"]]

    def __del__(self):
        if hasattr(self, "handle") and lib is not None and lib.loads == self.load:
            lib.forget(self.handle)

    def allocate(self):
        out = []
        for shape, name, strides in self.results:
            dtype = _dtype(name)
            x = empty(shape, dtype)
            strides = tuple(s * dtype.itemsize for s in strides)
            if x.size and any(n > 1 and s != t for n, s, t in zip(shape, x.strides, strides)):
                extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) // dtype.itemsize
                x = ndarray(shape, dtype, empty(extent, dtype), 0, strides)
            out.append(x)
        return out

    def run(self, arrays):
        for i in self.mutates:
            if not arrays[i].flags.writeable:
                raise ValueError("the operator changes an array that is read-only")
        data = [x.ctypes.data for x in arrays]
        if self.new:
            made, shares = _library.run_new(self.handle, data)
            out = [_Result(m, arrays[i] if i >= 0 else None).array() for m, i in zip(made, shares)]
        else:
            out = self.allocate()
            _library.run(self.handle, data, [x.ctypes.data for x in out])
        if self.plain:
            return out[0].item()
        return out[0] if len(out) == 1 and not self.many else list(out) if self.many else tuple(out)


def _verified():
    """Reports whether the library reads arrays of numpy as numpy says that they are."""
    if sys.implementation.name != "cpython":
        return False
    for x in [numpy.zeros(3, "f4"), numpy.zeros((4, 5))[1:, 2:], numpy.zeros(()), numpy.zeros((2, 3), "c16")[::-1]]:
        out = (ctypes.c_int64 * 16)()
        lib.numpy_layout(x, out)
        if list(out[: 3 + 2 * x.ndim]) != [x.ctypes.data, id(x.dtype), x.ndim, *x.shape, *x.strides]:
            return False
    return True


class _Usual:
    """The last call of an operator on one or two arrays, as the library remembers it.

    What a call that is like it costs is what is looked up on the way.
    """

    def __init__(self, plan, arrays):
        self.load, self.plan = lib.loads, plan
        self.shape, self.dtype = plan.results[0][0], _dtype(plan.results[0][1])
        self.memory = lib.numpy_remember(plan.handle, arrays[0], arrays[-1])

    def __del__(self):
        if lib is not None and lib.loads == self.load:
            lib.numpy_forget(self.memory)


class _Call:
    """The arguments of a call: its arrays, and a key of all that its plan depends on."""

    def __init__(self):
        self.arrays, self.kind = [], None

    def key(self, v):
        t = type(v)
        if t is ndarray:
            return self.array(v)
        if t is float:
            return float, v.hex()  # -0.0 is another than 0.0
        if t is complex:
            return complex, v.real.hex(), v.imag.hex()
        if t in (int, bool, str) or v is None:
            return t, v
        if t in (list, tuple):
            return (list, *[self.key(e) for e in v])
        if t is slice:
            return slice, v.start, v.stop, v.step
        if isinstance(v, ndarray):
            return self.array(v)
        if isinstance(v, numpy.generic):
            return self.key(v.item())
        if hasattr(v, "__dlpack__"):
            self.kind = self.kind or v
            return self.array(numpy.from_dlpack(v))
        if t is type or isinstance(v, numpy.dtype):
            return numpy.dtype, numpy.dtype(v)
        if v is Ellipsis:
            return Ellipsis,
        raise TypeError(f"an argument is a {t.__module__}.{t.__qualname__}: want arrays, numbers, text, dtypes or lists of them")

    def array(self, x):
        y = _as_array(x)
        self.copied = getattr(self, "copied", False) or y is not x
        self.arrays.append(y)
        return ndarray, y.dtype, y.shape, y.strides


def _written(key):
    """Returns the argument of a key as the library reads it."""
    kind, *of = key
    if kind is ndarray:
        dtype, shape, strides = of
        return {"tensor": [_name(dtype), shape, [s // dtype.itemsize for s in strides]]}
    if kind is list:
        return [_written(k) for k in of]
    if kind is float:
        return {"float": of[0]}
    if kind is complex:
        return {"complex": of}
    if kind is slice:
        return {"slice": of}
    if kind is numpy.dtype:
        return {"dtype": _name(of[0])}
    if kind is Ellipsis:
        return {"ellipsis": True}
    return of[0]


class Operator:
    """A function of the library's."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name
        described = _library.describe(name)
        self.__doc__ = "\n\n".join("\n".join([*d["signatures"], "", d["doc"]]) for d in described)
        self._plans, self._usual = {}, {}
        _library.caches.add(self)

    def forget(self):
        self._plans.clear()
        self._usual.clear()

    def __repr__(self):
        return f"<operator {self.__name__}>"

    def __call__(self, *args, **kwargs):
        usual = self._usual.get(len(args))
        if usual is not None and not kwargs:
            out = empty(usual.shape, usual.dtype)
            if len(args) == 1:
                (x,) = args
                fault = lib.numpy_1(usual.memory, x, out) if type(x) is ndarray else lib.other
            else:
                x, y = args
                fault = lib.numpy_2(usual.memory, x, y, out) if type(x) is type(y) is ndarray else lib.other
            if fault is None:
                return out
            if fault != lib.other:
                try:
                    _library.read(fault)
                except Unaligned:
                    pass
        return self._any(args, kwargs)

    def _any(self, args, kwargs):
        if "torch" in sys.modules and _has_torch((args, tuple(kwargs.values()))):
            from . import torch

            return getattr(torch.ops, self.__name__)(*args, **kwargs)
        call = _Call()
        key = tuple(call.key(a) for a in args), tuple((k, call.key(v)) for k, v in kwargs.items())
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(key)
        self._remember(plan, args, kwargs, call.arrays)
        if plan.mutates and getattr(call, "copied", False):
            raise ValueError(f"{self.__name__} changes an array whose layout would have to be copied first")
        out = plan.run(call.arrays)
        if call.kind is None:
            return out
        namespace = call.kind.__array_namespace__() if hasattr(call.kind, "__array_namespace__") else None
        if namespace is None:
            return out
        return type(out)(map(namespace.from_dlpack, out)) if isinstance(out, (list, tuple)) else namespace.from_dlpack(out)

    def _plan(self, key):
        if len(self._plans) >= _most:
            self.forget()
        args, kwargs = key
        plan = Plan({"name": self.__name__, "args": [_written(k) for k in args], "kwargs": [[n, _written(k)] for n, k in kwargs]})
        self._plans[key] = plan
        return plan

    def _remember(self, plan, args, kwargs, arrays):
        """Notes a call that the next ones may be like."""
        if not _direct or kwargs or plan.new or plan.plain or plan.many or plan.mutates or len(plan.results) != 1:
            return
        if 1 <= len(args) <= 2 and len(args) == len(arrays) and all(a is b and a.ndim <= 8 for a, b in zip(args, arrays)):
            if plan.dense is None:
                plan.dense = plan.allocate()[0].flags.c_contiguous
            if plan.dense:
                self._usual[len(args)] = _Usual(plan, args)


def _has_torch(values):
    torch = sys.modules["torch"]
    tensor = getattr(torch, "Tensor", None)
    return tensor is not None and any(
        isinstance(v, tensor) or isinstance(v, (list, tuple)) and _has_torch(v) for v in values
    )


_direct = _verified()


def names():
    """Returns the names of the operators."""
    return _library.read(lib.operators())


class Operators:
    """The operators by name, such as ops.relu; also by their names within torch.nn.functional."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        operator = Operator(name)
        setattr(self, name, operator)
        return operator

    def __dir__(self):
        return names()
