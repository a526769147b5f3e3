"""TensorFlow: its functions are in tensorflow.json, its gradients are tf.GradientTape of the program."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import plumb_subject
import tensorflow as tf
from plumb_names import Unsupported


class TensorFlow(plumb_subject.Adapter):
    name, version = "tensorflow", tf.__version__
    root, tensor_class = tf, tf.Tensor
    own = functional = True
    table = plumb_subject.table("tensorflow.json")
    modes = {"function": lambda f: tf.function(f, autograph=False)}
    gaps = ("gradient registry has no entry", "No gradient defined", "Input dims must be", "If you are looking for numpy-related methods")

    def gap(self, e):
        # TensorFlow checks arguments, axes, shapes and dtypes by these, not values.
        kinds = (TypeError, ValueError, IndexError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.NotFoundError)
        return super().gap(e) or isinstance(e, kinds)

    def seed(self, n):
        tf.random.set_seed(n % (1 << 31))

    def dtype(self, name):
        return tf.as_dtype(name)

    def dtype_name(self, dtype):
        return getattr(dtype, "name", "")

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        return tf.cast(tf.constant(array), dtype) if dtype == "bfloat16" else tf.constant(array, dtype)

    def array(self, t):
        if not hasattr(t, "numpy"):
            raise Unsupported("tensorflow reads no elements while it compiles")
        return (tf.cast(t, tf.float32) if t.dtype == tf.bfloat16 else t).numpy()

    def cast(self, t, dtype):
        return tf.cast(t, dtype)

    def memory_format(self, name):
        if name != "contiguous_format":
            raise Unsupported("tensorflow has no %s" % name)
        return name

    def stop(self, v):
        return tf.nest.map_structure(tf.stop_gradient, v)

    def vjp(self, f, leaves, cotangents):
        with tf.GradientTape() as tape:
            tape.watch(leaves)
            out = f(*leaves)
        found = tape.gradient(out, list(leaves), output_gradients=list(cotangents), unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(g) for g in found]

    # What calls of tensorflow.json use.

    def last(self, t):
        """Returns a tensor whose channels are last: TensorFlow has no other layout on the CPU."""
        return tf.transpose(t, [0, *range(2, len(t.shape)), 1])

    def second(self, t):
        return tf.transpose(t, [0, len(t.shape) - 1, *range(1, len(t.shape) - 1)])

    def filters(self, weight, t=None, groups=1):
        """Returns filters as TensorFlow has them, which tells groups by the channels of the image."""
        if t is not None and t.shape[1] != weight.shape[1] * groups:
            raise Unsupported("tensorflow finds other groups")
        return tf.transpose(weight, [*range(2, len(weight.shape)), 1, 0])

    def spatial(self, t, n):
        if len(t.shape) != n + 2:
            raise Unsupported("tensorflow has batches alone")
        return self.last(t)

    def padded(self, t, padding, value=0):
        """Returns a tensor, channels last, with as many elements before as after each axis."""
        n = len(t.shape) - 2
        each = self.each(padding, n)
        return tf.pad(t, [(0, 0), *[(p, p) for p in each], (0, 0)], constant_values=tf.cast(value, t.dtype)) if any(each) else t

    def strides(self, v, n):
        """Returns strides as TensorFlow has them: of the batch and the channels too in three dimensions."""
        each = self.each(v, n)
        return [1, *each, 1] if n == 3 else list(each)

    def biased(self, t, bias):
        return t if bias is None else tf.nn.bias_add(t, bias)

    def transposed(self, t, weight, stride, padding):
        """Returns a transposed convolution; TensorFlow's own padding depends on the size that is wanted."""
        n = len(t.shape) - 2
        stride, padding = self.each(stride, n), self.each(padding, n)
        size = [(d - 1) * s + k for d, s, k in zip(t.shape[1:-1], stride, weight.shape[2:])]
        if any(s > k for s, k in zip(stride, weight.shape[2:])):
            raise Unsupported("tensorflow wants kernels as long as strides")
        out = tf.nn.conv_transpose(t, self.filters(weight), [t.shape[0], *size, weight.shape[1]], stride, "VALID")
        return out[tuple([slice(None), *[slice(p, d - p) for p, d in zip(padding, size)]])]

    def reduced(self, t, reduction):
        return {"none": tf.identity, "mean": tf.reduce_mean, "sum": tf.reduce_sum}[reduction](t)

    def same(self, a, b):
        """Returns two tensors of one shape and dtype: TensorFlow's losses do not broadcast."""
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Unsupported("tensorflow wants one shape and dtype")
        return a, b

    def pads(self, t, pad):
        """Returns the widths of TensorFlow's pad: two for each axis, the first axis first."""
        pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
        return [(0, 0)] * (len(t.shape) - len(pairs)) + pairs

    def number(self, v, like):
        """Returns a number, or a tensor of one, in the dtype of a tensor."""
        return tf.cast(v, like.dtype) if self.is_tensor(v) else tf.constant(v, like.dtype)

    def floating(self, dtype):
        """Returns the dtype of linspace, which gives floats whatever is asked."""
        if dtype is not None and not dtype.is_floating:
            raise Unsupported("tensorflow has linspace of floats alone")
        return dtype or tf.float32

    def parts(self, sizes, total):
        """Returns the sizes of the parts of an axis; a number is that of each but the last."""
        if not isinstance(sizes, int):
            return list(sizes)
        return [min(sizes, total - i) for i in range(0, total, sizes)] if sizes > 0 and total else [total]

    def chosen(self, t, index, dim, keepdim):
        """Returns the elements at indices of one dimension, which get the gradient."""
        v = tf.experimental.numpy.take_along_axis(t, tf.expand_dims(index, dim), dim)
        return (v, tf.expand_dims(index, dim)) if keepdim else (tf.squeeze(v, [dim]), index)

    def over_last(self, t, normalized_shape):
        """Returns the axis that is normalized: the functions of Keras take a weight of one alone."""
        if len(normalized_shape) != 1 or t.shape[-1] != normalized_shape[0]:
            raise Unsupported("tensorflow normalizes the last axis alone")
        return -1

    def all_but_last(self, t):
        return list(range(len(t.shape) - 1))

    def radius(self, size):
        if size % 2 == 0:
            raise Unsupported("tensorflow's windows are odd")
        return size // 2

    def indexed(self, values, indices):
        return values, tf.cast(indices, tf.int64)

    def exchanged(self, a, b):
        return b, a

    def vector_axis(self, dim):
        if not isinstance(dim, (int, type(None))) and len(dim) != 1:
            raise Unsupported("tensorflow's norm of two axes is that of matrices")
        return dim if isinstance(dim, (int, type(None))) else dim[0]

    def between(self, t, low, high):
        if low > high:
            raise Unsupported("tensorflow clips between what is in order")
        return tf.clip_by_value(*self.alike(t, low, high))

    def matrices(self, t):
        if len(t.shape) < 2:
            raise Unsupported("tensorflow wants matrices")
        return t

    def of_rank(self, t, n):
        if len(t.shape) != n:
            raise Unsupported("tensorflow wants %d dimensions" % n)
        return t

    def classes(self, target, n):
        """Returns targets that are classes: TensorFlow gives NaN for others."""
        if not target.dtype.is_integer or bool(tf.reduce_any((target < 0) | (target >= n))):
            raise Unsupported("tensorflow ignores no classes")
        return target


adapter = TensorFlow
