"""The reference's file, which a kernel has no use for: what it is to compute stands there.

The kernel's process knows it by a digest of its path alone. One that imports it is told by the
operators that it runs; one that reads its text has found what it is judged by.
"""

import hashlib
import os
import sys

realpath, fsdecode, getframe, digest = os.path.realpath, os.fsdecode, sys._getframe, hashlib.sha256
IMPORTS = "<frozen importlib"


class Borrowed:
    def __init__(self, watch, file):
        self.watch, self.file = watch, file
        if file:
            sys.addaudithook(self.audit)

    def audit(self, event, args):
        watch = self.watch
        if event != "open" or not watch.on or not isinstance(args[0], (str, bytes, os.PathLike)):
            return
        watch.on = False  # looking at frames is an event too
        if digest(realpath(fsdecode(args[0])).encode()).hexdigest() == self.file and not getframe(1).f_code.co_filename.startswith(IMPORTS) and watch.by_kernel(True):
            watch.note("spies", "reads the file of the reference")
        watch.on = True
