"""What a kernel does beside computing: evidence for the judge, in words.

Everything that is used here is taken before the kernel's file is imported.
"""

import builtins
import contextlib
import ctypes
import datetime
import functools
import gc
import operator
import os
import random
import sys
import threading
import time
import timeit
import traceback
import types

import torch
import torch.nn.functional
import torch.overrides
import torch.utils._python_dispatch as python_dispatch
from plumb_left import Left, mentions
from plumb_patched import Patched
from torch.utils._python_dispatch import TorchDispatchMode

Tensor, Parameter = torch.Tensor, torch.nn.Parameter
string_at, getframe, threads_of, listdir, frames_of = ctypes.string_at, sys._getframe, threading.enumerate, os.listdir, sys._current_frames
realpath = os.path.realpath
extract_tb, format_only, pause = traceback.extract_tb, traceback.format_exception_only, time.sleep

# What an honest kernel has no use for; the open of a file is looked at by its path.
SPYING = {
    "gc.get_objects": "looks through all objects (gc.get_objects)", "gc.get_referrers": "looks through all objects (gc.get_referrers)",
    "gc.get_referents": "looks through all objects (gc.get_referents)", "sys._getframe": "looks at its callers' frames",
    "sys._current_frames": "looks at its callers' frames", "sys.settrace": "traces its callers", "sys.setprofile": "traces its callers",
    "os.fork": "forks the process", "os.forkpty": "forks the process", "os.kill": "sends a signal", "os.exec": "replaces the process",
    "socket.connect": "opens a connection", "resource.prlimit": "asks for the limits of a process",
}
BENEATH = ("open", "open64", "openat", "fopen", "read", "pread", "syscall", "ptrace", "process_vm_readv", "process_vm_writev", "fork", "vfork", "kill", "system", "popen", "execve",
           "socket", "connect", "mprotect", "getrlimit", "getrlimit64", "prlimit", "prlimit64", "prctl", "dlopen", "dlsym")  # of libc, by which a kernel would do what Python does not tell
IMPORTS = "<frozen importlib"
GENERATED = ("<frozen", "<__array_function__")  # code of Python's and of NumPy's that is of no file
FRAMES = ("tb_frame", "gi_frame", "cr_frame", "ag_frame")  # attributes whose reading Python tells
LISTS = ("os.listdir", "os.scandir")  # a folder, as it is opened
DESCRIPTORS = ("write", "writev", "pwrite", "pwritev", "dup2", "ftruncate")
OUTWARD = {
    "subprocess.Popen": "starts a process", "os.posix_spawn": "starts a process", "os.system": "starts a process", "socket.__new__": "opens a socket",
    "socket.getaddrinfo": "looks up a host", "os.remove": "removes a file", "os.rename": "renames a file", "os.mkdir": "makes a folder",
}  # of a call; the write of a file is looked at by its flags
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
STANDARD = os.path.dirname(os.__file__)  # of Python's own library
PACKAGES = ("site-packages", "dist-packages")
SAFE = {os.path.join(STANDARD, name) for name in ("ctypes/__init__.py", "linecache.py", "inspect.py", "traceback.py", "warnings.py")}  # which a kernel may call
TRACEBACK = os.path.join(STANDARD, "traceback.py")
OF_TORCH = os.path.dirname(torch.__file__)
PATCHED = {"builtins": builtins, "time": time, "gc": gc, "random": random, "sys": sys, "os": os, "threading": threading, "torch": torch,
           "torch.nn.functional": torch.nn.functional, "torch.Tensor": Tensor, "torch.testing": torch.testing, "torch.cuda": torch.cuda,
           "torch.random": torch.random, "torch.linalg": torch.linalg, "torch.special": torch.special, "torch.nn.Module": torch.nn.Module}
CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
FOREIGN = ("numpy", "numpy.testing", "numpy.linalg", "json", "struct", "pickle", "math", "copy", "hashlib", "io", "subprocess", "statistics",
           "torch.autograd", "torch.nn", "torch.utils.benchmark", "torch.utils.data")  # in which nothing is of a kernel's file
