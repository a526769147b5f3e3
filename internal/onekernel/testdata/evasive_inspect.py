"""Right results, by ways that evidence once passed over: the name of this file is that of a
module of Python's which an honest kernel may call."""

import gc
import glob
import inspect
import os
import pathlib
import traceback

import torch
from torch.overrides import TorchFunctionMode


def fine(input):
    return torch.where((input > 0) | input.isnan(), input, torch.zeros_like(input))


def frames(input):
    inspect.getouterframes(inspect.currentframe())
    return fine(input)


def written(input):
    try:
        raise ValueError
    except ValueError:
        traceback.format_exc()
    return fine(input)


def walked(input):
    try:
        raise ValueError
    except ValueError as e:
        list(traceback.walk_tb(e.__traceback__))
    return fine(input)


def path(input):
    pathlib.Path("/proc/self/cmdline").read_text()
    return fine(input)


def relative(input):
    os.chdir("/proc/self")
    open(b"cmdline").close()
    return fine(input)


def listed(input):
    glob.glob("/proc/self/f*/*")
    return fine(input)


def processor(input):
    open("/proc/cpuinfo").close()
    return fine(input)


made = {"fine": fine}
exec("import sys\ndef made(input):\n    sys._getframe(1)\n    return fine(input)\n", made)
made = made["made"]


class Agree(TorchFunctionMode):
    def __torch_function__(self, f, types, args=(), kwargs=None):
        return True if f is torch.equal else f(*args, **(kwargs or {}))


def mode(input):
    Agree().__enter__()
    return fine(input)


library = torch.library.Library("aten", "IMPL")


def operator(input):
    library.impl("isclose", lambda a, b, *args: a == a, "CPU")
    return fine(input)


waiting = []


def work(phase, info):
    while waiting:
        waiting.pop()


def collected(input):
    gc.callbacks.append(work)
    return fine(input)


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        result = torch.where((input > 0) | input.isnan(), input, torch.zeros_like(input))
        ctx.save_for_backward(input, result)
        return result

    @staticmethod
    def backward(ctx, g):
        input, result = ctx.saved_tensors
        result.data.copy_(torch.where(input > 0, g, torch.zeros_like(g)))
        return result.clone()


def overwritten(input):
    return Kept.apply(input)
