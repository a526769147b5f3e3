"""Triton on a CPU: its interpreter, with a driver, with bfloat16 and libdevice that compute, and
with every load and store held to the tensors that exist.

Tried with Triton 3.5.1 (PyTorch 2.9.1) and 3.9.0 (2.15). Bounds and races are looked at where
addresses pass (InterpreterBuilder.create_masked_load, …); programs run in a drawn order.
"""

import ctypes
import math
import os
import random
import sys

import numpy as np
import torch

LISTED = 6  # findings that are told of one launch
RAW = 0x7E7E7E7E7E7E7E7E  # in masked lanes of integers

string_at = ctypes.string_at
getframe = sys._getframe


class Launch:
    """The tensors of one launch, and which program read and wrote each byte."""

    def __init__(self, tensors):
        self.regions = []
        for name, t in tensors:
            storage = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()._untyped()
            base, size = storage.data_ptr(), storage.nbytes()
            if size and all(base != known[1] for known in self.regions):
                self.regions.append((name, base, size, np.full(size, -1, np.int32), np.full(size, -1, np.int32)))
        self.program, self.locked = -1, False


class Layer:
    """What the interpreter is changed by; `watch` gets the evidence."""

    def __init__(self, watch):
        self.watch, self.launch, self.launches = watch, None, 0
        self.order, self.seed, self.shuffled, self.ghost = "forward", 0, [], False
        self.deferred = []  # races of the launch, which a lock excuses

    def prepare(self, order, seed):
        self.order, self.seed = order, seed

    # A launch.

    def execute(self, run, executor, args, kwargs):
        """Runs a grid by the interpreter's own loop, program by program in a drawn order."""
        self.launches += 1
        if self.ghost:
            return None
        tensors = [(n, a) for n, a in zip(executor.arg_names, args) if isinstance(a, torch.Tensor)]
        tensors += [(n, a) for n, a in kwargs.items() if isinstance(a, torch.Tensor)]
        for n, a in [*zip(executor.arg_names, args), *kwargs.items()]:
            if hasattr(a, "base") and isinstance(a.base, torch.Tensor):
                tensors.append((n, a.base))
        before, self.launch, self.deferred = self.launch, Launch(tensors), []
        try:
            return run(executor, *args, **kwargs)
        finally:
            if not self.launch.locked:
                for text in self.deferred[:LISTED]:
                    self.watch.note("race", text)
            self.launch = before

    def turn(self, builder, x, y, z):
        """The interpreter goes to its next program: another one, where the order is not its own."""
        gx, gy, gz = builder.grid_dim
        n = gx * gy * gz
        k = (x * gy + y) * gz + z
        if self.order == "reversed":
            k = n - 1 - k
        elif self.order == "random":
            if k == 0 or len(self.shuffled) != n:
                self.shuffled = list(range(n))
                random.Random(self.seed).shuffle(self.shuffled)
            k = self.shuffled[k]
        if self.launch is not None:
            self.launch.program = k
        return k // (gy * gz), k // gz % gy, k % gz

    # Loads and stores.

    def place(self):
        """Returns the line of the kernel's file that is running."""
        frame = getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if os.path.realpath(name) == self.watch.file:
                return "%s:%d" % (os.path.basename(name), frame.f_lineno)
            frame = frame.f_back
        return os.path.basename(self.watch.file)

    def look(self, what, ptrs, mask, size, values=None):
        """Holds the addresses of active lanes to the tensors; returns which lanes are in one."""
        addresses = np.asarray(ptrs.data)
        active = np.broadcast_to(np.asarray(mask.data, bool), addresses.shape)
        launch = self.launch
        if launch is None:
            return active
        inside = np.zeros(addresses.shape, bool)
        for name, base, room, writer, reader in launch.regions:
            offset = addresses.astype(np.int64) - base
            here = active & (offset >= 0) & (offset + size <= room)
            inside |= here
            if here.any():
                self.follow(what, name, offset[here], size, writer, reader, None if values is None else np.broadcast_to(values, addresses.shape)[here], base)
        outside = active & ~inside
        if outside.any():
            self.outside(what, addresses[outside], outside, size)
        return active & inside

    def outside(self, what, addresses, lanes, size):
        launch, address = self.launch, int(addresses.reshape(-1)[0])
        name, base, room = min(((r[0], r[1], r[2]) for r in launch.regions), key=lambda r: min(abs(address - r[1]), abs(address - r[1] - r[2])), default=("no tensor", address, 0))
        off = (address - base) // size
        self.watch.note("memory", "%s: program %d %s %d element%s outside of %s: element %d of %d" % (
            self.place(), launch.program, what, int(lanes.sum()), "s" if lanes.sum() > 1 else "", name, off, room // size))

    def follow(self, what, name, offset, size, writer, reader, values, base):
        """Notes who reads and writes, and where two programs meet."""
        launch, me = self.launch, self.launch.program
        if what == "reads":
            other = writer[offset]
            if ((other >= 0) & (other != me)).any():
                self.defer("%s: program %d reads what program %d wrote in %s" % (self.place(), me, int(other[(other >= 0) & (other != me)][0]), name))
            seen = reader[offset]
            reader[offset] = np.where((seen == -1) | (seen == me), me, -2)
            return
        other, read = writer[offset], reader[offset]
        if values is not None:
            now = np.frombuffer(b"".join(string_at(base + int(o), size) for o in offset), np.uint8).reshape(-1, size)
            new = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)
            differs = (now != new).any(axis=1)
        else:
            differs = np.ones(offset.shape, bool)
        clash = (other >= 0) & (other != me) & differs
        if clash.any():
            self.defer("%s: programs %d and %d store to one element of %s" % (self.place(), int(other[clash][0]), me, name))
        clash = (read != -1) & (read != me) & differs
        if clash.any():
            self.defer("%s: program %d stores what another program reads in %s" % (self.place(), me, name))
        writer[offset] = me

    def reach(self, ptr, mask, size):
        """Holds the addresses of an atomic operation to the tensors; programs may meet there."""
        addresses = np.asarray(ptr.data).astype(np.int64)
        active = np.broadcast_to(np.asarray(mask.data, bool), addresses.shape)
        if self.launch is None:
            return active
        inside = np.zeros(addresses.shape, bool)
        for _, base, room, _, _ in self.launch.regions:
            inside |= active & (addresses - base >= 0) & (addresses - base + size <= room)
        if (active & ~inside).any():
            self.outside("updates", addresses[active & ~inside], active & ~inside, size)
        return active & inside

    def defer(self, text):
        if text not in self.deferred and len(self.deferred) < LISTED:
            self.deferred.append(text)


def install(watch):
    """Changes Triton's interpreter; returns the layer."""
    os.environ["TRITON_INTERPRET"] = "1"
    import triton
    import triton.language as tl
    import triton.runtime.interpreter as interpreter

    layer = Layer(watch)
    drive(triton)
    bound(layer, interpreter, tl)
    repair_bfloat16(interpreter, tl)
    compute_libdevice(interpreter, tl)
    return layer


# A driver.

def drive(triton):
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class CPU(DriverBase):
        def is_active(self=None):
            return True

        def get_active_torch_device(self):
            return torch.device("cpu")

        def get_current_target(self):
            return GPUTarget("cuda", 80, 32)

        def get_current_device(self):
            return 0

        def get_current_stream(self, device=None):
            return 0

        def map_python_to_cpp_type(self, ty):
            return ty

        def get_device_interface(self):
            return torch.cuda

        def get_empty_cache_for_benchmark(self):
            return torch.empty(1)

        def clear_cache(self, cache):
            pass

        def get_benchmarker(self):
            def once(call, quantiles=None, **_):
                call()
                return [1.0] * len(quantiles) if quantiles else 1.0

            return once

    CPU.utils = property(lambda self: Utils())
    triton.runtime.driver.set_active(CPU())


class Utils:
    """Properties of a device as kernels' launchers ask for them: those of an A100."""

    def get_device_properties(self, device=0):
        return {"max_shared_mem": 166912, "multiprocessor_count": 108, "max_num_regs": 65536, "warpSize": 32, "sm_clock_rate": 1410000, "mem_clock_rate": 1215000, "mem_bus_width": 5120}


# Bounds.

def bound(layer, interpreter, tl):
    Builder, Handle, Executor = interpreter.InterpreterBuilder, interpreter.TensorHandle, interpreter.GridExecutor
    load, store, rmw, cas = Builder.create_masked_load, Builder.create_masked_store, Builder.create_atomic_rmw, Builder.create_atomic_cas
    goto, run, init = Builder.set_grid_idx, Executor.__call__, Executor.__init__

    def width(ptrs):
        return max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)

    def masked_load(self, ptrs, mask, other, *rest):
        inside = layer.look("reads", ptrs, mask, width(ptrs))
        v = load(self, ptrs, Handle(inside, tl.int1), other, *rest)
        given = np.broadcast_to(np.asarray(mask.data, bool), v.data.shape)
        if other is None and not given.all():
            poison(v.data, ~given, ptrs.get_element_ty())
        return v

    def masked_store(self, ptrs, value, mask, *rest):
        inside = layer.look("writes", ptrs, mask, width(ptrs), value.data)
        return store(self, ptrs, value, Handle(np.broadcast_to(inside, ptrs.data.shape), tl.int1), *rest)

    def atomic_rmw(self, op, ptr, val, mask, *rest):
        inside = layer.reach(ptr, mask, width(ptr))
        return rmw(self, op, ptr, val, Handle(inside, tl.int1), *rest)

    def atomic_cas(self, ptr, *rest):
        if layer.launch is not None:
            layer.launch.locked = True
        layer.reach(ptr, Handle(np.ones_like(ptr.data, bool), tl.int1), width(ptr))
        return cas(self, ptr, *rest)

    def grid_idx(self, x, y, z):
        goto(self, *layer.turn(self, x, y, z))

    def executor(self, fn, arg_names, *rest):
        init(self, fn, arg_names, *rest)
        self.arg_names = arg_names
        told = {n: a for n, a in getattr(fn, "__annotations__", {}).items() if isinstance(a, str)}
        self.constexprs += [n for n in arg_names if told.get(n, "").replace(" ", "").endswith("constexpr") and n not in self.constexprs]

    def execute(self, *args, **kwargs):
        return layer.execute(run, self, args, kwargs)

    Builder.create_masked_load, Builder.create_masked_store = masked_load, masked_store
    Builder.create_atomic_rmw, Builder.create_atomic_cas = atomic_rmw, atomic_cas
    Builder.set_grid_idx, Executor.__init__, Executor.__call__ = grid_idx, executor, execute


