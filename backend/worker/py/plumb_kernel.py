"""One kernel as the subject: a user's function in the place of one that a program calls.

The environment says which (plumb_forms.py loads it). In the role "candidate" the
kernel is watched while it runs (plumb_watch.py) and its arguments lie in memory of
their own (plumb_room.py); in the role "reference" it is traced for error bounds.
"""

import atexit
import json
import math
import os
import sys
import traceback

import plumb_forms
import plumb_modes
import plumb_problems  # noqa: F401  a form
import plumb_tasks  # noqa: F401  a form
import plumb_sandbox
import plumb_torch
import plumb_triton
import plumb_tritonptx
import torch
from plumb_borrowed import Borrowed
from plumb_names import Refusal, Unsupported
from plumb_opinfo import Left
from plumb_room import Room, tell_faults
from plumb_threads import Threads, having
from plumb_timing import Timing
from plumb_traced import Trace, Traced, flat, indexed
from plumb_watch import Watch, follow, mentions, recorded, threads_of, warm

SPEC = json.loads(os.environ["PLUMB_WORKER_KERNEL"])
ON_TRIAL = SPEC["role"] == "candidate"
SEED = 42  # that many a harness sets
CORES = 2  # threads of PyTorch's in some calls of a kernel that may ask how many there are
EXAMPLES = 1 << 16  # elements of an example whose range is told
COMPILERS = (b"numba", b"jax", b"triton", b"torch.compile", b"dynamo", b"helion", b"tilelang", b"taichi", b"cupy", b"jit")  # at work in a first call, or slow interpreters
ASKING = (b"environ", b"getenv", b"sys.", b"import sys", b"modules", b"argv", b"__main__", b"faulthandler", b"dispatch_mode", b"initial_seed")
MARKS = (b"interpret", b"INTERPRET", b"environ", b"getenv")  # in what may tell Triton's interpreter from a GPU
REPEATED = ("function", "operator", "library")  # forms that keep no state
BETWEEN = 3  # calls before whose backward pass another call is made

class Trial(plumb_torch.Run):
    """A case whose inputs lie in memory of their own, and whose results are taken at once."""

    late = False

    def unnoticed(self, f, args):
        """A kernel may change any of its arguments without PyTorch's counting it."""
        return [(k, x) for k, x in enumerate(self.env) if isinstance(x, torch.Tensor)]

    def differentiate(self, indices, cotangents):
        given = [(x, self.elements(x)) for x in self.env[:len(self.case["inputs"])]] if ON_TRIAL else ()
        if ON_TRIAL:
            subject.call_between()
            cotangents = [laid(c, subject.cotangents) for c in cotangents]
        weights = [(c, self.elements(c)) for c in cotangents] if ON_TRIAL else ()
        held = subject.watch.held() if ON_TRIAL else ()
        try:
            super().differentiate(indices, cotangents)
        except Exception:
            raise
        except BaseException as e:  # as in the forward pass: Triton's layer stops a call that is too slow
            raise RuntimeError("the kernel raised %s" % type(e).__name__) from None
        subject.watch.overwritten(held)
        if any(self.elements(c) != was for c, was in weights):
            subject.watch.note("overwrites", "its backward pass overwrites the gradient that it is given")
        for k, (x, was) in enumerate(given):
            if self.elements(x) != was:
                subject.watch.note("overwrites", "its backward pass overwrites argument %d" % k)

    def inputs(self):
        super().inputs()
        if not ON_TRIAL:
            return
        for k, (x, entry) in enumerate(zip(self.env, self.case["inputs"])):
            placed = subject.room.place(k, x.detach())
            self.env[k] = placed.requires_grad_() if entry[4] else placed
        self.versions = [plumb_torch.version(x) for x in self.env]
        self.leaves = [x for x, entry in zip(self.env, self.case["inputs"]) if entry[4]]


def marks(told):
    return told["marks"] if told else ""


