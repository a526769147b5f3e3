"""Triton on a CPU: its interpreter, with a driver, with bfloat16 and libdevice that compute, and
with every load and store held to the tensors that exist.

Tried with Triton 3.5.1 (PyTorch 2.9.1) and 3.9.0 (2.15). Bounds and races are looked at where
addresses pass (InterpreterBuilder.create_masked_load, …); programs run in a drawn order.
"""

import ctypes
import dataclasses
import inspect
import os
import random
import signal
import sys
import threading
import time
import types

import numpy as np
import torch
from plumb_tritonasm import add_assembly
from plumb_tritonhost import look_compiled, tune_once
from plumb_tritonlang import complete
from plumb_tritonmath import compute_libdevice, repair_bfloat16, repair_float8

LISTED = 6  # findings that are told of one launch
RAW = 0x7E7E7E7E7E7E7E7E  # in masked lanes of integers

MOST = 300000  # of what the programs of one call may take, where the judge allows no other
SHARE = 12  # bits of the number of elements that take as long as an operation
FAR, NEAR, TOLD = 3, 1.5, 8  # times what is left, beyond which programs are not waited for: few have run, or one in TOLD
SLOWEST = 12  # seconds of the processor's, should what is counted not tell
set_handler, set_timer = signal.signal, signal.setitimer
SPINS = 20000  # accesses to one element by a program that seems to wait for another one
STEPS = 64  # accesses that are looked at for one that clashes

getframe, clock = sys._getframe, time.process_time


class Region:
    """The memory of one tensor, and which step of the launch wrote and read each place last."""

    def __init__(self, name, base, size):
        self.name, self.base, self.size = name, base, size
        self.writer, self.reader = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
        self.written, self.other = False, np.full(size, -1, np.int32)  # the last step that read it before a reader of another program


class Step:
    """One access: its program, and how many atomic operations that had made before."""

    def __init__(self, program, atomics):
        self.program, self.atomics = program, atomics


class Slow(BaseException):
    """A call has more programs than the interpreter can run in time."""


class Waits(BaseException):
    """A program waits for one whose turn has not come."""


class Launch:
    """The tensors of one launch, and what its programs did."""

    def __init__(self, tensors):
        self.regions = []
        for name, t in tensors:
            storage = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()._untyped()
            base, size = storage.data_ptr(), storage.nbytes()
            if size and all(base != known.base for known in self.regions):
                self.regions.append(Region(name, base, size))
        self.program, self.began, self.programs, self.work = -1, 0, 0, 0
        self.steps, self.spins = [], 0
        self.cells = {}  # the addresses that each program has updated by atomic operations, in order
        self.patched = set()  # the modules of Triton's language that are the interpreter's

    def turn(self, program):
        self.program, self.began, self.spins = program, len(self.steps), 0

    def step(self):
        self.steps.append(Step(self.program, len(self.cells.get(self.program, ()))))
        return len(self.steps) - 1

    def spin(self):
        self.spins += 1
        if self.spins > SPINS:
            raise Waits

    def held(self):
        return [(r.base, ctypes.string_at(r.base, r.size)) for r in self.regions]

    def foreign(self, places):
        """Returns a step of another program among those of places, that no atomic operations on
        one cell order before this one; None where there is none."""
        places = places[(places >= 0) & (places < self.began)]
        if not places.size:
            return None
        mine = set(self.cells.get(self.program, ()))
        for k in np.unique(places)[:STEPS]:
            step = self.steps[k]
            if step.program != self.program and not mine.intersection(self.cells.get(step.program, ())[step.atomics:]):
                return step
        return None


