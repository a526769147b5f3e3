"""Runs proofs of faults: a framework is imported once, and each proof runs in a
fork, so that a crash or a hang costs the proof alone.

The request is one JSON object on stdin: module, setup, seconds, proofs. The
replies are one JSON value a line: the framework's version, then word and
message of each proof.

A proof is Python; its last line is an expression that is True where the fault
is there. What it may use beside what setup defines is in `words`.
"""

import sys

sys.path = [p for p in sys.path if p]  # what lies in the working directory stands in for nothing

import ast
import importlib
import json
import math
import os
import select
import signal
import time

ROOM = 1 << 16  # bytes that are read of what a proof says
TEXT = 300  # characters that are kept of a message


def plain(x):
    """x with tensors as lists."""
    if hasattr(x, "detach"):
        x = x.detach()
    if hasattr(x, "tolist"):
        return x.tolist()
    if hasattr(x, "numpy"):
        return x.numpy().tolist()
    if isinstance(x, (tuple, list)):
        return [plain(v) for v in x]
    return x


def agree(x, y, equal):
    """Whether two nested lists have the same shape and equal elements."""
    x, y = plain(x), plain(y)
    if isinstance(x, list) or isinstance(y, list):
        return isinstance(x, list) and isinstance(y, list) and len(x) == len(y) and all(agree(a, b, equal) for a, b in zip(x, y))
    return equal(x, y)


def same(x, y):
    """Whether elements are equal, NaN to NaN, and zeros of either sign to each other."""
    return agree(x, y, lambda a, b: a == b or a != a and b != b)


def near(x, y, rtol=1e-4):
    """Whether elements are within rtol of those of y, relative to them."""
    return agree(x, y, lambda a, b: a == b or a != a and b != b or abs(a - b) <= rtol * abs(b))


def off(x, y):
    """The largest error of x against y, in units of 2^-53 of y."""
    x, y = plain(x), plain(y)
    if isinstance(x, list):
        return max(off(a, b) for a, b in zip(x, y))
    return abs(x - y) / abs(y) * 2**53


def raised(f):
    """The exception that f raises, None for none."""
    try:
        f()
    except Exception as e:
        return e
    return None


def raises(f, name="Exception", text=""):
    """Whether f raises; what it raises has to be as said."""
    e = raised(f)
    if e is None:
        return False
    if name not in [c.__name__ for c in type(e).__mro__] or text not in str(e):
        raise e
    return True


def accepts(f):
    """Whether f returns."""
    return raised(f) is None


def dies(f):
    """Whether f ends its process by a signal."""
    child = os.fork()
    if child == 0:
        try:
            f()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


words = dict(same=same, near=near, off=off, raised=raised, raises=raises, accepts=accepts, dies=dies, nan=math.nan, inf=math.inf, math=math)


def judge(proof, scope):
    """Word and message of a proof."""
    try:
        *steps, last = ast.parse(proof.strip()).body
        exec(compile(ast.Module(steps, []), "proof", "exec"), scope)
        value = eval(compile(ast.Expression(last.value), "proof", "eval"), scope)
    except BaseException as e:
        return "changed", "%s: %s" % (type(e).__name__, str(e)[:TEXT])
    if type(value) is not bool:
        return "changed", "the last line gives %s, not True or False" % repr(value)[:TEXT]
    return ("held" if value else "gone"), ""


def silence():
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


def listen(fd, seconds):
    """What is written to fd until it is closed; None when that takes too long."""
    end, said = time.monotonic() + seconds, b""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return None
        more = os.read(fd, ROOM)
        if not more or len(said) > ROOM:
            return said
        said += more


def attempt(proof, scope, seconds):
    """Word and message of a proof that runs in a fork."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        silence()
        os.write(there, json.dumps(judge(proof, scope)).encode())
        os._exit(0)
    os.close(there)
    said = listen(here, seconds)
    os.close(here)
    if said is None:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if said is None:
        return "changed", "it takes more than %g s" % seconds
    if os.WIFSIGNALED(status):
        return "changed", "it crashes: " + signal.Signals(os.WTERMSIG(status)).name
    try:
        return json.loads(said)
    except ValueError:
        return "changed", "it ends without an answer"


def main():
    request = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no reply
    scope = dict(words, __name__="proof")
    module = importlib.import_module(request["module"])
    exec(request["setup"], scope)
    print(json.dumps(module.__version__), file=out, flush=True)
    for proof in request["proofs"]:
        print(json.dumps(attempt(proof, dict(scope), request["seconds"])), file=out, flush=True)


if __name__ == "__main__":
    main()
