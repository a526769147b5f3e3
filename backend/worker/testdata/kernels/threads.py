"""Native code that forks threads has two in some calls: plumb_threads.py."""

import os
import tempfile

import plumb_threads
import torch
from plumb_threads import ALL, MOST, Threads, WAKING, forks, starts

folder = tempfile.mkdtemp()


def library(name, text):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(text)
    return path


forking, plain, runtime = library("k.so", b"..GOMP_parallel.."), library("p.so", b".."), library("libgomp.so.1", b"GOMP_parallel")
assert forks(forking) and not forks(plain) and not forks(runtime) and not forks(os.path.join(folder, "nowhere.so"))

starting = library("t.so", b"..pthread_create..")
assert starts(starting) and not starts(plain) and not forks(starting) and not starts("/usr/lib/x86_64-linux-gnu/libz.so.1")

threads = Threads()
before = threads.before
plumb_threads.mapped = lambda: before | {plain}
threads.look()
assert threads.runtimes == [] and not threads.any(), threads.runtimes
plumb_threads.mapped = lambda: before | {starting}
threads.look()
assert threads.own and threads.any()
threads.own = False
plumb_threads.LONGEST = 0  # as many calls as there have to be

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

# Of equal calls the one counts that is not as the others.
threads, calls = Threads(), []
threads.own = threads.many = True


def racing(x):
    calls.append(x)
    y = x * 2
    if len(calls) == 3:
        y[1] = 7
    return y, x > 0


x = torch.tensor([1.0, 2.0, float("nan"), 4.0])
doubled, positive = threads.of(racing)(x)
assert doubled[1] == 7 and doubled[0] == 2 and positive.tolist() == [True, True, False, True], doubled

y = torch.ones(3, requires_grad=True)
threads.of(lambda v: v * 2)(y).sum().backward()
assert (y.grad == 2).all()

# They begin within a time, of all calls too.
plumb_threads.LONGEST, now = 1.0, [0.0]


def ticking(x):
    calls.append(x)
    now[0] += 0.25
    return x


plumb_threads.clock = lambda: now[0]
calls = []
threads.of(ticking)(x)
assert len(calls) == WAKING + 1, len(calls)
plumb_threads.LONGEST, plumb_threads.ALL, calls = float(MOST), float(MOST), []
threads.of(ticking)(x)
assert len(calls) == MOST + 1, len(calls)
plumb_threads.ALL, calls = ALL, []
threads.of(ticking)(x)
assert len(calls) == WAKING + 1, len(calls)