class Layer:
    """What the interpreter is changed by; `watch` gets the evidence."""

    def __init__(self, watch):
        self.watch, self.launch = watch, None
        self.launches, self.programs, self.since = 0, 0, None  # so far; those of the last call, and when it began
        self.order, self.seed, self.shuffled, self.ghost = "forward", 0, [], False
        self.told, self.all = 0, 0  # races and programs of the launch
        self.work, self.most = 0, MOST  # operations of the interpreter's in the call, and how many it may have
        self.poisoned = -1  # loads that have left lanes undefined, from 0 on
        self.compiled, self.before = {}, 0  # what has been launched, as a compiler is told of it; how much of it before the call

    def prepare(self, order, seed, most=0):
        self.order, self.seed, self.programs, self.since = order, seed, 0, clock()
        self.work, self.most, self.before = 0, most or MOST, len(self.compiled)

    def forget(self):
        for key in list(self.compiled)[self.before:]:
            del self.compiled[key]

    # A launch.

    def execute(self, run, executor, args, kwargs):
        """Runs a grid by the interpreter's own loop, program by program in a drawn order."""
        self.launches += 1
        if self.ghost:
            return None
        args, kwargs = [viewed(a) for a in args], {n: viewed(a) for n, a in kwargs.items()}
        given = [*zip(executor.arg_names, args), *kwargs.items()]
        remember(self.compiled, executor.fn, given)
        tensors = [(n, t) for n, a in given for t in memory(a)]
        before, self.launch, self.told = self.launch, Launch(tensors), 0
        self.launch.work = self.work
        held = self.launch.held() if self.order != "forward" else ()
        watched = threading.current_thread() is threading.main_thread()
        if watched:  # one program may sort for minutes without a load
            handler = set_handler(signal.SIGVTALRM, lambda *_: self.hurry())
            set_timer(signal.ITIMER_VIRTUAL, SLOWEST, 1)
        try:
            return run(executor, *args, **kwargs)
        except Waits:  # for programs of a lower number: these run first, from what was there
            for base, data in held:
                ctypes.memmove(base, data, len(data))
            self.launch, self.order = Launch(tensors), "forward"
            return run(executor, *args, **kwargs)
        finally:
            if watched:
                set_timer(signal.ITIMER_VIRTUAL, 0)
                set_handler(signal.SIGVTALRM, handler or signal.SIG_DFL)
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
        self.programs, self.all = self.programs + 1, n
        if self.launch is not None:
            self.foresee(n)
            self.launch.turn(k)
        return k // (gy * gz), k // gz % gy, k % gz

    def foresee(self, n):
        """Stops a launch whose programs, by those that have run, take far more than is left."""
        launch, left = self.launch, max(self.most - self.launch.work, 1)
        took = self.work - launch.work
        far = NEAR if launch.programs * TOLD >= n else FAR
        if self.since is not None and launch.programs > 1 and took * n > far * left * launch.programs:
            self.programs += max(left * launch.programs // took - launch.programs, 0)
            self.slow()
        launch.programs += 1

    def hurry(self):
        if self.since is not None and clock() - self.since > SLOWEST:
            self.slow()

    def slow(self):
        if self.since is None:  # what a file tries when it is imported may take its time
            return
        self.watch.note("slow", "more programs than the interpreter runs in a call (%d of %d)" % (self.programs, self.all))
        raise Slow

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
        addresses = np.asarray(ptrs.data).astype(np.int64)
        active = np.broadcast_to(np.asarray(mask.data, bool), addresses.shape)
        if self.launch is None:
            return active
        if addresses.size == 1 and self.order != "forward":
            self.launch.spin()
        inside = np.zeros(addresses.shape, bool)
        self.work += addresses.size * len(self.launch.regions) >> SHARE - 4
        for region in self.launch.regions:
            offset = addresses - region.base
            here = active & (offset >= 0) & (offset + size <= region.size)
            if not here.any():
                continue
            inside |= here
            if what == "reads":
                self.read(region, offset[here])
            elif what == "writes":
                self.write(region, offset[here], size, np.broadcast_to(values, addresses.shape)[here])
        outside = active & ~inside
        if outside.any():
            self.outside(what, addresses[outside], size)
        return inside

    def outside(self, what, addresses, size):
        launch, address = self.launch, int(addresses.reshape(-1)[0])
        if not launch.regions:
            self.watch.note("memory", "%s: program %d %s memory where there is no tensor" % (self.place(), launch.program, what))
            return
        near = min(launch.regions, key=lambda r: min(abs(address - r.base), abs(address - r.base - r.size)))
        n = addresses.size
        self.watch.note("memory", "%s: program %d %s %d element%s outside of %s: element %d of %d" % (
            self.place(), launch.program, what, n, "s" if n > 1 else "", near.name, (address - near.base) // size, near.size // size))

    def read(self, region, offset):
        launch = self.launch
        if region.written:
            step = launch.foreign(region.writer[offset])
            if step is not None:
                self.race("program %d reads what program %d wrote in %s" % (launch.program, step.program, region.name))
        was = region.reader[offset]
        region.other[offset] = np.where((was >= 0) & (was < launch.began), was, region.other[offset])
        region.reader[offset] = launch.step()

    def write(self, region, offset, size, values):
        """Two stores of the same bytes are none that clash, nor is a store that changes nothing."""
        launch = self.launch
        if region.written or (region.reader[offset] >= 0).any():
            now = np.frombuffer((ctypes.c_char * region.size).from_address(region.base), np.uint8)[offset[:, None] + np.arange(size)]
            new = np.ascontiguousarray(values).view(np.uint8).reshape(offset.size, -1)
            changes = (now != new[:, :size]).any(axis=1)
            step = launch.foreign(region.writer[offset][changes])
            if step is not None:
                self.race("programs %d and %d store to one element of %s" % (step.program, launch.program, region.name))
            step = launch.foreign(region.reader[offset][changes]) or launch.foreign(region.other[offset][changes])
            if step is not None:
                self.race("program %d stores what program %d reads in %s" % (launch.program, step.program, region.name))
        region.written = True
        region.writer[offset] = launch.step()

    def update(self, ptr, mask, size):
        """Holds the addresses of an atomic operation to the tensors. Programs may meet there, and
        what one did before its operation comes before what another does after it."""
        inside = self.look("updates", ptr, mask, size)
        launch = self.launch
        if launch is not None and inside.sum() == 1:
            launch.cells.setdefault(launch.program, []).append(int(np.asarray(ptr.data)[inside].reshape(-1)[0]))
        return inside

    def race(self, text):
        self.told += 1
        if self.told <= LISTED:
            self.watch.note("race", "%s: %s" % (self.place(), text))


def viewed(a):
    """Returns the memory that an object of a library's stands for by its address, and by a tensor that it holds."""
    if not hasattr(a, "data_ptr") or isinstance(a, torch.Tensor):
        return a
    held = [t for t in getattr(a, "__dict__", {}).values() if isinstance(t, torch.Tensor)]
    if len(held) != 1 or hasattr(a, "base"):  # one of Triton's own, whose dtype is another
        return a
    storage, size = held[0].untyped_storage(), held[0].element_size()
    at = (a.data_ptr() - storage.data_ptr()) // size
    return torch.empty(0, dtype=held[0].dtype).set_(storage, at, (storage.nbytes() // size - at,), (1,))


def memory(a):
    """Lists the tensors that an argument of a launch stands for."""
    if isinstance(a, torch.Tensor):
        return [a]
    if isinstance(a, tuple):
        return [t for e in a for t in memory(e)]
    return [a.base] if isinstance(getattr(a, "base", None), torch.Tensor) else []


# What a compiler is told of a launch (plumb_tritonptx.py reads it).

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def remember(known, fn, given):
    from triton.runtime.jit import mangle_type

    annotations = getattr(fn, "__annotations__", {})
    told = {"module": fn.__module__, "name": fn.__name__, "signature": {}, "constants": {}, "options": {}}
    names = inspect.signature(fn).parameters
    given = dict(given)
    for n, p in names.items():
        v = given.get(n, p.default)
        kind = annotations.get(n)
        if v is None or "constexpr" in (kind if isinstance(kind, str) else getattr(kind, "__name__", "")):
            told["signature"][n], told["constants"][n] = "constexpr", constant(v)
        else:
            try:
                told["signature"][n] = mangle_type(v)
            except Exception:
                told["signature"][n] = "?"
    told["options"] = {n: given[n] for n in OPTIONS if isinstance(given.get(n), int)}
    known.setdefault(repr(told), told)


def constant(v):
    """Returns a constant of a kernel in a form that crosses to another process."""
    v = getattr(v, "value", v)
    if v is None or isinstance(v, (bool, int, float, str)):
        return {"value": repr(v)}
    if isinstance(v, torch.dtype):
        return {"torch": str(v)[6:]}
    if hasattr(v, "primitive_bitwidth"):
        return {"dtype": v.name}
    if callable(v) and hasattr(v, "__name__"):
        return {"function": v.__name__}
    return {"unknown": type(v).__name__}


def install(watch):
    """Changes Triton's interpreter; returns the layer."""
    os.environ["TRITON_INTERPRET"] = "1"
    import triton
    import triton.language as tl
    import triton.runtime.interpreter as interpreter

    layer = Layer(watch)
    drive(triton)
    bound(layer, interpreter, tl)
    patch_once(layer, interpreter, tl)
    spare_overflows(interpreter)
    count(layer, interpreter)
    look_compiled(interpreter)
    repair_bfloat16(interpreter, tl)
    repair_float8(interpreter)
    compute_libdevice(interpreter, tl)
    complete(interpreter, tl)
    add_assembly(interpreter)
    bench_once()
    tune_once(layer, interpreter)
    return layer


def unmark():
    """Has Triton interpret though its environment, and what it tells a kernel, say that it compiles."""
    import triton

    os.environ.pop("TRITON_INTERPRET", None)
    if hasattr(triton, "knobs"):
        own = os.path.dirname(triton.__file__) + os.sep

        class Told:
            def __get__(self, knobs, owner=None):
                return getframe(1).f_code.co_filename.startswith(own)

            def __set__(self, knobs, value):
                pass

        type(triton.knobs.runtime).interpret = Told()


def bench_once():
    """Times of a CPU say nothing: a benchmark makes one call."""
    import triton.testing

    def once(fn, *args, quantiles=None, return_mode="mean", **_):
        fn()
        return [1.0] * len(quantiles) if quantiles else [1.0] if return_mode == "all" else 1.0

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = once
    triton.testing.Mark.run = lambda *args, **kwargs: None


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

    def masked_load(self, ptrs, mask, other, *rest, **named):
        inside = layer.look("reads", ptrs, mask, width(ptrs))
        v = load(self, ptrs, Handle(inside, tl.int1), other, *rest, **named)
        given = np.broadcast_to(np.asarray(mask.data, bool), v.data.shape)
        if other is None and not given.all():
            layer.poisoned += 1
            poison(v.data, ~given, ptrs.get_element_ty(), layer.poisoned)
        return v

    def masked_store(self, ptrs, value, mask, *rest, **named):
        inside = layer.look("writes", ptrs, mask, width(ptrs), value.data)
        return store(self, ptrs, value, Handle(np.broadcast_to(inside, ptrs.data.shape), tl.int1), *rest, **named)

    def atomic_rmw(self, op, ptr, val, mask, *rest):
        return rmw(self, op, ptr, val, Handle(layer.update(ptr, mask, width(ptr)), tl.int1), *rest)

    def atomic_cas(self, ptr, cmp, val, *rest):
        inside = layer.update(ptr, Handle(np.ones(np.shape(ptr.data), bool), tl.int1), width(ptr))
        return cas(self, ptr, cmp, val, *rest) if inside.all() else Handle(np.zeros_like(cmp.data), cmp.dtype.scalar)

    def grid_idx(self, x, y, z):
        goto(self, *layer.turn(self, x, y, z))

    def executor(self, fn, arg_names, grid, *rest):
        init(self, fn, arg_names, (lambda _: tuple(grid(self.given))) if callable(grid) else tuple(grid), *rest)
        self.arg_names = arg_names
        told = {n: a for n, a in getattr(fn, "__annotations__", {}).items() if isinstance(a, str)}
        self.constexprs += [n for n in arg_names if told.get(n, "").strip(" '\"").endswith("constexpr") and n not in self.constexprs]

    def execute(self, *args, **kwargs):
        self.given = inspect.getcallargs(self.fn, *args, **{n: v for n, v in kwargs.items() if n in self.arg_names})
        return layer.execute(run, self, args, kwargs)

    def atomic_load(self, ptr, mask, *_):
        return load(self, ptr, Handle(layer.update(ptr, mask, width(ptr)), tl.int1), None, None, True)

    def atomic_store(self, ptr, val, mask, *_):
        return store(self, ptr, val, Handle(layer.update(ptr, mask, width(ptr)), tl.int1), None)

    if hasattr(Builder, "create_atomic_load"):
        Builder.create_atomic_load, Builder.create_atomic_store = atomic_load, atomic_store
    Builder.create_masked_load, Builder.create_masked_store = masked_load, masked_store
    Builder.create_atomic_rmw, Builder.create_atomic_cas = atomic_rmw, atomic_cas
    Builder.set_grid_idx, Executor.__init__, Executor.__call__ = grid_idx, executor, execute


def patch_once(layer, interpreter, tl):
    """The interpreter changes the whole language at each call of a device function, and makes a table
        at each operation: once a launch is enough, and once."""
    patch, dtype_of, dtypes = interpreter._patch_lang, interpreter._get_np_dtype, {}
    scope = getattr(interpreter, "_LangPatchScope", lambda: None)
    known, seen, own, named = {}, set(), {}, types.SimpleNamespace(__globals__={"tl": tl})

    def patch_lang(fn):
        names = fn.__globals__
        if not own:
            own.update((id(f), (owner, name)) for owner in (tl.math, tl) for name, f in vars(owner).items() if getattr(f, "__triton_builtin__", False))
        if fn not in seen:
            seen.add(fn)
            names.update({n: looked_up(*own[id(names[n])]) for n in fn.__code__.co_names if id(names.get(n)) in own})
        if id(names) not in known:
            known[id(names)] = frozenset(m.__name__ for m in names.values() if m is tl or m is tl.core)
        if layer.launch is not None and known[id(names)] and known[id(names)] <= layer.launch.patched:
            return scope()
        if layer.launch is not None:
            layer.launch.patched |= known[id(names)]
        return patch(fn if known[id(names)] else named)

    def np_dtype(dtype):
        name = dtype.name
        if name not in dtypes:
            dtypes[name] = dtype_of(dtype)
        return dtypes[name]

    interpreter._patch_lang, interpreter._get_np_dtype = patch_lang, np_dtype


def looked_up(owner, name):
    """Returns a function of the language that a file has by a name of its own, `from triton.language import
    exp`, as the interpreter has it when it is called: it knows those alone that are the module's."""
    return lambda *args, **kwargs: getattr(owner, name)(*args, **kwargs)


def spare_overflows(interpreter):
    """Each sum and product of integers is computed twice, to assert what is asserted in debug
    mode alone: two thirds of the time of a kernel that computes offsets."""
    options = interpreter.interpreter_builder.options
    if not options.debug:
        interpreter.interpreter_builder.options = dataclasses.replace(options, sanitize_overflow=False)


def count(layer, interpreter):
    """Counts what the interpreter computes: by what it may take of that, and by no clock, a call
    is cut off, so that the same request has the same answer on a busy machine."""
    Handle = interpreter.TensorHandle
    made = Handle.__init__

    def init(self, data, dtype, *rest, **named):
        layer.work += 1 + (getattr(data, "size", 1) >> SHARE)
        if layer.work > layer.most:
            layer.slow()
        made(self, data, dtype, *rest, **named)

    Handle.__init__ = init


def poison(data, lanes, dtype, turn):
    """Fills lanes that a load leaves undefined, by turns with NaN, which maxima leave out, and
    with what they do not: numbers far above and far below the others."""
    if data.dtype.kind == "f":
        kinds = np.array([np.nan, 1, -1]) * min(1e30, float(np.finfo(data.dtype).max) / 2)
    elif dtype.is_bf16():
        kinds = np.array([0x7FC0, 0x7149, 0xF149])
    if data.dtype.kind == "f" or dtype.is_bf16():
        data[lanes] = np.resize(np.roll(kinds, -turn), np.count_nonzero(lanes)).astype(data.dtype)
    elif data.dtype.kind in "iu":
        data[lanes] = np.array([RAW], np.uint64).view(data.dtype)[0]


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


class Timed(Anything):
    def elapsed_time(self, _):
        return 1.0

    def query(self):
        return True


class Generator:
    """The state of a device's random numbers: a seed and an offset, of 64 bits each."""

    def __init__(self):
        self.state = torch.zeros(2, dtype=torch.int64)

    def get_state(self):
        return self.state.view(torch.uint8).clone()

    def set_state(self, state):
        self.state = state.clone().view(torch.int64)

    def manual_seed(self, seed):
        self.state = torch.tensor([seed, 0])
        return self

    def initial_seed(self):
        return int(self.state[0])

    seed = initial_seed


class Properties:
    name, major, minor, multi_processor_count, warp_size, total_memory = "A100", 8, 0, 108, 32, 40 << 30
    max_threads_per_multi_processor, shared_memory_per_multiprocessor, shared_memory_per_block_optin, regs_per_multiprocessor = 2048, 167936, 166912, 65536
    L2_cache_size = 40 << 20


def stand_in():
    """Gives torch.cuda what host code calls; tensors stay on the CPU."""
    nothing = lambda *args, **kwargs: None  # noqa: E731
    generator = Generator()
    given = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "get_device_name": lambda *_: Properties.name,
        "get_device_capability": lambda *_: (8, 0), "get_device_properties": lambda *_: Properties, "synchronize": nothing, "empty_cache": nothing,
        "set_device": nothing, "manual_seed": nothing, "manual_seed_all": nothing, "device": Anything, "device_of": Anything, "Stream": Anything, "Event": Timed, "stream": Anything,
        "current_stream": Anything, "default_stream": Anything, "max_memory_allocated": lambda *_: 0, "memory_allocated": lambda *_: 0,
        "reset_peak_memory_stats": nothing, "is_initialized": lambda: True, "init": nothing,
        "mem_get_info": lambda *_: (Properties.total_memory, Properties.total_memory), "memory_reserved": lambda *_: 0, "max_memory_reserved": lambda *_: 0, "seed": nothing,
        "is_bf16_supported": lambda *_, **__: True, "nvtx": Anything(), "CUDAGraph": Anything, "graph": Anything, "is_current_stream_capturing": lambda: False,
        "default_generators": (generator,), "get_rng_state": lambda *_: generator.get_state(), "set_rng_state": lambda state, *_: generator.set_state(state),
        "get_rng_state_all": lambda: [generator.get_state()], "set_rng_state_all": lambda states: generator.set_state(states[0]), "initial_seed": generator.initial_seed,
    }
    for name, f in given.items():
        setattr(torch.cuda, name, f if f is not nothing else lambda *args, **kwargs: None)  # PyTorch has rules for each, by its identity
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    torch.Tensor.pin_memory = lambda self, *args, **kwargs: self
    torch.Tensor.record_stream = lambda self, *args, **kwargs: None
    torch.nn.Module.cuda = lambda self, *args, **kwargs: self
    compile_nothing()


def compile_nothing():
    """What a file hands to torch.compile runs as it is written: PyTorch's compiler asks a device for its streams."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    if "torch._dynamo.config" in sys.modules:
        sys.modules["torch._dynamo.config"].disable = True