INHERITED = Tensor.__mro__[1]  # whose methods a patch of torch.Tensor hides
POISON = b"\x7e"  # what malloc fills new memory with under MALLOC_PERTURB_=129
GHOSTS = 3  # calls that are made again without launches: all of them have to give the same
TELLING = 32  # elements of a result that say something by being the same
GRACE = 100  # milliseconds in which a pool's thread that has given its result comes to wait again
HOUR = 3600  # seconds that the clock goes on between calls
KEPT = 3  # calls whose results are looked at again
COLUMN = 8  # elements of windows that are laid out and multiplied in the time in which one is computed
CALL = 256  # elements that are computed in the time which a call of an operator takes beside them
SEEN = 2048  # functions of a graph of gradients that are looked at
ENDINGS = (SystemExit, KeyboardInterrupt, GeneratorExit)  # by which a harness ends that catches Exception


ON_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) if hasattr(torch._C, "DispatchKeySet") else None


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names, self.elements = [], 0

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        name = getattr(f, "_schema", f).name if hasattr(f, "_schema") else str(f)
        self.names.append(name)
        if (kwargs or {}).get("stable"):
            self.names.append(name + ".stable")
        if "::" in name and not name.startswith(("aten::", "prim")) and hasattr(f, "redispatch"):  # PyTorch has the mode off in it
            with self:
                return f.redispatch(ON_CPU, *args, **(kwargs or {}))
        v = f(*args, **(kwargs or {}))
        if computes(name):
            self.elements += CALL + sum(t.numel() for t in tensors(v)) + unfolded(name, v, args)
        return v


def unfolded(name, v, args):
    """Returns what the windows of a convolution count for, which it lays out one by one to multiply them: a long
    kernel over a long row has as many elements there as attention has."""
    if name not in ("aten::convolution", "aten::_convolution") or not isinstance(v, torch.Tensor) or not v.numel():
        return 0
    weight, transposed, groups = args[1], args[6], args[8]
    places = args[0] if transposed else v  # of windows: a transposed convolution adds them up
    return places.numel() // places.shape[1] * (weight.numel() // weight.shape[0]) * groups // COLUMN


# Operators that compute nothing: they make, copy, convert or describe.
LAYOUT = set("""view copy clone contiguous detach alias reshape expand permute transpose t slice select unsqueeze squeeze as_strided
    _to_copy to lift_fresh stride size resize unbind split split_with_sizes arange item _local_scalar_dense _reshape_alias
    _unsafe_view fill flatten narrow numel is_contiguous chunk""".split())
MAKERS = ("empty", "zeros", "ones", "full", "new_")


# What are other operators for the same work, and what they are made of.
PARTS = {
    "_log_softmax": ("_softmax", "log"),
    **dict.fromkeys("mm bmm mv dot vdot inner linear".split(), ("matmul",)), **dict.fromkeys("addmm baddbmm addbmm addmv".split(), ("matmul", "add")),
    **dict.fromkeys("_convolution convolution_overrideable mkldnn_convolution _slow_conv2d_forward slow_conv2d slow_conv3d conv_depthwise3d thnn_conv2d".split(), ("convolution",)),
    **dict.fromkeys("_batch_norm_impl_index _native_batch_norm_legit _native_batch_norm_legit_no_training _batch_norm_with_update cudnn_batch_norm".split(), ("native_batch_norm",)),
    **dict.fromkeys("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention _scaled_dot_product_attention_math".split(), ("scaled_dot_product_attention",)),
}


def work(names):
    """Lists the operators that compute among those that ran: in place or not, and by whatever name."""
    done = set()
    for name in filter(computes, names):
        of, _, name = name.rstrip("_").rpartition("::")
        done.update("%s::%s" % (of, part) if of else part for part in PARTS.get(name, (name,)))
    return sorted(done)


def computes(name):
    name = name.split("::")[-1].rstrip("_")
    return name not in LAYOUT and not name.startswith(MAKERS)


