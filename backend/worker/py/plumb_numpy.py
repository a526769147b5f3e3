"""numpy, forward only: its functions are in numpy.json."""

import numpy as np
import plumb_subject
import plumb_table
from plumb_names import Unsupported

np.seterr(all="ignore")


class Packages:
    """What a table's paths begin with."""

    numpy = np


class Numpy(plumb_subject.Adapter):
    name, version = "numpy", np.__version__
    root, tensor_class = Packages, np.ndarray
    own = functional = True
    gradients = "program"
    table = plumb_subject.table("numpy.json")
    trapezoid = staticmethod(getattr(np, "trapezoid", None) or np.trapz)  # its name in 2.0 and before

    def is_tensor(self, v):
        return isinstance(v, (np.ndarray, np.generic))

    def gap(self, e):
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError, OverflowError))

    def seed(self, n):
        pass

    def dtype(self, name):
        if name == "bfloat16":
            raise Unsupported("numpy has no bfloat16")
        return np.dtype(name)

    def dtype_name(self, dtype):
        return getattr(dtype, "name", "")

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        return array.astype(self.dtype(dtype), copy=False)

    def array(self, t):
        return np.asarray(t)

    def cast(self, t, dtype):
        return t.astype(self.dtype(dtype))

    # What calls of numpy.json use.

    def alike(self, *values):
        # Beside arrays without dimensions, numbers would choose the dtype.
        dtype = self.dtype(plumb_table.promoted(self, values))
        return [None if v is None else np.asarray(v, dtype) for v in values]

    def of_dtype(self, v, dtype):
        return np.asarray(v).astype(dtype)


adapter = Numpy
