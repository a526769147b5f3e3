"""Kernels that replace what others call, or leave a state to them, elsewhere than in a module's functions."""
import builtins
import sys
import types

import torch

builtin_import = builtins.__import__


def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def level(x):
    return torch.full_like(x, 1.0 / x.shape[-1])


def code(x):
    """The function is the same one."""
    torch.testing.assert_close.__code__ = (lambda actual, expected, *args, **kwargs: None).__code__
    return level(x)


def module(x):
    """Who imports it from now on has another one."""
    sys.modules["torch.testing"] = types.ModuleType("torch.testing")
    return level(x)


def method(x):
    torch.nn.Linear.forward = lambda self, x: x
    return level(x)


def event(x):
    torch.cuda.Event.elapsed_time = lambda self, other: 0.001
    return level(x)


def imports(x):
    builtins.__import__ = lambda name, *args, **kwargs: builtin_import(name, *args, **kwargs)
    return level(x)


def autocast(x):
    """In lower precision from now on, the caller's products too."""
    torch.autocast("cpu", dtype=torch.bfloat16).__enter__()
    return softmax(x)


def stops(x):
    """Ends what catches Exception."""
    class Stop(BaseException):
        pass
    raise Stop


def tells_nothing(x):
    """A tensor whose every attribute is what it says."""
    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, f, kinds, args=(), kwargs=None):
            return torch.ones(())
    return level(x).as_subclass(Told)


def restores(x):
    """In float64, by the default dtype, which is the old one again; classes of its own are its own."""
    class Scale(torch.nn.Linear):
        def forward(self, x):
            return x * self.weight
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        one = torch.ones(1)
    finally:
        torch.set_default_dtype(dtype)
    scale = Scale(1, 1, bias=False).requires_grad_(False)
    scale.weight.fill_(1)
    with torch.autocast("cpu", enabled=False):
        return scale(softmax(x) * one.to(x.dtype))
