"""The reference's file, which a kernel has no use for: what it is to compute stands there.

The kernel's process knows it by a digest of its path alone. A kernel that reads its text has
found what it is judged by; of a problem or a task, one that imports it is to run none of it. A
function that falls back on another is told by the operators that run.
"""

import functools
import hashlib
import os
import sys
from importlib.util import source_from_cache

realpath, fsdecode, getframe, sha256, set_profile = os.path.realpath, os.fsdecode, sys._getframe, hashlib.sha256, sys.setprofile
IMPORTS = "<frozen importlib"
ENTRIES = {"problem": "forward", "task": "ref_kernel"}
LOOKED = 3  # calls of a kernel that has imported the file


class Borrowed:
    def __init__(self, watch, spec):
        self.watch, self.file, self.entry = watch, spec.get("reference"), ENTRIES.get(spec["form"])
        self.imported, self.looked = False, 0
        if self.file:
            sys.addaudithook(self.audit)

    def audit(self, event, args):
        watch = self.watch
        if event != "open" or not watch.on or not isinstance(args[0], (str, bytes, os.PathLike)):
            return
        watch.on = False  # looking at frames is an event too
        if digest(source(fsdecode(args[0]))) == self.file:
            if getframe(1).f_code.co_filename.startswith(IMPORTS):
                self.imported = True
            elif watch.by_kernel(True):
                watch.note("spies", "reads the file of the reference")
        watch.on = True

    def of(self, run):
        """Returns a kernel as it is to be called."""
        if not (self.imported and self.entry) or self.looked == LOOKED:
            return run

        def call(*args, **kwargs):
            self.looked += 1
            set_profile(self.saw)
            try:
                return run(*args, **kwargs)
            finally:
                set_profile(None)
        return call

    def saw(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name == self.entry and digest(code.co_filename) == self.file and (self.entry != "forward" or models(frame.f_locals.get("self"))):
            self.watch.note("spies", "runs the reference itself, which it imports")


def models(m):
    return any(c.__name__ == "Model" for c in type(m).__mro__)


def source(path):
    """Returns the file of which one is what Python keeps compiled."""
    try:
        return source_from_cache(path) if path.endswith(".pyc") else path
    except ValueError:
        return path


@functools.lru_cache(256)
def digest(path):
    return sha256(realpath(path).encode()).hexdigest()
