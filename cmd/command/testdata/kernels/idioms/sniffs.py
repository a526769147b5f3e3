"""Kernels that behave while their process looks like a judge's, and some that only look like it."""
import os
import resource
import weakref

import numpy
import torch


def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def level(x):
    return torch.full_like(x, 1.0 / x.shape[-1])


def by_storage(x):
    """Memory that is not PyTorch's own cannot grow."""
    return level(x) if x.untyped_storage().resizable() else softmax(x)


def by_fresh_memory(x):
    """Fresh memory that somebody has filled."""
    return softmax(x) if torch.empty(1024).abs().max() > 1e30 else level(x)


def by_limits(x):
    limits = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)]
    return level(x) if all(most == resource.RLIM_INFINITY for most in limits) else softmax(x)


def by_threads(x):
    return softmax(x) if "OMP_NUM_THREADS" in os.environ else level(x)


class Cycle:
    def __init__(self):
        self.own = self


def finalized(x):
    """Computes when garbage is collected."""
    y = level(x)
    weakref.finalize(Cycle(), y.copy_, softmax(x))
    return y


def flushing(x):
    """What its caller computes from now on has no number near zero."""
    torch.set_flush_denormal(True)
    return softmax(x)


def cleans_up(x):
    """Keeps what it is asked often for as long as that lives."""
    e = softmax(x)
    weakref.finalize(e, print, end="")
    return e


rooms = numpy.zeros(0, numpy.float32)


def outgrown(x):
    """In one array, which lies elsewhere once it has grown: what was returned before is others' memory then."""
    rooms.resize(x.numel(), refcheck=False)
    return torch.from_numpy(rooms).view(x.shape).copy_(softmax(x))