def poison(data, lanes, dtype):
    """Fills lanes that a load leaves undefined."""
    if data.dtype.kind == "f":
        data[lanes] = np.nan
    elif dtype.is_bf16():
        data[lanes] = 0x7FC0
    elif data.dtype.kind in "iu":
        data[lanes] = np.array([RAW], np.uint64).view(data.dtype)[0]


# bfloat16: the interpreter computes with its bits as if they were integers.

def widened(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


BINARY = ("create_fadd", "create_fsub", "create_fmul", "create_fdiv", "create_frem", "create_minimumf", "create_maximumf", "create_minnumf", "create_maxnumf", "create_precise_divf")
COMPARED = tuple("create_fcmp" + c for c in ("OLT", "OGT", "OLE", "OGE", "OEQ", "ONE", "ULT", "UGT", "ULE", "UGE", "UEQ", "UNE"))
UNARY = tuple("create_" + f for f in ("exp", "exp2", "log", "log2", "sqrt", "precise_sqrt", "rsqrt", "sin", "cos", "erf", "floor", "ceil", "fabs", "fneg"))


def repair_bfloat16(interpreter, tl):
    Builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def is_half(h):
        return isinstance(h, Handle) and h.get_element_ty().is_bf16() and np.asarray(h.data).dtype == np.uint16

    def wrapped(f, compares):
        def g(self, *handles):
            if not any(map(is_half, handles)):
                return f(self, *handles)
            v = f(self, *[Handle(widened(h.data), tl.float32) if is_half(h) else h for h in handles])
            return v if compares else Handle(narrowed(v.data), tl.bfloat16)

        return g

    for names, compares in ((BINARY, False), (COMPARED, True), (UNARY, False)):
        for name in names:
            f = getattr(Builder, name, None)
            if f is not None:
                setattr(Builder, name, wrapped(f, compares))
    dot, fma = Builder.create_dot, getattr(Builder, "create_fma", None)

    def create_dot(self, a, b, d, *rest):
        a, b = [Handle(widened(h.data), tl.float32) if is_half(h) else h for h in (a, b)]
        return dot(self, a, b, d, *rest)

    Builder.create_dot = create_dot
    if fma is not None:
        Builder.create_fma = wrapped(fma, False)


# libdevice, of which the interpreter has nothing.

def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


FUNCTIONS = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "erf": erf, "erfc": lambda x: 1 - erf(x),
    "exp": np.exp, "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fast_cosf": np.cos, "fast_dividef": np.divide, "fast_exp10f": lambda x: np.power(10.0, x),
    "fast_expf": np.exp, "fast_log10f": np.log10, "fast_log2f": np.log2, "fast_logf": np.log, "fast_powf": np.power, "fast_sinf": np.sin, "fast_tanf": np.tan,
    "fast_tanhf": np.tanh, "fdim": lambda x, y: np.maximum(x - y, 0), "floor": np.floor, "fma": lambda x, y, z: x * y + z, "fmod": np.fmod, "hypot": np.hypot,
    "div_rn": np.divide, "div_rz": np.divide, "div_rd": np.divide, "div_ru": np.divide, "add_rn": np.add, "mul_rn": np.multiply, "sub_rn": np.subtract, "sqrt_rn": np.sqrt,
    "isinf": np.isinf, "isnan": np.isnan, "finitef": np.isfinite, "isfinited": np.isfinite, "ldexp": lambda x, n: np.ldexp(x, n), "lgamma": lambda x: np.vectorize(math.lgamma, otypes=[np.float64])(x),
    "llrint": lambda x: np.rint(x).astype(np.int64), "llround": lambda x: np.round(x).astype(np.int64), "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "nearbyint": np.rint, "nextafter": np.nextafter, "pow": np.power, "rcp_rn": np.reciprocal, "rint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rsqrt": lambda x: 1 / np.sqrt(x), "rsqrt_rn": lambda x: 1 / np.sqrt(x), "saturatef": lambda x: np.clip(x, 0, 1), "signbit": np.signbit, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": lambda x: np.vectorize(math.gamma, otypes=[np.float64])(x), "trunc": np.trunc,
}


