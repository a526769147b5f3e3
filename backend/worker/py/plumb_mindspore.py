"""MindSpore: its functions are in mindspore.json, its gradients are GradOperation of the program, run call by call (PyNative)."""

import contextlib
import os

os.environ.setdefault("GLOG_v", "3")  # errors alone

import mindspore
import numpy as np
import plumb_subject
from plumb_names import DTYPES, Unsupported

mindspore.set_context(mode=mindspore.PYNATIVE_MODE, pynative_synchronize=True)
mindspore.set_device("CPU")

with contextlib.suppress(SystemError):
    # The first such call fails, and that one alone: it looks for NumPy 1.
    mindspore.mint.mul(mindspore.Tensor([1.0]), mindspore.Tensor([1.0]))

NAMES = {getattr(mindspore, "bool_" if name == "bool" else name): name for name in DTYPES}


class MindSpore(plumb_subject.Adapter):
    name, version = "mindspore", mindspore.__version__
    root, tensor_class = mindspore, mindspore.Tensor
    own = functional = True
    table = plumb_subject.table("mindspore.json")
    gaps = ("unregistered", "not support", "unsupported", "Unsupported", "not implemented", "Not implement", "only support", "KernelMod Init Failed",
            "Create kernelmod", "unexpected kernel", "could not create a primitive", "greater than 0")  # and what it lacks for empty tensors

    def gap(self, e):
        # MindSpore checks arguments, axes, shapes and dtypes by these.
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError, AttributeError))

    def seed(self, n):
        mindspore.set_seed(n % (1 << 32))

    def dtype(self, name):
        found = next((dtype for dtype, known in NAMES.items() if known == name), None)
        if found is None:
            raise Unsupported("mindspore has no %s" % name)
        return found

    def dtype_name(self, dtype):
        return NAMES.get(dtype, str(dtype)) if isinstance(dtype, mindspore.Type) else ""

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        t = mindspore.Tensor(np.array(array, order="C"))
        return t if self.dtype_name(t.dtype) == dtype else t.astype(self.dtype(dtype))

    def array(self, t):
        return (t.astype(mindspore.float32) if t.dtype == mindspore.bfloat16 else t).asnumpy()

    def cast(self, t, dtype):
        return t.astype(self.dtype(dtype))

    def stop(self, v):
        return tuple(map(self.stop, v)) if isinstance(v, (tuple, list)) else mindspore.ops.stop_gradient(v) if self.is_tensor(v) else v

    def vjp(self, f, leaves, cotangents):
        return mindspore.ops.GradOperation(get_all=True, sens_param=True)(lambda *v: tuple(f(*v)))(*leaves, tuple(cotangents))

    # What calls of mindspore.json use.

    def check(self, v, holds):
        """Returns an argument where MindSpore means by it what PyTorch does."""
        if not holds:
            raise Unsupported("mindspore reads this argument otherwise")
        return v

    def literal(self, data, dtype):
        return mindspore.Tensor(np.array(data), dtype=dtype)

    def size(self, t):
        return t.size

    def ranked(self, t, n):
        return self.check(t, len(t.shape) == n)

    def along(self, index, t, dim):
        """Returns indices in a tensor's shape but for one dimension: MindSpore broadcasts none."""
        dim = self.axis(t, self.given(dim))
        same = len(index.shape) == len(t.shape) and all(a == b for i, (a, b) in enumerate(zip(index.shape, t.shape)) if i != dim)
        return self.check(index, same)

    def pair(self, values):
        """Returns values and indices, which are int32."""
        return values[0], values[1].astype(mindspore.int64)

    def inside(self, index, size):
        """Returns an index that MindSpore reads as PyTorch does: it counts none from the end, and has no error for one beyond it."""
        held = index.asnumpy()
        return self.check(index, held.dtype.kind == "i" and bool(((held >= 0) & (held < size)).all()))

    def placed(self, t, dim, index):
        self.check(index, -t.shape[dim] <= index < t.shape[dim])
        return index % t.shape[dim]

    def index(self, t, index):
        """Returns an index without numbers beyond the end."""
        axis = 0
        for i in index if isinstance(index, tuple) else (index,):
            if i is Ellipsis:
                break
            if self.is_tensor(i):
                self.inside(i, t.shape[axis])
            elif isinstance(i, int) and not isinstance(i, bool):
                self.check(i, -t.shape[axis] <= i < t.shape[axis])
            axis += i is not None
        return index

    def images(self, t, n):
        """Returns images of n dimensions with a batch."""
        return self.ranked(t, n + 2)

    def one(self, v):
        return self.each(v, 1)[0]

    def strides(self, stride, kernel_size):
        return stride or kernel_size

    def sides(self, padding, n):
        """Returns what is padded before and after each dimension."""
        return tuple(p for p in self.each(padding, n) for _ in range(2))

    def divisor(self, n):
        return 0 if n is None else n

    def conv(self, kind, n, t, weight, bias, stride, padding, dilation, groups):
        self.check(padding, not isinstance(padding, str))
        stride, padding, dilation = ((self.one(v) if n == 1 else self.each(v, n)) for v in (stride, padding, dilation))
        return getattr(mindspore.ops, kind)(self.images(t, n), weight, bias, stride, "pad", padding, dilation, groups)

    def scale(self, weight, shape, t):
        return mindspore.ops.ones(tuple(shape), t.dtype) if weight is None else weight

    def shift(self, bias, shape, t):
        return mindspore.ops.zeros(tuple(shape), t.dtype) if bias is None else bias


adapter = MindSpore

