"""tinygrad: its functions are in tinygrad.json, its gradients are Tensor.gradient of the program."""

import functools
import importlib.metadata
import os

os.environ.setdefault("DEV", "PYTHON")

import plumb_plain
import plumb_subject
import plumb_table
import tinygrad
from plumb_names import Unsupported
from tinygrad import Tensor, dtypes

DTYPES = {"bool": dtypes.bool, "uint8": dtypes.uint8, "int8": dtypes.int8, "int16": dtypes.int16, "int32": dtypes.int32, "int64": dtypes.int64,
          "float16": dtypes.float16, "bfloat16": dtypes.bfloat16, "float32": dtypes.float32, "float64": dtypes.float64}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Tinygrad(plumb_subject.Adapter):
    name, version = "tinygrad", importlib.metadata.version("tinygrad")
    root, tensor_class = tinygrad, Tensor
    own = functional = True
    arrays = plumb_plain
    table = plumb_subject.table("tinygrad.json")
    gaps = ("shape must be int", "different values for the same key", "failed to compute gradient")

    def gap(self, e):
        # tinygrad checks arguments, axes and shapes by these, dtypes when a program is verified.
        kinds = (TypeError, ValueError, IndexError, AssertionError)
        return super().gap(e) or isinstance(e, kinds) or isinstance(e, RuntimeError) and "verification failed" in str(e)

    def seed(self, n):
        Tensor.manual_seed(n % (1 << 32))

    def dtype(self, name):
        if name not in DTYPES:
            raise Unsupported("tinygrad has no %s" % name)
        return DTYPES[name]

    def dtype_name(self, dtype):
        return NAMES.get(dtype, str(dtype)) if isinstance(dtype, tinygrad.dtype.DType) else ""

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        if dtype not in DTYPES:
            raise Unsupported("tinygrad has no %s" % dtype)
        # Bytes and a reshape: one number would be a constant on no device.
        wide = dtypes.uint16 if array.dtype == "bfloat16" else DTYPES[array.dtype]
        t = Tensor(array.data, dtype=wide).reshape(array.shape)
        t = t.bitcast(dtypes.bfloat16) if array.dtype == "bfloat16" else t
        return t if t.dtype == DTYPES[dtype] else t.cast(DTYPES[dtype]).realize()  # else a later cast may undo this one

    def array(self, t):
        t = t.realize() if t.device else t.clone()  # for later calls too, which would compute it otherwise; a constant is on no device
        raw = t.bitcast(dtypes.uint16).clone() if t.dtype in (dtypes.float16, dtypes.bfloat16) else t  # which memoryview lacks; views of views are not read
        return plumb_plain.Elements(self.dtype_name(t.dtype), t.shape, bytes(raw.data()))

    def cast(self, t, dtype):
        return t.cast(self.dtype(dtype))

    def stop(self, v):
        return tuple(map(self.stop, v)) if isinstance(v, (tuple, list)) else v.detach() if self.is_tensor(v) else v

    def vjp(self, f, leaves, cotangents):
        found = [y.gradient(*leaves, gradient=c) for y, c in zip(f(*leaves), cotangents)]
        return [functools.reduce(Tensor.add, each) for each in zip(*found)]

    # What calls of tinygrad.json use.

    def dropout(self, t, p, training):
        with tinygrad.helpers.Context(TRAINING=int(training)):
            return t.dropout(p)

    def literal(self, data, dtype):
        if any(map(self.is_tensor, self.leaves(data))):
            raise Unsupported("tinygrad makes no tensors of tensors")
        return Tensor(data, dtype=self.default(dtype, *self.leaves(data)))

    def pair(self, values):
        """Returns values and indices, which are int32."""
        return values[0], values[1].cast(dtypes.int64)

    def chosen(self, t, index, dim, keepdim):
        """Returns the elements at indices of one dimension, which get the gradient."""
        v, index = t.gather(dim, index), index.cast(dtypes.int64)
        return (v, index) if keepdim else (v.squeeze(dim), index.squeeze(dim))

    def alike(self, *values):
        """Returns tensors of one dtype: a function of tinygrad's takes no number first."""
        dtype = plumb_table.promoted(self, values)
        return [v if v is None else self.cast(v, dtype) if self.is_tensor(v) else Tensor(v, dtype=DTYPES[dtype]) for v in values]

    def cut(self, t, dim, start, length):
        dim = self.axis(t, dim)
        return t.shrink(tuple((start, start + length) if i == dim else None for i in range(len(t.shape))))

    def put(self, t, index, value):
        """Returns a tensor but for the elements at an index."""
        t = t.clone()
        t[index] = self.cast(value, self.dtype_name(t.dtype)) if self.is_tensor(value) else value
        return t

    def affine(self, t, weight, bias):
        t = t if weight is None else t * weight
        return t if bias is None else t + bias

    def normed(self, module, t, weight, bias):
        """Returns what a module that normalises makes of a tensor, with both of its parameters or none."""
        if (weight is None) != (bias is None):
            raise Unsupported("tinygrad scales and shifts, or does neither")
        module.weight, module.bias = weight, bias
        return module(t)

    def looked_up(self, index, weight):
        module = tinygrad.nn.Embedding(*weight.shape)
        module.weight = weight
        return module(self.classes(index, weight.shape[0]))

    def of_rank(self, t, n):
        if len(t.shape) != n:
            raise Unsupported("tinygrad wants %d dimensions" % n)
        return t

    def matrix(self, t):
        return self.of_rank(t, 2)

    def classes(self, target, n):
        """Returns targets that are classes: tinygrad has no error for others."""
        if target.dtype not in (dtypes.int32, dtypes.int64, dtypes.uint8) or any(not 0 <= v < n for v in self.array(target).flat()):
            raise Unsupported("tinygrad does not check classes")
        return target


adapter = Tinygrad
