"""NAME, whose interface is its own, as a subject of Plumb. NAME.json has a call for
each of PyTorch's operators that it has; what is written here suits arrays like NumPy's.
"""

import numpy
import plumb_subject
import MODULE
from plumb_names import Unsupported

make = MODULE.asarray  # what makes a tensor of an array of numpy

# The kit reads .shape, its sizes, and .dtype of every tensor. A class without them gets
# them here: MODULE.Array.shape = property(lambda t: t.sizes()).


class NAMEAdapter(plumb_subject.Adapter):
    name, version = "NAME", getattr(MODULE, "__version__", "")
    root, tensor_class = MODULE, type(make(numpy.zeros(1)))
    own = functional = True
    # Gradients are programs that Plumb writes of the table's calls. Where the framework
    # differentiates by itself, delete this line and write vjp.
    gradients = "program"
    table = plumb_subject.table("NAME.json")

    def gap(self, e):
        # What the framework says of arguments, shapes and dtypes that it does not take.
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError, OverflowError))

    def is_tensor(self, v):
        return isinstance(v, (self.tensor_class, numpy.generic))

    def tensor(self, array, dtype, requires_grad):
        return make(array, dtype=self.dtype(dtype))

    def array(self, t):
        return numpy.asarray(t)

    def dtype(self, name):
        found = getattr(MODULE, name + "_" if name == "bool" else name, None)
        if found is None:
            raise Unsupported("NAME has no %s" % name)
        return numpy.dtype(found)

    def dtype_name(self, dtype):
        return getattr(dtype, "name", "")

    def cast(self, t, dtype):
        return t.astype(self.dtype(dtype))

    def of_dtype(self, v, dtype):
        return make(v, dtype=dtype)

    def device(self, name):
        return name

    def memory_format(self, name):
        if name != "contiguous_format":
            raise Unsupported("NAME has no %s" % name)
        return name

    def seed(self, n):
        """Seeds what NAME draws by itself: it is the same for the same n."""

    def stop(self, v):
        """Returns tensors, or tuples of them, through which no gradient goes."""
        return v

    def vjp(self, f, leaves, cotangents):
        """Returns the gradient of each leaf, where f(*leaves) is a list of tensors."""
        raise NotImplementedError("NAME has no gradients")


adapter = NAMEAdapter