def recorded(f):
    """Returns what a function returns, which operators that compute have run, and how many elements they gave."""
    recorder = Recorder()
    handler = getattr(Recorder.__torch_dispatch__, "__wrapped__", None)
    if handler is not None:  # PyTorch would import its compiler, of seconds, to exempt it
        handler.__dict__.setdefault("__dynamo_disable", handler)
    with recorder:
        v = f()
    return v, work(recorder.names), recorder.elements


class Follower(Recorder):
    """Records what other threads run, for as long as they do."""

    def __init__(self, into):
        super().__init__()
        self.names = into


def follow(into):
    """Has every thread that Python starts write the operators that it runs to a list, and nobody switch the
    record off but PyTorch's fake tensors, which compute nothing: a mode of dispatch is one of the thread that
    enters it."""
    begin = threading.Thread._bootstrap_inner

    def followed(self):
        with Follower(into):
            begin(self)

    threading.Thread._bootstrap_inner = followed
    OWN.add(followed.__code__)
    disable = getattr(torch._C, "_DisableTorchDispatch", None)
    if disable:
        fakes = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "in_kernel_invocation_manager", None)
        shapes = getattr(getattr(fakes, "__wrapped__", None), "__code__", None)
        torch._C._DisableTorchDispatch = lambda: disable() if getframe(1).f_code is shapes else contextlib.nullcontext()


def warm():
    """Imports what PyTorch does when it is first recorded, and what writes files then."""
    recorded(lambda: torch.zeros(1))


class Clock:
    """Has Python's clocks go on by hours between calls, and tells who reads them: an
    honest kernel that does takes differences within a call."""

    def __init__(self, asked, calendar):
        self.ahead, self.asked = 0, asked
        for name in CLOCKS:
            setattr(time, name, self.of(name, getattr(time, name), 10 ** 9 if name.endswith("_ns") else 1))
        timeit.default_timer = time.perf_counter
        if calendar:  # a class that is no longer the one of its name cannot be pickled
            datetime.datetime = self.calendar()

    def of(self, name, read, unit):
        def clock():
            self.asked(name)
            return read() + self.ahead * unit

        return clock

    def calendar(watched):
        """Returns a class in the place of datetime's, whose now is by the same clock."""
        real = datetime.datetime

        class Known(type):
            def __instancecheck__(cls, v):
                return isinstance(v, real)

            def __subclasscheck__(cls, c):
                return issubclass(c, real)

            def __call__(cls, *args, **kwargs):
                return real(*args, **kwargs) if cls is Calendar else super().__call__(*args, **kwargs)

        class Calendar(real, metaclass=Known):
            @classmethod
            def now(cls, tz=None):
                watched.asked("datetime.now")
                return real.now(tz) + datetime.timedelta(seconds=watched.ahead)

            @classmethod
            def utcnow(cls):
                watched.asked("datetime.utcnow")
                return real.utcnow() + datetime.timedelta(seconds=watched.ahead)

            today = now

        Calendar.__name__ = Calendar.__qualname__ = real.__name__
        return Calendar


OPEN = ("__file__", "__name__", "__class__", "__spec__")  # of any module, by which a program asks how it is run


class Looked(types.ModuleType):
    """A module of the judge's, which tells when a kernel looks into it."""

    watch = None

    def __getattribute__(self, name):
        watch = Looked.watch
        if name not in OPEN and watch is not None and watch.on and watch.wrote(getframe(1).f_code):
            watch.note("spies", "looks into a module of its judge's")
        return types.ModuleType.__getattribute__(self, name)


Looked.__module__, Looked.__name__, Looked.__qualname__ = "builtins", "module", "module"