class Subject:
    """The kernel, loaded when it is first asked for: what it prints or raises then is its own."""

    def __init__(self):
        self.kernel = None
        self.files = plumb_forms.places(SPEC)
        self.room, self.watch, self.timing = Room(), Watch(self.files[0] if self.files else ""), Timing(threads_of)
        self.threads, self.borrowed = Threads(), Borrowed(self.watch, SPEC)
        self.cotangents = ""  # how they lie in memory
        self.timed = None  # the timed call whose result is that of the next one
        self.recording = True  # the operators of a reference's call, which takes as long again
        self.asks_threads, self.cores, self.frozen = False, 1, False  # threads of PyTorch's in the next call; it is made under no_grad
        self.between, self.last = 0, ((), {})  # calls between a call and its backward pass; arguments of the last call
        self.sandbox = plumb_sandbox.Sandbox(os.environ.get("PLUMB_WORKER_FOLDER"))
        if not ON_TRIAL:
            plumb_sandbox.hide()
        elif self.sandbox.folder:
            self.sandbox.begin()
        if ON_TRIAL:
            follow(self.watch.elsewhere)
        plumb_torch.targets[SPEC["target"]] = self.call

    def describe(self, told):
        if self.kernel is None:
            try:
                if ON_TRIAL:
                    self.watch.layer = plumb_forms.layer(self.files, self.watch)
                    if marks(told) == "compiled" and self.watch.layer:
                        plumb_triton.unmark()
                before = self.watch.imports()
                if ON_TRIAL:
                    plumb_sandbox.unnamed(self.files, self.watch.judges)
                    if marks(told) == "all of them":
                        plumb_sandbox.named()
                        torch.manual_seed(SEED)
                self.kernel = plumb_forms.load(SPEC)
                if ON_TRIAL:
                    tell_faults(self.room)
                    self.threads.look()
                    self.asks_threads = self.mentions((b"num_threads",))
            except Refusal as e:
                return {"mistake": str(e)}
            except BaseException as e:
                self.watch.imported(before)
                return {"failed": self.watch.told(e), "evidence": self.watch.take()}
            self.watch.imported(before)
        try:
            return dict(self.kernel.describe(), evidence=self.watch.take(), compiles=any(mentions(self.watch.file, word) or word.decode() in sys.modules for word in COMPILERS),
                        marks=bool(self.watch.layer) and self.mentions(MARKS), asks=self.mentions(ASKING), ends=self.mentions((b"atexit",)), threads=self.threads.any())
        except Exception as e:  # what it is asked to be, such as a ModelNew, is not there
            return {"error": self.watch.told(e)}

    def mentions(self, words):
        return any(mentions(file, word) for file in self.files for word in words)

    def seal(self, told):
        """Takes what a call need not have."""
        warm()
        if self.sandbox.folder:
            self.sandbox.seal(told["builds"])
        self.watch.sealed = True
        return self.sandbox.told()

    def again(self):
        """Loads a reference whose process took the place of one that gave no answer."""
        if self.kernel is None and not ON_TRIAL:
            self.describe(None)

    def shape(self, told):
        """Makes a problem's model of given sizes, or a candidate's of given arguments."""
        self.again()
        sealed, self.watch.sealed, self.watch.on = self.watch.sealed, False, ON_TRIAL  # a constructor may build
        try:
            return self.kernel.shape(told)
        except Exception as e:
            return {"error": self.watch.told(e)}
        finally:
            self.watch.sealed, self.watch.on = sealed, False
            self.watch.early += self.watch.take()

    def prepare(self, told):
        self.timed, self.cotangents = told.get("timed"), told.get("cotangents", "")
        self.threads.many = told.get("threads", False) and SPEC["form"] in REPEATED
        self.cores, self.frozen = CORES if self.asks_threads and told.get("cores") else 1, told.get("frozen", False)
        self.room.prepare("start" if self.watch.layer else told.get("guard", ""), told.get("reuse", False), told.get("names", ()), told.get("ordinary", False))  # Triton's own bounds are exact
        self.watch.prepare(told.get("record", False), told.get("order", ""), told.get("seed", 0), told.get("still", False), told.get("work", 0))
        if self.kernel is not None:
            self.kernel.prepare(told)
            if ON_TRIAL and getattr(self.kernel, "out", None):
                self.kernel.out = [self.room.place("out%d" % i, t) for i, t in enumerate(self.kernel.out)]
        return {}

    def observe(self, _):
        return {"evidence": self.watch.later() if ON_TRIAL else [], "operators": self.watch.operators, "shares": self.watch.shares, "launches": self.watch.launches(), "copied": self.watch.copied, "formulas": self.watch.formulas, "foreign": self.watch.foreign or self.watch.launches() > 0, "builds": self.watch.builds, "programs": self.watch.programs(), "threads": self.threads.many and self.threads.any(), "work": self.watch.work(), "all_programs": self.watch.all_programs(), "elements": self.watch.elements}

    def finish(self, _):
        """Does what the kernel has left to the end of its process, and tells whether that is there yet."""
        atexit._run_exitfuncs()
        return {}

    def record(self, told):
        self.recording = told
        return {}

    def launched(self, _):
        """Tells what a compiler needs to know of the launches so far."""
        return {"launches": list(self.watch.layer.compiled.values()) if self.watch.layer else []}

    def forget(self, _):
        """Leaves what the last call was the first to launch out of that: its reference has refused it."""
        if self.watch.layer:
            self.watch.layer.forget()
        return {}

    def compile(self, told):
        try:
            return plumb_tritonptx.compile_all(SPEC, told["launches"])
        except Exception as e:
            return {"error": self.watch.told(e)}

    def time(self, told):
        """Has the next call held, lays held ones out, or makes these."""
        if "hold" in told:
            self.timing.next = told["hold"]
        elif "lay" in told:
            self.timing.lay(told["lay"], told["turns"], told["cold"])
            if self.watch.layer:
                self.watch.layer.prepare("forward", 0)
        else:
            return self.go(told["go"])
        return {}

    def go(self, n):
        self.watch.on = ON_TRIAL
        try:
            told = self.timing.go(n)
        except BaseException as e:
            return {"error": self.watch.told(e)}
        finally:
            self.watch.on = False
        if told["threads"] > 0:
            self.watch.note("late", "leaves a thread at work")
        return dict(told, evidence=self.watch.take())

    def opcheck(self, told):
        """Runs PyTorch's own tests of a registered operator on calls that are held."""
        if not hasattr(torch.library, "opcheck"):
            return {"lacks": "torch %s has no torch.library.opcheck" % torch.__version__}
        failed = []
        for k, gradients in told["calls"]:
            out, args, kwargs = self.timing.held[k]
            args, kwargs = [*map(torch.zeros_like, out), *leaves(args, gradients)], leaves(kwargs, gradients)
            try:
                found = torch.library.opcheck(self.kernel.f, tuple(args), kwargs, raise_exception=False)
            except Exception as e:
                found = {"opcheck": e}
            failed += [[k, name, "%s: %s" % (type(e).__name__, e)] for name, e in found.items() if isinstance(e, Exception)]
        return {"failed": failed}

    def call(self, *args, **kwargs):
        if self.timed is not None:
            return plumb_forms.listed(self.timing.results[self.timed])
        self.again()
        args, kwargs = self.kernel.bind(args, kwargs)
        self.timing.hold(self.kernel, args, kwargs)
        if ON_TRIAL:
            self.last = args, kwargs
            try:
                with torch.set_grad_enabled(not self.frozen):
                    return plumb_forms.listed(self.watch.call(self.kernel, args, kwargs, having(self.cores, self.borrowed.of(self.threads.of(self.kernel)))))
            finally:
                for text in self.room.spilt():
                    self.watch.note("memory", text)
        if not self.recording:
            return plumb_forms.listed(self.kernel(*args, **kwargs))
        v, self.watch.operators, self.watch.elements = recorded(lambda: self.kernel(*args, **kwargs))
        self.watch.lends(v, args, kwargs)
        return plumb_forms.listed(v)

    def call_between(self):
        """Calls a function with other values before the backward pass of a call, as two layers of one network
        do: what it keeps for that pass is to be of the call."""
        if self.between >= BETWEEN or SPEC["form"] not in REPEATED[:2]:
            return
        self.between += 1
        args, kwargs = self.last
        try:
            self.kernel(*[turned(v) for v in args], **{name: turned(v) for name, v in kwargs.items()})
        except BaseException:  # it is no call that has to succeed
            pass

    def trace(self, told):
        """Writes what the reference calls, given inputs of these dtypes and shapes, as a program."""
        tensors = [example(dtype, shape) for dtype, shape in told["inputs"]]
        given = [plumb_torch.adapter.decode(a, tensors) for a in told["args"]]
        kwargs = {name: plumb_torch.adapter.decode(a, tensors) for name, a in told.get("kwargs", {}).items()}
        text = Trace(tensors)
        self.again()
        args, kwargs = self.kernel.bind(given, kwargs)
        try:
            with indexed(), Traced(text):
                v = plumb_forms.listed(self.kernel(*args, **kwargs))
            results = [text.tensor(r) for r in flat(v) if not isinstance(r, str)]
        except (Left, Unsupported) as e:
            return {"error": str(e)}
        except Exception as e:
            return {"error": self.watch.told(e)}
        return {"program": text.head + "".join(text.inputs + text.lines), "results": results}


