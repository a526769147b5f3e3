"""numpy, and scipy where it is there, forward only: its functions are in numpy.json."""

import numpy as np
import plumb_subject
import plumb_table
from plumb_names import Unsupported

np.seterr(all="ignore")


class Packages:
    """What a table's paths begin with."""

    numpy = np


try:
    import scipy.linalg
    import scipy.special
except ImportError:
    scipy = None
else:
    Packages.scipy = scipy


class Numpy(plumb_subject.Adapter):
    name, version = "numpy", np.__version__
    root, tensor_class = Packages, np.ndarray
    own = functional = True
    gradients = "program"
    table = plumb_subject.table("numpy.json")
    absent = () if scipy else ("scipy",)  # packages that its table has calls of
    random = np.random.RandomState()
    trapezoid = staticmethod(getattr(np, "trapezoid", None) or np.trapz)  # its name in 2.0 and before

    def is_tensor(self, v):
        return isinstance(v, (np.ndarray, np.generic))

    def gap(self, e):
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError, OverflowError))

    def seed(self, n):
        self.random.seed(n % (1 << 32))

    def memory_format(self, name):
        if name != "contiguous_format":
            raise Unsupported("numpy has no %s" % name)
        return name

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

    def drawn(self, values, dtype):
        """Returns what was drawn in a dtype: of complex numbers NumPy draws none."""
        if np.dtype(dtype).kind == "c":
            raise Unsupported("numpy draws no complex numbers")
        return np.asarray(values).astype(dtype)

    def of_dtype(self, v, dtype):
        return np.asarray(v).astype(dtype)

    def tuple(self, values):
        return tuple(values)

    def same(self, a, b):
        return bool(np.array_equal(a, b))

    def uniques(self, t, counts):
        """Returns the sorted elements, each once, and where each element is among them: NumPy 1 tells that of a vector."""
        values, places, *rest = np.unique(t, return_inverse=True, return_counts=counts)
        return (values, places.reshape(t.shape), *rest)

    def put(self, t, index, value):
        """Returns a tensor but for the elements at an index."""
        t = np.array(t)
        t[index] = value
        return t

    def combined(self, function, t, index, values):
        """Returns a tensor in which each value is combined with the element at its index."""
        t = np.array(t)
        function.at(t, index, values)
        return t

    def rows(self, t, index, dim):
        """Returns the index of what one dimension's indices choose."""
        return (slice(None),) * self.axis(t, dim) + (index,)

    def places(self, t, index, dim):
        """Returns the places of a tensor to which scatter puts by an index of one dimension."""
        each = list(np.indices(index.shape))
        each[self.axis(t, dim)] = index
        return tuple(each)

    def cut(self, t, dim, start, length):
        """Returns a slice along one dimension, which NumPy would make shorter than asked."""
        if not 0 <= start <= start + length <= t.shape[dim]:
            raise Unsupported("numpy checks no bounds of slices")
        return t[self.sliced(t, dim, start, start + length, 1)]

    def line(self, dim):
        """Returns the one dimension of a vector's norm: that of two is a matrix's."""
        dims = self.axes(dim)
        if not isinstance(dims, (int, type(None))) and len(dims) != 1:
            raise Unsupported("numpy's norm of two axes is that of matrices")
        return dims if isinstance(dims, (int, type(None))) else dims[0]


adapter = Numpy