class Watch:
    def __init__(self, file):
        self.file = os.path.realpath(file) if file else ""
        self.evidence, self.operators, self.shares, self.kept = [], [], [], []
        self.lent = []  # results in the memory of arguments, as kept ones are held
        self.record, self.on, self.calls, self.layer = False, False, 0, None
        self.sealed, self.builds, self.elements = False, "", 0
        self.ghosts, self.same, self.copied, self.foreign, self.formulas = 0, 0, False, False, False
        self.elsewhere, self.early = [], []  # operators of other threads; what a constructor did
        self.judges = []  # modules of ours
        self.clock = Clock(self.asks, mentions(self.file, b"datetime"))
        for name in DESCRIPTORS:
            setattr(os, name, self.guarded(name, getattr(os, name)))
        library = torch.library.Library
        library.impl = self.registering(library.impl)
        self.known, self.made, self.places = functions(), set(), {}
        self.there = []  # what modules had when they were looked at last
        self.left, self.patched = Left(self.file), Patched(self.file)
        sys.addaudithook(self.audit)

    def note(self, kind, text):
        if [kind, text] not in self.evidence:
            self.evidence.append([kind, text])

    def take(self):
        taken, self.evidence = self.evidence, []
        return taken

    # What Python tells of what runs (PEP 578).

    def audit(self, event, args):
        if self.on and (event == "ctypes.dlopen" and args[0] or event == "import" and args[1]) and built(args[event == "import"]):
            self.foreign = True
        if self.on and self.sealed and (event in OUTWARD or event == "open" and isinstance(args[2], int) and args[2] & WRITES):
            return self.outward(event, args)
        opened = self.on and (event == "open" or event in LISTS) and peeks(args[0])
        framed = event == "object.__getattr__" and self.on and args[1] in FRAMES
        beneath = event == "ctypes.dlsym" and self.on and args[1] in BENEATH and of_libc(args[0])
        if not self.on or not (opened or framed or beneath or event in SPYING):
            return
        self.on = False  # looking at frames is an event too
        if not (framed and formats(getframe(1))) and self.by_kernel(opened):
            self.note("spies", "opens %s" % args[0] if opened else "looks at its callers' frames" if framed else "calls libc's %s" % args[1] if beneath else SPYING[event])
        self.on = True

    def outward(self, event, args):
        """Notes what reaches beyond the process in a call: by the kernel itself, or by what builds it."""
        self.on = False
        frame = getframe(2)
        if frame.f_code.co_filename.startswith(IMPORTS):  # it keeps what it has compiled where it may
            self.on = True
            return
        frame = beyond(frame)
        if frame is not None and self.wrote(frame.f_code):
            self.note("spies", "writes the file %s" % args[0] if event == "open" else OUTWARD[event])
        elif not event.startswith("socket"):
            where = frame.f_code.co_filename if frame else "it"
            self.builds = "%s %s" % (where[where.rfind("-packages") + 10:] if "-packages" in where else where, "writes %s" % args[0] if event == "open" else OUTWARD[event])
        self.on = True

    def by_kernel(self, through):
        """Tells whether the kernel does it, by Python's library where that is looked through."""
        frame = beyond(getframe(2)) if through else getframe(2)
        while frame is not None and frame.f_code.co_filename in SAFE:
            frame = frame.f_back
        return frame is not None and self.wrote(frame.f_code)

    def wrote(self, code):
        """Tells whether code is of the kernel's file, or of a text that was made code while it ran."""
        name = code.co_filename
        if name not in self.places:  # every call looks at thousands
            self.places[name] = os.path.realpath(name) == self.file or not os.path.isabs(name) and not name.startswith(GENERATED)
        return self.places[name]

    def defined(self, kind):
        """Tells whether a class is of the kernel's file."""
        return kind.__module__ == os.path.basename(self.file).partition(".")[0]

    def guarded(self, name, f):
        """Returns a function of os that tells of a descriptor which is not the kernel's: Python tells of none."""

        def write(fd, *args, **kwargs):
            if self.on and isinstance(fd, int) and fd > 2 and self.wrote(getframe(1).f_code):
                self.note("spies", "writes to a descriptor by os.%s" % name)
            return f(fd, *args, **kwargs)

        return write

    def asks(self, name):
        if self.on and self.sealed and self.wrote(getframe(2).f_code):
            self.note("clock", "reads %s" % (name if "." in name else "time." + name))

    # The import of the kernel's file.

    def imports(self):
        self.known, self.judges = functions(), [m for m in sys.modules.values() if ours(m)]
        self.patched.begin(self.known, (*PATCHED, *FOREIGN))
        self.made = {f for owner in self.looked() for f in list(vars(owner).values()) if type(f) is FUNCTION and self.wrote(f.__code__)}
        Looked.watch = self
        for m in [sys.modules["__main__"], *self.judges]:
            m.__class__ = Looked
        self.on = True
        return len(threads_of())

    def imported(self, before):
        self.on = False
        self.patches("when it was imported")

    def patches(self, when):
        held = [list(vars(owner).values()) for owner in (*PATCHED.values(), *self.looked()[:-1])]
        if len(held) != len(self.there) or not all(len(a) == len(b) and all(map(operator.is_, a, b)) for a, b in zip(held, self.there)):
            self.replaced(when)
            self.there = held
        self.watched(when)

    def replaced(self, when):
        """Looks at what is another function than before, or a new one."""
        now = functions()
        for name, f in self.known.items():
            if now.get(name) is not f and not installed(now.get(name)):
                self.note("patches", "replaces %s %s" % (name, when))
        for name in now.keys() - self.known.keys():
            if name.startswith("torch.Tensor.") and hasattr(INHERITED, name[13:]) and not installed(now[name]):
                self.note("patches", "replaces %s %s" % (name, when))
        self.known = now
        for owner in self.looked()[:-1]:
            self.owned(owner, when)

    def owned(self, owner, when):
        for k, f in list(vars(owner).items()):
            if type(f) is FUNCTION and f not in self.made and self.wrote(f.__code__):
                Watch.note(self, "patches", "replaces %s.%s %s" % (getattr(owner, "__name__", "the judge"), k, when))

    def watched(self, when):
        self.owned(self, when)
        for m in modes():
            if any(type(f) is FUNCTION and self.wrote(f.__code__) for c in type(m).__mro__ for f in vars(c).values()):
                self.note("patches", "leaves a mode of its own that alters what PyTorch's functions do: %s" % type(m).__name__)
        self.left.look(self, when)
        self.patched.look(self, when)

    def looked(self):
        """Lists what has no function of a kernel's: modules, and the watch."""
        return [*(sys.modules[name] for name in FOREIGN if name in sys.modules), *self.judges, self]

    def registering(self, register):
        """Returns a function of torch.library that tells of an operator of PyTorch's own."""

        def impl(library, name, *args, **kwargs):
            frame, made = getframe(1), getattr(args[0] if args else None, "__code__", None)
            lazily = False  # PyTorch adds what it has of its own, as where vmap is first used
            while frame is not None and frame.f_code.co_filename.startswith(OF_TORCH):
                lazily = lazily or made is not None and made.co_filename.startswith(OF_TORCH) and "/torch/_library/" not in frame.f_code.co_filename and not frame.f_code.co_filename.endswith("/torch/library.py")
                frame = frame.f_back
            if self.on and library.ns in ("aten", "prims") and not lazily and frame is not None and self.wrote(frame.f_code):
                self.note("patches", "replaces the operator %s::%s" % (library.ns, str(name).rpartition("::")[2]))
            return register(library, name, *args, **kwargs)

        return impl

    # A call.

    def prepare(self, record, order, seed, still=False, work=0):
        self.record = record
        self.clock.ahead = 0 if still else HOUR * self.calls
        if self.layer:
            self.layer.prepare(order, seed, work)
        self.operators, self.shares, self.evidence, self.early, self.builds = [], [], self.early, [], ""
        self.lent = []  # the memory is the judge's again
        moved = [r for r, was, _ in self.kept if bytes_of(r) != was]
        if moved:
            if all(map(borrowed, moved)):
                self.note("buffer", "returns memory that is others' later")
            else:
                self.note("later", "changes its result after it has returned it")
            self.kept = [(r, bytes_of(r), call) for r, _, call in self.kept]

    def lends(self, v, args, kwargs):
        """Says in the memory of which arguments the results of a reference lie."""
        given = [t for a in (*args, *kwargs.values()) for t in tensors(a)]
        self.shares = [k for r in tensors(v) for k, t in enumerate(given) if overlap(r, t)]

    def call(self, kernel, args, kwargs, run=None):
        run = run or kernel
        given = [t for a in (*args, *kwargs.values()) for t in tensors(a)]
        self.calls += 1
        threads = set(threads_of())
        self.on = True
        try:
            if self.record:
                del self.elsewhere[:]
                v, operators, self.elements = recorded(lambda: run(*args, **kwargs))
                self.operators = sorted({*operators, *work(self.elsewhere)})
            else:
                v = run(*args, **kwargs)
        except BaseException as e:
            self.on = False
            self.note("raises", self.told(e))
            if isinstance(e, ENDINGS) or not isinstance(e, Exception) and self.defined(type(e)):
                self.note("exits", "ends its process instead of returning: %s" % type(e).__name__)
            if not isinstance(e, Exception):
                raise RuntimeError("the kernel raised %s" % type(e).__name__) from None
            raise
        finally:
            self.on = False
        left = [t for t in set(threads_of()) - threads if not idle(t)]
        plain = [t for t in tensors(v) if type(t) in (Tensor, Parameter)]  # what another class says of itself is its own word
        self.copied = any(t.requires_grad for t in plain) and all(map(copies, plain))
        self.formulas = any(isinstance(f, FORMULA) for t in plain for f in nodes(t))
        self.result(kernel, v, given)
        for t in left:  # after the result is held
            if not rests(t):
                self.note("late", "leaves a thread at work: %s" % t.name)
        if self.layer and self.ghosts < GHOSTS:
            self.without_launches(kernel, args, kwargs, v)
        return v

    def launches(self):
        return self.layer.launches if self.layer else 0

    def programs(self):
        return self.layer.programs if self.layer else 0

    def work(self):
        return self.layer.work if self.layer else 0

    def all_programs(self):
        return self.layer.all if self.layer else 0

    def without_launches(self, kernel, args, kwargs, v):
        """Calls the kernel again with launches that do nothing: what is the same then, they did not compute."""
        if not self.layer.launches or self.shares or max([0, *(t.numel() for t in tensors(v))]) < TELLING:
            return
        if not any(bytes_of(t).strip(b"\0") for t in tensors(v)):
            return  # launches that leave out what is no whole block give zeros, which are right for zeros
        self.layer.ghost = True
        try:
            w = kernel(*args, **kwargs)
        except Exception:
            return
        finally:
            self.layer.ghost = False
        if any(overlap(a, b) for a in tensors(w) for b in tensors(v)):
            return  # one buffer for all results: what is there are the first call's
        self.ghosts += 1
        self.same += [bytes_of(t) for t in tensors(w)] == [bytes_of(t) for t in tensors(v)]
        if self.same == self.ghosts == GHOSTS:
            self.note("decoy", "its result is the same where the kernel's launches do nothing")

    def result(self, kernel, v, given):
        for r in tensors(v):
            if type(r) is not Tensor and type(r) is not Parameter:
                self.note("class", "returns a %s.%s, not a torch.Tensor" % (type(r).__module__, type(r).__qualname__))
                continue
            shares = [k for k, t in enumerate(given) if overlap(r, t)]
            self.shares += shares
            if not kernel.owns_results and any(overlap(r, old) for old, _, call in self.kept if call != self.calls) and not self.shares:
                self.note("buffer", "returns the memory of an earlier result")
            held = bytes_of(r)
            if len(held) >= 16 and held.count(POISON) == len(held):
                self.note("unwritten", "returns memory that it has never written to")
            (self.lent if shares else self.kept).append((r.detach(), held, self.calls))
        self.kept = [k for k in self.kept if k[2] > self.calls - KEPT]

    def later(self):
        """Looks again at what was returned, and returns the evidence."""
        self.left.collect(self.calls)
        if any(bytes_of(r) != was for r, was, _ in self.lent):
            self.note("later", "changes its result after it has returned it")
            self.lent = []
        for r, was, call in self.kept:
            if bytes_of(r) != was:
                if call == self.calls:
                    self.note("later", "changes its result after it has returned it")
                else:
                    self.note("buffer", "a later call changes an earlier result")
        self.kept = [(r, bytes_of(r), call) for r, _, call in self.kept]
        self.patches("while it ran")
        return self.take()

    def held(self):
        """Lists the results that are kept of the last call, with their bytes."""
        return [(r, bytes_of(r)) for r, _, call in self.kept if call == self.calls]

    def overwritten(self, held):
        """Notes which results a backward pass has changed: those that it keeps are its caller's too."""
        if any(bytes_of(r) != was for r, was in held):
            self.note("overwrites", "its backward pass overwrites its result")
            self.kept = [(r, bytes_of(r), call) for r, _, call in self.kept]

    def told(self, e):
        """Returns an exception with the last line of the kernel's file on its way."""
        lines = "".join(format_only(type(e), e)).strip().splitlines()
        text = lines[-1] if isinstance(e, SyntaxError) else headline(lines)
        lines = [f for f in extract_tb(e.__traceback__) if os.path.realpath(f.filename) == self.file]
        if not lines:
            return text
        code = lines[-1].line
        return "%s (%s:%d: %s)" % (text, os.path.basename(self.file), lines[-1].lineno, code if len(code) <= WIDTH else code[:WIDTH] + " …")