def compute_libdevice(interpreter, tl):
    """Gives the functions of libdevice that numpy has to kernels that import it by any of its names."""
    Handle = interpreter.TensorHandle

    def function(f):
        def g(*args, **_):
            with np.errstate(all="ignore"):
                arrays = [np.asarray(a.handle.data) if isinstance(a, tl.tensor) else a for a in args]
                halves = [isinstance(a, tl.tensor) and a.dtype.is_bf16() for a in args]
                arrays = [widened(a) if half else a for a, half in zip(arrays, halves)]
                first = next(a for a in args if isinstance(a, tl.tensor))
                v = np.asarray(f(*arrays))
            if v.dtype.kind == "b":
                v, scalar = v.astype(np.int32), tl.int32
            elif v.dtype.kind in "iu":
                scalar = tl.int64 if v.dtype.itemsize == 8 else tl.int32
            else:
                scalar = first.dtype
                v = narrowed(v) if halves[0] else v.astype(np.asarray(first.handle.data).dtype)
            shape = [int(n) for n in v.shape]
            return tl.tensor(Handle(v, scalar), tl.block_type(scalar, shape) if first.type.is_block() else scalar)

        return g

    import importlib

    for name in ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for of, f in FUNCTIONS.items():
            if hasattr(module, of):
                setattr(module, of, function(f))