def leaves(v, gradients):
    """Returns arguments whose float tensors require a gradient, or do not."""
    if isinstance(v, dict):
        return {name: leaves(e, gradients) for name, e in v.items()}
    if isinstance(v, (list, tuple)):
        return type(v)(leaves(e, gradients) for e in v)
    return v.detach().requires_grad_(gradients and (v.is_floating_point() or v.is_complex())) if isinstance(v, torch.Tensor) else v


def laid(c, layout):
    """Returns a cotangent in another layout; expanded, it is one of equal elements, and the memory has others."""
    if layout == "transposed" and c.dim() > 1:
        return c.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "transposed" and c.dim() == 1:
        return torch.stack((c, c * math.nan), -1)[:, 0]
    if layout == "expanded" and c.numel() > 1:
        memory = c.flatten() * math.nan
        memory[0] = c.flatten()[0]
        return memory.as_strided(c.shape, (0,) * c.dim())
    return c


def turned(v):
    """Returns an argument whose elements are those of another one's, from the last to the first."""
    if not isinstance(v, torch.Tensor) or not (v.is_floating_point() or v.is_complex()):
        return v
    return v.detach().flatten().flip(0).view(v.shape).requires_grad_(v.requires_grad)


def example(dtype, shape):
    d = getattr(torch, dtype)
    return torch.rand(shape, dtype=torch.float64).to(d) if d.is_floating_point or d.is_complex else torch.zeros(shape, dtype=d)


subject = Subject()
REQUESTS = {"describe", "seal", "shape", "prepare", "observe", "record", "finish", "launched", "forget", "compile", "trace", "time", "opcheck"}


class Kernel(plumb_modes.PyTorch):
    """PyTorch with the kernel in one place."""

    def hello(self):
        return dict(super().hello(), modes=["eager"])

    def run_of(self, mode):
        return Trial

    def kernel(self, request):
        (what, told), = request.items()
        return getattr(subject, what)(told) if what in REQUESTS else {"error": "no request %r" % what}