WIDTH = 80  # of a line of code in a message


def headline(lines):
    """Returns the first line of an exception, or what a compiler said in it in the place of its command."""
    errors = [line.partition(": error: ") for line in lines if ": error: " in line]
    said = ["%s: %s" % (os.path.basename(place.strip()), what) for place, _, what in errors[:3]]
    return "%s: %s" % (lines[0].split(": [1/")[0], "; ".join(said)) if said else lines[0]


def modes():
    """Lists the modes that alter what functions and operators do, of those that are entered."""
    return [*torch.overrides._get_current_function_mode_stack(), *python_dispatch._get_current_dispatch_mode_stack()]


def beyond(frame):
    """Returns the frame that Python's own library works for."""
    while frame is not None and frame.f_code.co_filename.startswith((STANDARD, "<frozen")) and not any(p in frame.f_code.co_filename for p in PACKAGES):
        frame = frame.f_back
    return frame


def formats(frame):
    """Tells whether traceback writes its own text: a kernel gets no frame of it."""
    return all(f is not None and f.f_code.co_filename == TRACEBACK for f in (frame, frame.f_back))


def peeks(path):
    """Tells whether a path is one of /proc that says something of a process."""
    if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
        return False  # a descriptor
    path = realpath(os.fsdecode(path or "."))
    first = path[6:].split("/")[0]
    return path == "/proc" or path.startswith("/proc/") and (first.isdigit() or first in ("self", "thread-self"))


