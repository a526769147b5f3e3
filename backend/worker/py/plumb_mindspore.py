"""MindSpore: its functions are in mindspore.json, its gradients are GradOperation of the program, run call by call (PyNative)."""

import contextlib
import os

os.environ.setdefault("GLOG_v", "3")  # errors alone

import mindspore
import numpy as np
import plumb_subject
from mindspore.common.api import _pynative_executor
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
            "Create kernelmod", "unexpected kernel", "could not create a primitive", "CreateKernel", "got empty tensor", "type_id:", "bprop not defined", "bad_function_call",
            "greater than 0", "should > 0", "should not contain 0", "output must not be 0")  # the last four where a tensor has no elements

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

    depth = 0  # gradients that are being computed, one within the other

    def vjp(self, f, leaves, cotangents):
        self.depth += 1
        try:
            return mindspore.ops.GradOperation(get_all=True, sens_param=True)(lambda *v: tuple(f(*v)))(*leaves, tuple(cotangents))
        except BaseException:
            _pynative_executor.clear_res()  # what has failed is still recorded, and no number indexes a tensor beside it
            raise
        finally:
            self.depth -= 1

    def read(self, t, index):
        """Reads by an index. Numbers have no second gradient, and after one that was tried no first one in this process."""
        if self.depth > 1 and any(isinstance(i, int) for i in (index if isinstance(index, tuple) else (index,))):
            self.index(t, (self.check(index, isinstance(index, int)),))
            return mindspore.ops.gather(t, mindspore.Tensor(index % t.shape[0]), 0)
        return t[self.index(t, index)]

    # What calls of mindspore.json use.

    def check(self, v, holds):
        """Returns an argument where MindSpore means by it what PyTorch does."""
        if not holds:
            raise Unsupported("mindspore reads this argument otherwise")
        return v

    def literal(self, data, dtype):
        return mindspore.Tensor(np.array(self.plain(data)), dtype=dtype)

    def plain(self, data):
        """Returns nested lists with numbers in the place of tensors of one element."""
        if self.is_tensor(data):
            return data.asnumpy()
        return [v.asnumpy().item() if self.is_tensor(v) and v.size == 1 else self.plain(v) for v in data] if isinstance(data, (list, tuple)) else data

    def size(self, t):
        return t.size

    def undrawn(self, t, training):
        if training:  # the gradient is computed beside the value
            raise Unsupported("mindspore draws channels anew whenever it is called, whatever the seed")
        return t

    def factors(self, scale):
        return scale if scale is None else float(scale) if isinstance(scale, (int, float)) else tuple(map(float, scale))

    def count(self, v):
        """Returns a number that has to be whole."""
        return int(self.check(v, v == v // 1))

    def ranked(self, t, n):
        if len(t.shape) != n:
            raise Unsupported("mindspore has this of %d dimensions alone" % n)
        return t

    def same(self, a, b):
        return tuple(a.shape) == tuple(b.shape) and bool(mindspore.ops.equal(*self.alike(a, b)).all())

    def filled(self, t, value):
        """Returns what has a tensor's shape and dtype, and the elements of another or a number."""
        if not self.is_tensor(value):
            return mindspore.ops.full_like(t, value)
        return mindspore.ops.broadcast_to(value.astype(t.dtype), t.shape)

    def put(self, t, index, value):
        """Returns a tensor but for the elements at an index."""
        t = t.copy()
        t[self.index(t, tuple(index) if isinstance(index, list) else index)] = value.astype(t.dtype) if self.is_tensor(value) else value
        return t

    def rolled(self, t, shifts, dims):
        axes = self.axes(dims)
        return mindspore.numpy.roll(t, self.one(shifts) if axes is None else self.each(shifts, len(self.listed(axes))), axes)

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
            mask = self.is_tensor(i) and i.dtype == mindspore.bool_
            if self.is_tensor(i) and not mask:
                held = i.asnumpy()
                self.check(i, bool(((held >= -t.shape[axis]) & (held < t.shape[axis])).all()))
            elif isinstance(i, int) and not isinstance(i, bool):
                self.check(i, -t.shape[axis] <= i < t.shape[axis])
            axis += len(i.shape) if mask else i is not None
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
        if len(t.shape) == n + 1:
            return self.conv(kind, n, mindspore.mint.unsqueeze(t, 0), weight, bias, stride, padding, dilation, groups).squeeze(0)
        mode, padding = (padding, 0) if isinstance(padding, str) else ("pad", padding)
        stride, padding, dilation = ((self.one(v) if n == 1 else self.each(v, n)) for v in (stride, padding, dilation))
        return getattr(mindspore.ops, kind)(self.images(t, n), weight, bias, stride, mode, padding, dilation, groups)

    def conv_transpose(self, t, weight, bias, stride, padding, output_padding, groups, dilation):
        """Computes it in two dimensions as mindspore.nn.Conv2dTranspose does."""
        kernel = tuple(weight.shape[2:])
        stride, padding, more, dilation = (self.each(v, 2) for v in (stride, padding, output_padding, dilation))
        size = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1
                for n, s, p, d, k, o in zip(self.images(t, 2).shape[2:], stride, padding, dilation, kernel, more)]
        call = mindspore.ops.Conv2DTranspose(t.shape[1], kernel, pad_mode="pad", pad=self.sides(padding, 2), stride=stride, dilation=dilation, group=groups)
        v = call(t, weight, (t.shape[0], weight.shape[1] * groups, *size))
        return v if bias is None else mindspore.ops.bias_add(v, bias)

    def conv_transpose1d(self, t, weight, bias, stride, padding, output_padding, groups, dilation):
        """Computes it on images of one row."""
        t, weight = (mindspore.mint.unsqueeze(v, 2) for v in (self.images(t, 1), weight))
        stride, padding, more, dilation = ((first, self.one(v)) for first, v in ((1, stride), (0, padding), (0, output_padding), (1, dilation)))
        return self.conv_transpose(t, weight, bias, stride, padding, more, groups, dilation).squeeze(2)

    def common(self, tensors):
        shape = np.broadcast_shapes(*[t.shape for t in tensors])
        return tuple([mindspore.mint.broadcast_to(t, shape) for t in tensors])

    def classes(self, t, n):
        """Returns a number of classes, by default one more than the largest."""
        return n if n > 0 else int(self.check(t, t.size > 0).asnumpy().max()) + 1

    def conv_transpose3d(self, t, weight, bias, stride, padding, output_padding, groups, dilation):
        stride, padding, more, dilation = (self.each(v, 3) for v in (stride, padding, output_padding, dilation))
        call = mindspore.ops.Conv3DTranspose(self.images(t, 3).shape[1], weight.shape[1] * groups, tuple(weight.shape[2:]), pad_mode="pad",
                                             pad=self.sides(padding, 3), stride=stride, dilation=dilation, group=groups, output_padding=more)
        v = call(t, weight)
        return v if bias is None else v + mindspore.ops.reshape(bias, (1, -1, 1, 1, 1))

    def radius(self, size):
        """Returns how many channels on either side a norm over a window of channels takes."""
        return self.check(size, size % 2 == 1) // 2

    def scale(self, weight, shape, t):
        return mindspore.ops.ones(tuple(shape), t.dtype) if weight is None else weight

    def shift(self, bias, shape, t):
        return mindspore.ops.zeros(tuple(shape), t.dtype) if bias is None else bias


adapter = MindSpore

