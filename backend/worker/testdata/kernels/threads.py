"""Native code that forks threads has two in some calls: plumb_threads.py."""

import os
import tempfile

import plumb_threads
import torch
from plumb_threads import Threads, WAKING, forks

folder = tempfile.mkdtemp()


def library(name, text):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(text)
    return path


forking, plain, runtime = library("k.so", b"..GOMP_parallel.."), library("p.so", b".."), library("libgomp.so.1", b"GOMP_parallel")
assert forks(forking) and not forks(plain) and not forks(runtime) and not forks(os.path.join(folder, "nowhere.so"))

threads = Threads()
before = threads.before
plumb_threads.mapped = lambda: before | {plain}
threads.look()
assert threads.runtimes == [], threads.runtimes

had, calls = [], []
threads.runtimes, plumb_threads.set_threads = [had.append], lambda n: None


def kernel(x, more, eps=0.5):
    calls.append((had[-1:], x, more[0]))
    x.add_(eps)
    return x


x, y = torch.zeros(3), torch.ones(2)
assert threads.of(kernel) is kernel
threads.many = True
result = threads.of(kernel)(x, [y], eps=2.0)
assert result is x and (x == 2).all(), x  # once, whatever calls there were before
assert len(calls) == WAKING + 1 and all(c[0] == [2] for c in calls) and had[-1] == 1, (calls, had)
assert all(c[1] is not x and c[2] is not y for c in calls[:-1]) and calls[-1][1] is x and calls[-1][2] is y


def raises(x):
    calls.append(x)
    raise ValueError


calls = []
try:
    threads.of(raises)(x)
except ValueError:
    pass
assert len(calls) == 2 and had[-1] == 1, (calls, had)