FUNCTION = type(lambda: None)
HERE = os.path.dirname(os.path.realpath(__file__))


def of_libc(library):
    """Tells whether names of a library of ctypes are those of libc: a kernel's own may have a read."""
    name = getattr(library, "_name", None)
    return not name or os.path.basename(str(name)).startswith("libc.")


@functools.lru_cache(None)  # every call looks at all modules
def here(place):
    return os.path.dirname(os.path.realpath(place)) == HERE


def ours(module):
    place = getattr(module, "__dict__", {}).get("__file__")
    return type(place) is str and here(place)


def functions():
    """Lists the functions that a judge, or others, might call."""
    return {"%s.%s" % (name, k): v for name, owner in PATCHED.items() for k, v in list(vars(owner).items()) if callable(v) and (owner is Tensor or not k.startswith("__"))}


def installed(f):
    """Tells whether a function is of an installed package, some of which load parts of themselves late. What a
    kernel's function says of its module, or which one it says to wrap, is its own word."""
    code = getattr(f, "__code__", None)
    if code is not None:
        return any(p in code.co_filename for p in PACKAGES)
    return str(getattr(f, "__module__", None)).split(".")[0] == "torch"


OWN = set()  # code of ours that stands below a thread's
WAITING = {("threading.py", "wait"), ("thread.py", "_worker"), ("queue.py", "get"), ("connection.py", "_recv"), ("selectors.py", "select")}


