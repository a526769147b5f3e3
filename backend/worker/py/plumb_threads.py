"""Native code that forks threads by OpenMP: in some calls it has two of them, so that a race shows.

A process that hosts a kernel has one thread else. Two work at one time where they are awake,
which they are for a moment after a call: the same call is made some times before.
"""

import ctypes
import os
import re
import time

import torch

RUNTIME = re.compile(r"lib[gi]?omp[^/]*\.(so|dylib)")
FORKS = (b"GOMP_parallel", b"__kmpc_fork_call")
WAKING, REST = 8, 0.005  # calls before the one that counts; seconds after which threads sleep
LARGEST = 1 << 26  # bytes of a library that is looked through
set_threads, pause = torch.set_num_threads, time.sleep


def mapped():
    """Returns the files of libraries in this process, where the system tells."""
    try:
        with open("/proc/self/maps") as f:
            return {line.split(None, 5)[5].strip() for line in f if "/" in line}
    except OSError:
        return set()


def forks(path):
    """Tells whether a library forks threads by OpenMP, and is no runtime of it."""
    if RUNTIME.search(os.path.basename(path)):
        return False
    try:
        if os.path.getsize(path) > LARGEST:
            return False
        with open(path, "rb") as f:
            text = f.read()
    except OSError:
        return False
    return any(name in text for name in FORKS)


class Threads:
    """What a kernel has brought that forks."""

    def __init__(self):
        self.before, self.runtimes = mapped(), []
        self.many = False  # in the next call

    def look(self):
        """Keeps the runtimes, once the kernel has been imported, if it forks."""
        now = mapped()
        if any(map(forks, now - self.before)):
            self.runtimes = [ctypes.CDLL(path).omp_set_num_threads for path in sorted(now) if RUNTIME.search(os.path.basename(path))]

    def of(self, kernel):
        """Returns a kernel as it is to be called."""
        return self.at_once(kernel) if self.many and self.runtimes else kernel

    def at_once(self, kernel):
        def call(*args, **kwargs):
            copies = [([copied(v) for v in args], {n: copied(v) for n, v in kwargs.items()}) for _ in range(WAKING)]
            self.have(2)
            try:
                for a, k in copies:
                    try:
                        kernel(*a, **k)
                    except Exception:  # the call itself raises as well
                        break
                return kernel(*args, **kwargs)
            finally:
                self.have(1)
                pause(REST)
        return call

    def have(self, n):
        set_threads(n)
        for of in self.runtimes:
            of(n)


def copied(v):
    if isinstance(v, (list, tuple)):
        return type(v)(map(copied, v))
    return v.detach().clone() if isinstance(v, torch.Tensor) else v
