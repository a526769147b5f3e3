"""Asks Plumb for its verdict on one function: plumb_subject.kernel.check."""

import inspect
import json
import os
import shutil
import subprocess
import sys


def check(fn, against, **options):
    """Returns the report of `plumb kernel` as a dict (docs/kernel.md).

    fn is a function at the top of a file, or what the command takes in its place
    ("softmax.py::f"; None beside op="mylib::f"); so is against, which may be a name of
    PyTorch's. Options are the command's flags: dtypes=["float32"], no_empty=True,
    inputs="x: f32[B,N]", seed=1. The program is $PLUMB or the plumb on the path. What
    the command calls a mistake is a ValueError.
    """
    options.setdefault("python", sys.executable)
    command = [program(), "kernel", *([] if fn is None else [place(fn)]), "--against", place(against), "--json", *flags(options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode in (0, 1, 5):
        return json.loads(done.stdout.splitlines()[-1])
    raise (ValueError if done.returncode == 2 else RuntimeError)(done.stderr.strip())


def program():
    found = os.environ.get("PLUMB") or shutil.which("plumb")
    if not found:
        raise FileNotFoundError("no plumb on the path; $PLUMB may name it")
    return found


def place(fn):
    """Returns FILE.py::NAME of a function."""
    if isinstance(fn, str):
        return fn
    name = fn.__qualname__
    if not name.isidentifier():
        raise ValueError("%s is no function at the top of a file" % name)
    file = inspect.getsourcefile(fn)
    if file is None or not os.path.exists(file):
        raise ValueError("%s stands in no file" % name)
    return "%s::%s" % (os.path.abspath(file), name)


def flags(options):
    """Returns options as flags: for_="5s" and no_empty=True are --for=5s and --no-empty."""
    for name, value in options.items():
        flag = ("-" if len(name) == 1 else "--") + name.strip("_").replace("_", "-")
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if v is not None and v is not False:
                yield flag if v is True else "%s=%s" % (flag, v)