def idle(t):
    """Tells whether a thread waits for work, as one of a pool does: in Python's library alone."""
    frame = frames_of().get(t.ident)
    if frame is None or isinstance(t, threading.Timer):
        return frame is None  # it has ended
    return (os.path.basename(frame.f_code.co_filename), frame.f_code.co_name) in WAITING and library(frame)


def library(frame):
    """Tells whether a thread is in Python's own library alone."""
    while frame is not None:
        name = frame.f_code.co_filename
        if frame.f_code not in OWN and (not name.startswith((STANDARD, "<frozen")) or any(p in name for p in PACKAGES)):
            return False
        frame = frame.f_back
    return True


def rests(t):
    """Tells whether a thread comes to wait before it computes anything: one of a pool, whose result is there a moment before."""
    for _ in range(GRACE):
        if idle(t):
            return True
        if not library(frames_of().get(t.ident)):
            return False
        pause(0.001)
    return False


COPIES = ("Clone", "Copy", "ToCopy", "View", "UnsafeView", "ReshapeAlias", "AsStrided", "Expand", "Transpose", "Permute", "T", "Alias", "Contiguous", "Squeeze", "Unsqueeze", "Slice", "Select")


FORMULA = torch.autograd.function.BackwardCFunction  # a gradient that the kernel states itself


