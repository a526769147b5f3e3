"""The shared library, its errors, and what its functions take."""

import builtins
import ctypes
import json
import os
import weakref


class Error(Exception):
    """A call that an operator does not accept, or that failed.

    op is the operator's id, argument the parameter to blame; "" where none alone is.
    """

    op = ""
    argument = ""


class Unaligned(Error):
    """An address is not a multiple of the elements' size."""


_classes = {"Unaligned": Unaligned}


def _class(name):
    """Returns the exception that is both an Error and Python's own of that name."""
    if name not in _classes:
        base = getattr(builtins, name, RuntimeError)
        if not (isinstance(base, type) and issubclass(base, Exception)):
            base = RuntimeError
        _classes[name] = type(name, (Error, base), {"__module__": __package__})
    return _classes[name]


def error(fault):
    """Returns the exception of a fault that the library tells of."""
    e = _class(fault["class"])(fault["message"])
    e.op, e.argument = fault["op"], fault["argument"]
    return e


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


Managed = ctypes.POINTER(DLManagedTensor)
_text, _plan, _addresses, _count = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int)
_functions = {
    "prepare": (_text, ctypes.c_char_p, ctypes.c_size_t),
    "run": (_text, _plan, _addresses, ctypes.c_int, _addresses, ctypes.c_int),
    "run_new": (_text, _plan, _addresses, ctypes.c_int, ctypes.POINTER(Managed), _count, ctypes.c_int, _count),
    "forget": (None, _plan),
    "seed": (None, ctypes.c_uint64),
    "operators": (_text,),
    "describe": (_text, ctypes.c_char_p),
    "delete": (None, Managed),
    "free": (None, _text),
    "numpy_layout": (None, ctypes.py_object, ctypes.POINTER(ctypes.c_int64)),
    "numpy_other": (ctypes.c_void_p,),
    "numpy_remember": (ctypes.c_void_p, _plan, ctypes.py_object, ctypes.py_object),
    "numpy_forget": (None, ctypes.c_void_p),
    "numpy_1": (_text, ctypes.c_void_p, ctypes.py_object, ctypes.py_object),
    "numpy_2": (_text, ctypes.c_void_p, ctypes.py_object, ctypes.py_object, ctypes.py_object),
}
_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libplumb.so")


class _Lib:
    """The functions of the library that is loaded."""

    loads = 0  # how often it was


lib = _Lib()
caches = weakref.WeakSet()  # objects whose forget() forgets plans


def _load(path):
    loaded = ctypes.CDLL(path)
    for name, (result, *takes) in _functions.items():
        f = getattr(loaded, "plumb_" + name)
        f.restype, f.argtypes = result, takes
        setattr(lib, name, f)
    lib.other = lib.numpy_other()
    lib.loads += 1


def _load_again():
    """Loads a copy: what is loaded does not live on in a child, and has its path."""
    fd = os.memfd_create("libplumb")
    with open(_path, "rb") as f:
        while os.sendfile(fd, f.fileno(), None, 1 << 30):
            pass
    _load(f"/proc/{os.getpid()}/fd/{fd}")  # a name that no parent loaded one by
    os.close(fd)


def _after_fork():
    """Has the next call in a child load the library again."""

    def later(name):
        def call(*args):
            _load_again()
            return getattr(lib, name)(*args)

        return call

    for cache in list(caches):
        cache.forget()
    lib.loads += 1
    for name in _functions:
        setattr(lib, name, later(name))


_load(_path)
os.register_at_fork(after_in_child=_after_fork)


def read(text):
    """Returns what the library tells as JSON, and frees it; an error is raised."""
    value = json.loads(ctypes.string_at(text))
    lib.free(text)
    if isinstance(value, dict) and "error" in value:
        raise error(value["error"])
    return value


def prepare(call):
    text = json.dumps(call).encode()
    return read(lib.prepare(text, len(text)))


def addresses(of):
    return (ctypes.c_void_p * len(of))(*of)


def run(plan, inputs, results):
    """Computes a plan from addresses into addresses."""
    fault = lib.run(plan, addresses(inputs), len(inputs), addresses(results), len(results))
    if fault:
        read(fault)


_room = 1 << 12


def run_new(plan, inputs):
    """Computes a plan; returns a pointer to each DLManagedTensor, and which input it views."""
    results, shares, n = (Managed * _room)(), (ctypes.c_int * _room)(), ctypes.c_int()
    fault = lib.run_new(plan, addresses(inputs), len(inputs), results, shares, _room, ctypes.byref(n))
    if fault:
        read(fault)
    return [results[i] for i in range(n.value)], shares[: n.value]


def describe(name):
    return read(lib.describe(name.encode()))


def manual_seed(seed):
    """Sets what random operators draw from now on."""
    lib.seed(seed & (1 << 64) - 1)
