"""Operators of Plumb, called from Python.

    import numpy, NAME
    NAME.ops.relu(numpy.float32([-1, 2]))

Arrays are numpy's, PyTorch's, or any that speak DLPack; they are not copied, and a
result is of the kind of the first. The parameters are PyTorch's. What an operator
does not accept is the exception that PyTorch raises, an Error too, whose op and
argument say what is to blame.

NAME.torch makes the operators ones of PyTorch's, with gradients.

Processes may fork: a child loads the library again when it first calls an operator,
and draws as one that was just loaded. Several packages of such operators may be loaded.
"""

from ._library import Error, manual_seed
from . import _ops as _ops

ops = _ops.Operators()
operators = _ops.names

__all__ = ["Error", "manual_seed", "operators", "ops"]
