"""What a kernel leaves in its process: work to the garbage collector, and states by which what others
compute later is another thing.

Everything that is used here is taken before the kernel's file is imported.
"""

import gc
import sys

import torch

CPU = torch.device("cpu")
default_device = getattr(torch, "get_default_device", lambda: CPU)  # of 2.3 on
enabled, enable = torch.is_autocast_enabled, torch.set_autocast_enabled
enabled_cpu, enable_cpu = torch.is_autocast_cpu_enabled, torch.set_autocast_cpu_enabled  # before 2.4
default_dtype, set_default_dtype, set_flush_denormal, collect = torch.get_default_dtype, torch.set_default_dtype, torch.set_flush_denormal, gc.collect
SMALLEST, HALF = sys.float_info.min, 0.5
COLLECTED = 2  # calls after which garbage is collected, which takes a tenth of a second
FINALIZERS = (b"weakref", b"__del__", b"gc")


class Left:
    def __init__(self, file):
        self.finalizes = any(mentions(file, word) for word in FINALIZERS)
        self.flushes = mentions(file, b"flush_denormal")  # a library that was built with -ffast-math does too

    def look(self, watch, when):
        for f in gc.callbacks:
            code = getattr(getattr(f, "func", getattr(f, "__func__", f)), "__code__", None)
            if code is not None and watch.wrote(code):
                watch.note("late", "leaves work to the garbage collector (gc.callbacks)")
        if default_dtype() is not torch.float32:
            watch.note("patches", "changes the default dtype %s" % when)
            set_default_dtype(torch.float32)
        if autocasts():
            watch.note("patches", "leaves autocast on for all that its caller computes %s" % when)
            autocast(False)
        if default_device().type != "cpu":
            watch.note("patches", "changes the default device %s" % when)
            torch.set_default_device(None)
        if self.flushes and SMALLEST * HALF == 0:
            watch.note("patches", "has numbers near zero taken for zero in all that its caller computes (torch.set_flush_denormal) %s" % when)
            set_flush_denormal(False)

    def collect(self, calls):
        """Has what a kernel left to the garbage collector happen before its result is looked at again."""
        if self.finalizes and calls <= COLLECTED:
            collect()


def autocasts():
    try:
        return enabled() or enabled("cpu")
    except TypeError:
        return enabled() or enabled_cpu()


def autocast(on):
    try:
        enable("cpu", on)
        enable("cuda", on)
    except TypeError:
        enable(on)
        enable_cpu(on)


def mentions(file, word):
    try:
        with open(file, "rb") as f:
            return word in f.read()
    except OSError:
        return False
