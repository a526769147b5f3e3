"""How long calls take: their arguments are laid out first, all calls are then made at once, and
what they gave is looked at afterwards.

What is used here is taken before the kernel's file is imported. The judge's own clock runs around
the request in which the calls are made, and bounds what the clock here says.
"""

import ctypes
from time import perf_counter_ns as now

import torch

libc = ctypes.CDLL(None)
mallopt = getattr(libc, "mallopt", None)  # of glibc
PERTURB = -6  # M_PERTURB
POISON = 129  # what MALLOC_PERTURB_ says in a kernel's process: see Environment of internal/onekernel
ZEROS = 255  # of which malloc fills with the complement
SCALES = 1021  # of values in calls that nobody looks at
FLUSHED = 1 << 26  # bytes that are written so that caches hold nothing else

no_grad, is_tensor, empty_strided = torch.no_grad, torch.is_tensor, torch.empty_strided
memset = ctypes.memset


class Timing:
    def __init__(self, threads):
        self.threads = threads  # lists Python's
        self.kernel, self.held, self.calls, self.results = None, {}, [], []
        self.next = None  # as what the arguments of the next call are held
        self.flushed = None

    def hold(self, kernel, args, kwargs):
        """Keeps a copy of the arguments of a call, where that was asked for."""
        if self.next is not None:
            self.kernel, self.held[self.next] = kernel, (list(getattr(kernel, "out", ())), copied(args), copied(kwargs))
            self.next = None

    def lay(self, order, turns, cold):
        """Makes the arguments of calls, of held ones in this order, in memory of their own; those with a turn have other values."""
        self.calls, self.results = [], []
        for k, turn in zip(order, turns):
            out, args, kwargs = self.held[k]
            self.calls.append((blank(out), copied(args, turn), copied(kwargs, turn)))
        if cold:
            self.flushed = self.flushed or ctypes.create_string_buffer(FLUSHED)
            memset(self.flushed, len(order) & 0xFF, FLUSHED)

    def go(self, n):
        """Makes n of the calls and returns the nanoseconds that all took."""
        launch, calls, results, before = self.kernel.launch, self.calls[:n], [], set(self.threads())
        perturb(0)
        try:
            with no_grad():
                t = now()
                for out, args, kwargs in calls:
                    results.append(launch(out, args, kwargs))
                t = now() - t
        finally:
            perturb(POISON)
        self.results = results
        return {"ns": t, "threads": len([x for x in self.threads() if x not in before])}


def perturb(value):
    """Has malloc fill new memory, which takes time, or not."""
    if mallopt:
        mallopt(PERTURB, value)


def copied(v, turn=0):
    if is_tensor(v):
        t = empty_strided(v.shape, v.stride(), dtype=v.dtype)
        with no_grad():
            spread(t).copy_(turned(spread(v), turn))
        return t
    if isinstance(v, dict):
        return {name: copied(e, turn) for name, e in v.items()}
    return type(v)(copied(e, turn) for e in v) if type(v) in (list, tuple) else v


def turned(v, turn):
    """Returns floats of another order and scale, by a number that says which: of the same signs, none larger."""
    if not turn or not v.is_floating_point() or not v.numel():
        return v
    return v.flatten().roll(turn % v.numel()).mul(1 - turn % SCALES / (2 * SCALES)).view(v.shape)


def spread(t):
    """Returns the elements that are places of their own."""
    for axis, stride in enumerate(t.stride()):
        if stride == 0 and t.shape[axis] > 1:
            t = t.narrow(axis, 0, 1)
    return t


def blank(out):
    """Returns memory for results that holds no number."""
    return [t.clone().fill_(float("nan")) if t.is_floating_point() else t.clone() for t in out]