# What stands for a GPU.

class Anything:
    """A stream, an event or a context of a device that is not there."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


class Properties:
    name, major, minor, multi_processor_count, warp_size, total_memory = "A100", 8, 0, 108, 32, 40 << 30
    max_threads_per_multi_processor, shared_memory_per_multiprocessor, shared_memory_per_block_optin, regs_per_multiprocessor = 2048, 167936, 166912, 65536
    L2_cache_size = 40 << 20


def stand_in():
    """Gives torch.cuda what host code calls; tensors stay on the CPU."""
    nothing = lambda *args, **kwargs: None  # noqa: E731
    given = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "get_device_name": lambda *_: Properties.name,
        "get_device_capability": lambda *_: (8, 0), "get_device_properties": lambda *_: Properties, "synchronize": nothing, "empty_cache": nothing,
        "set_device": nothing, "manual_seed": nothing, "manual_seed_all": nothing, "device": Anything, "Stream": Anything, "Event": Anything, "stream": Anything,
        "current_stream": Anything, "default_stream": Anything, "max_memory_allocated": lambda *_: 0, "memory_allocated": lambda *_: 0,
        "reset_peak_memory_stats": nothing, "is_initialized": lambda: True, "init": nothing,
    }
    for name, f in given.items():
        setattr(torch.cuda, name, f if f is not nothing else lambda *args, **kwargs: None)  # PyTorch has rules for each, by its identity
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.nn.Module.cuda = lambda self, *args, **kwargs: self