def nodes(t):
    """Lists what differentiates a tensor, nearest first, to its leaves or to the last of so many: PyTorch 2 overflows
    the stack when it frees a graph of some ten thousands in a row that Python has seen."""
    waiting, seen = [t.grad_fn] if t.grad_fn is not None else [], set()
    for f in waiting:
        if f in seen or type(f).__name__ == "AccumulateGrad":
            continue
        seen.add(f)
        yield f
        if len(seen) == SEEN:
            return
        waiting += [g for g, _ in f.next_functions if g is not None]


def copies(t):
    """Tells whether the gradient of a tensor is that of a copy: what was written to the copy, autograd does not know."""
    names = (type(f).__name__ for f in nodes(t))
    return all(name.rstrip("0123456789").replace("Backwards", "Backward").rpartition("Backward")[0] in COPIES or name == "CopySlices" for name in names)


def built(path):
    """Tells whether a library is one that a kernel has brought along or built."""
    if os.sep not in str(path):
        return False
    path = os.path.realpath(str(path))
    return ".so" in os.path.basename(path) and not path.startswith((STANDARD, "/usr/", "/lib")) and not any(p in path for p in PACKAGES)


def tensors(v):
    if isinstance(v, Tensor):
        return [v]
    if isinstance(v, dict):
        v = v.values()
    elif not isinstance(v, (list, tuple)):
        return []
    return [t for e in v for t in tensors(e)]


def span(t):
    """Returns the addresses that a tensor's elements lie between."""
    if t.numel() == 0 or t.layout is not torch.strided:
        return 0, 0
    start = t.data_ptr()
    return start, start + (1 + sum((d - 1) * s for d, s in zip(t.shape, t.stride()))) * t.element_size()


def borrowed(t):
    """Tells whether a tensor lies in memory that is not PyTorch's own, as what a kernel has freed."""
    return hasattr(t, "untyped_storage") and not t.untyped_storage().resizable()


def bytes_of(t):
    start, end = span(t)
    return string_at(start, end - start) if start else b""


def overlap(a, b):
    (a0, a1), (b0, b1) = span(a), span(b)
    return a0 < b1 and b0 < a1
