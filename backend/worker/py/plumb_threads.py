"""Native code that has threads at work: some calls are made often, so that a race shows.

A process that hosts a kernel has one thread else. Two of OpenMP's work at one time where they are
awake, which they are for a moment after a call; threads that code starts itself take as long to
start as much of what they do. Of equal calls the result that is farthest from the others counts.
"""

import ctypes
import os
import re
import time

import torch

RUNTIME = re.compile(r"lib[gi]?omp[^/]*\.(so|dylib)")
FORKS = (b"GOMP_parallel", b"__kmpc_fork_call")
STARTS = (b"pthread_create", b"thrd_create", b"_ZNSt6thread")
PACKAGES = re.compile(r"^/(usr/)?lib|/(site|dist)-packages/")  # what has threads there is no kernel
WAKING, REST = 8, 0.005  # calls before the one that counts, at least; seconds after which threads sleep
MOST, LONGEST, ALL = 512, 0.15, 3.0  # calls at most, and processor seconds in which they begin; of all calls together
KEPT = 1 << 24  # elements of results that are compared
LARGEST = 1 << 26  # bytes of a library that is looked through
set_threads, pause, clock = torch.set_num_threads, time.sleep, time.process_time


def mapped():
    """Returns the files of libraries in this process, where the system tells."""
    try:
        with open("/proc/self/maps") as f:
            return {line.split(None, 5)[5].strip() for line in f if "/" in line}
    except OSError:
        return set()


def mentioned(path, words):
    """Tells whether a library, and no runtime of OpenMP, has one of some words."""
    if RUNTIME.search(os.path.basename(path)):
        return False
    try:
        if os.path.getsize(path) > LARGEST:
            return False
        with open(path, "rb") as f:
            text = f.read()
    except OSError:
        return False
    return any(word in text for word in words)


def forks(path):
    """Tells whether a library forks threads by OpenMP."""
    return mentioned(path, FORKS)


def starts(path):
    """Tells whether a library of a kernel's own starts threads."""
    return not PACKAGES.search(path) and mentioned(path, STARTS)


class Threads:
    """What a kernel has brought that has threads."""

    def __init__(self):
        self.before, self.runtimes = mapped(), []
        self.own = False  # it starts threads
        self.many = False  # in the next call
        self.spent = 0.0  # seconds of calls that do not count

    def look(self):
        """Keeps the runtimes, once the kernel has been imported, if it forks."""
        now = mapped()
        if any(map(forks, now - self.before)):
            self.runtimes = [ctypes.CDLL(path).omp_set_num_threads for path in sorted(now) if RUNTIME.search(os.path.basename(path))]
        self.own = any(map(starts, now - self.before))

    def any(self):
        return self.own or bool(self.runtimes)

    def of(self, kernel):
        """Returns a kernel as it is to be called."""
        return self.at_once(kernel) if self.many and self.any() else kernel

    def at_once(self, kernel):
        def call(*args, **kwargs):
            found, n, begun = [], 0, clock()
            self.have(2)
            try:
                while n < WAKING or n < MOST and clock() - begun < min(LONGEST, ALL - self.spent):
                    n += 1
                    try:
                        v = kernel(*[copied(a) for a in args], **{name: copied(a) for name, a in kwargs.items()})
                    except Exception:  # the call itself raises as well
                        break
                    found.append([t.detach().clone(memory_format=torch.contiguous_format) for t in tensors(v)])
                self.spent += clock() - begun
                v = kernel(*args, **kwargs)
                farthest(tensors(v), found)
                return v
            finally:
                self.have(1)
                pause(REST)
        return call

    def have(self, n):
        if self.runtimes:
            set_threads(n)
        for of in self.runtimes:
            of(n)


def having(n, f):
    """Returns a function in which PyTorch has so many threads."""
    if n == 1:
        return f

    def call(*args, **kwargs):
        set_threads(n)
        try:
            return f(*args, **kwargs)
        finally:
            set_threads(1)
    return call


def tensors(v):
    if isinstance(v, (list, tuple)):
        return [t for a in v for t in tensors(a)]
    return [v] if type(v) is torch.Tensor else []


def raw(t):
    return ctypes.string_at(t.data_ptr(), t.numel() * t.element_size())


def farthest(result, others):
    """Has a result hold what is farthest from most, of it and those of equal calls."""
    with torch.no_grad():
        for k, t in enumerate(result):
            same = [o[k] for o in others if len(o) == len(result) and o[k].shape == t.shape and o[k].dtype == t.dtype]
            same = [t.detach().clone(memory_format=torch.contiguous_format), *same[:KEPT // max(t.numel(), 1)]]
            if t.is_complex() or t.layout is not torch.strided or len({raw(a) for a in same}) == 1:
                continue
            numbers = torch.nan_to_num(torch.stack(same).double())
            away = (numbers - numbers.median(0).values).abs().reshape(len(same), -1).amax(1)
            t.detach().copy_(same[int(away.argmax())])


def copied(v):
    if isinstance(v, (list, tuple)):
        return type(v)(map(copied, v))
    return v.detach().clone() if isinstance(v, torch.Tensor) else v
