"""TensorFlow: its functions are in tensorflow.json, its gradients are tf.GradientTape of the program."""

import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import plumb_subject
import plumb_table
import tensorflow as tf
from plumb_names import Unsupported
from tensorflow.python.eager import context


class TensorFlow(plumb_subject.Adapter):
    name, version = "tensorflow", tf.__version__
    root, tensor_class = tf, tf.Tensor
    own = functional = True
    quick = ("nchw",)
    table = plumb_subject.table("tensorflow.json")
    gaps = ("gradient registry has no entry", "No gradient defined", "Input dims must be", "If you are looking for numpy-related methods")

    def __init__(self):
        self.channels_first = False
        self.modes = {"function": lambda f: tf.function(f, autograph=False), "nchw": self.nchw}

    def nchw(self, f):
        """Returns a function whose convolutions have the channels of an image first."""
        def call(*tensors):
            self.channels_first = True
            try:
                return f(*tensors)
            finally:
                self.channels_first = False
        return call

    def gap(self, e):
        # TensorFlow checks arguments, axes, shapes and dtypes by these, not values.
        kinds = (TypeError, ValueError, IndexError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError, tf.errors.NotFoundError)
        return super().gap(e) or isinstance(e, kinds)

    def seed(self, n):
        context.context()._clear_caches()  # a number is the constant that an equal one was made before: 0.0 is -0.0 after -0.0
        self.seeds = [n % (1 << 31), 0]

    def key(self):
        """Returns a seed for what is drawn next."""
        self.seeds = [self.seeds[0], self.seeds[1] + 1]
        return self.seeds

    def alike(self, *values):
        """Returns tensors of one dtype: a function of TensorFlow's takes that of the first argument, a number too."""
        dtype = plumb_table.promoted(self, values)
        return [v if v is None else tf.cast(v, dtype) if self.is_tensor(v) else tf.constant(v, dtype) for v in values]

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
        """Returns a tensor whose channels are last, as TensorFlow's are by default."""
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

    def conv(self, t, weight, bias, stride, padding, dilation, groups):
        n = len(weight.shape) - 2
        image, space = self.spatial(t, n), "DHW"[-n:]
        filters, layout, steps = self.filters(weight, t, groups), "N%sC" % space, [self.each(v, n) for v in (stride, dilation)]
        if not isinstance(padding, str):
            image, padding = self.padded(image, padding), "valid"
        if self.channels_first:
            image, layout = self.second(image), "NC" + space
        if n == 3:  # strides of the batch and the channels too
            steps = [[1, 1, *v] if self.channels_first else [1, *v, 1] for v in steps]
        strides, dilations = steps
        out = {1: tf.nn.conv1d, 2: tf.nn.conv2d, 3: tf.nn.conv3d}[n](image, filters, strides, padding.upper(), data_format=layout, dilations=dilations)
        if bias is not None:
            out = tf.nn.bias_add(out, bias, data_format="NC..." if self.channels_first else "N...C")
        return out if self.channels_first else self.second(out)

    def biased(self, t, bias):
        return t if bias is None else tf.nn.bias_add(t, bias)

    def transposed(self, t, weight, stride, padding, beyond, dilation):
        """Returns a transposed convolution; TensorFlow's own padding depends on the size that is wanted."""
        n = len(t.shape) - 2
        stride, padding, dilation = self.each(stride, n), self.each(padding, n), self.each(dilation, n)
        size = [(d - 1) * s + a * (k - 1) + 1 + b for d, s, k, a, b in zip(t.shape[1:-1], stride, weight.shape[2:], dilation, self.each(beyond, n))]
        if any(s > k for s, k in zip(stride, weight.shape[2:])):
            raise Unsupported("tensorflow wants kernels as long as strides")
        out = tf.nn.conv_transpose(t, self.filters(weight), [t.shape[0], *size, weight.shape[1]], stride, "VALID", dilations=dilation)
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
        v = (int if like.dtype.is_integer else bool)(v) if isinstance(v, float) and math.isfinite(v) and not (like.dtype.is_floating or like.dtype.is_complex) else v
        return tf.cast(v, like.dtype) if self.is_tensor(v) else tf.constant(v, like.dtype)

    def floating(self, dtype):
        """Returns the dtype of linspace, which gives floats whatever is asked."""
        if dtype is not None and not dtype.is_floating:
            raise Unsupported("tensorflow has linspace of floats alone")
        return dtype or tf.float32

    def whole(self, dtype):
        """Returns the dtype of random integers."""
        if dtype is not None and not dtype.is_integer:
            raise Unsupported("tensorflow draws integers as such alone")
        return dtype or tf.int64

    def parts(self, sizes, total):
        """Returns the sizes of the parts of an axis; a number is that of each but the last."""
        if not isinstance(sizes, int):
            return list(sizes)
        return [min(sizes, total - i) for i in range(0, total, sizes)] if sizes > 0 and total else [total]

    def chosen(self, t, index, dim, keepdim):
        """Returns the elements at indices of one dimension, which get the gradient."""
        v = tf.experimental.numpy.take_along_axis(t, tf.expand_dims(index, dim), dim)
        return (v, tf.expand_dims(index, dim)) if keepdim else (tf.squeeze(v, [dim]), index)

    def places(self, t, index, dim):
        """Returns the places of a tensor to which scatter puts by an index of one dimension."""
        each = tf.meshgrid(*[tf.range(n, dtype=index.dtype) for n in index.shape], indexing="ij")
        each[self.axis(t, dim)] = index
        return tf.stack(each, -1)

    def over(self, values, t, indices):
        """Returns what index_put puts, an element for each that is chosen."""
        return tf.broadcast_to(values, [*indices[0].shape, *t.shape[len(indices):]])

    def cut(self, t, dim, start, end):
        """Returns a slice along one dimension, which TensorFlow would make shorter than asked."""
        if not start <= end <= t.shape[dim]:
            raise Unsupported("tensorflow checks no bounds")
        return t[self.sliced(t, dim, start, end, 1)]

    def positive(self, p):
        if not p > 0:
            raise Unsupported("tensorflow has norms of positive orders alone")
        return p

    def kept(self, t, size, n):
        """Returns the sizes of a pooling, of which None is the image's own."""
        return [d if s is None else s for s, d in zip(self.each(size, n), t.shape[2:])]

    def channels(self, t, n):
        """Returns the shape of what is drawn for each channel."""
        return [*self.of_rank(t, n + 2).shape[:2], *[1] * n]

    def pieces(self, n, sections):
        return [n // sections + (i < n % sections) for i in range(sections)]

    def order(self, t, dims):
        return [self.axis(t, d) for d in dims]

    def won(self, t, kernel, stride, padding):
        """Returns maxima and their places in the planes of images, which TensorFlow counts with the padding and the channels."""
        image = self.padded(self.spatial(t, 2), padding, -math.inf)
        values, places = tf.nn.max_pool_with_argmax(image, kernel, stride, "VALID", output_dtype=tf.int64, include_batch_in_index=False)
        rows, columns = tf.unravel_index(tf.reshape(places // image.shape[3], [-1]), tf.constant(image.shape[1:3], tf.int64))
        places = (rows - padding[0]) * t.shape[3] + columns - padding[1]
        return self.second(values), self.second(tf.reshape(places, values.shape))

    def group_norm(self, t, groups, weight, bias, eps):
        norm = tf.keras.layers.GroupNormalization(groups, axis=1, epsilon=eps, center=False, scale=False, dtype=t.dtype.name)
        shape = [-1] + [1] * (len(t.shape) - 2)
        out = norm(t) if weight is None else norm(t) * tf.reshape(weight, shape)
        return out if bias is None else out + tf.reshape(bias, shape)

    def scattered(self, function, t, index, dim, source):
        """Puts slices along one dimension where an index of it says."""
        moved = tf.experimental.numpy.moveaxis(t, dim, 0)
        source = tf.experimental.numpy.moveaxis(source, dim, 0)
        return tf.experimental.numpy.moveaxis(self.member(function)(moved, tf.expand_dims(self.of_rank(index, 1), 1), source), 0, dim)

    def reached(self, t, index, dim):
        """Tells where an index of one dimension points, be it twice."""
        hit = tf.reduce_any(tf.equal(tf.range(t.shape[dim], dtype=index.dtype), index[:, None]), 0)
        return tf.reshape(hit, [-1] + [1] * (len(t.shape) - 1 - self.axis(t, dim)))

    def equal(self, a, b):
        return a.shape == b.shape and bool(tf.reduce_all(tf.equal(*self.alike(a, b))))

    def parts_of(self, t, index):
        """Lists what an index says of each dimension, None where there is a new one."""
        parts = [tf.constant(i) if isinstance(i, list) else i for i in (index if isinstance(index, tuple) else [index])]
        used = sum(len(i.shape) if self.is_tensor(i) and i.dtype == tf.bool else i is not None and i is not Ellipsis for i in parts)
        at = next((k for k, i in enumerate(parts) if i is Ellipsis), len(parts))
        parts[at:at + 1] = [slice(None)] * (len(t.shape) - used)
        return parts

    def read(self, t, index):
        """Reads by numbers, slices, None, an ellipsis, and by one mask, one tensor of integers, or several before all else."""
        parts = self.parts_of(t, index)
        found = [k for k, i in enumerate(parts) if self.is_tensor(i)]
        if not found:
            return t[tuple(parts)]
        first, k, axis = parts[found[0]], found[0], sum(i is not None for i in parts[:found[0]])
        if any(type(i) is int for i in parts):
            raise Unsupported("tensorflow reads by tensors or by numbers")
        if len(found) > 1:
            if found != list(range(len(found))):
                raise Unsupported("tensorflow reads by several tensors that come first")
            each = tf.experimental.numpy.broadcast_arrays(*[self.counted(i, n) for i, n in zip(parts[:len(found)], t.shape)])
            return tf.gather_nd(t, tf.stack(each, -1))[(slice(None),) * len(each[0].shape) + tuple(parts[len(found):])]
        mask = first.dtype == tf.bool
        t = tf.boolean_mask(t, first, axis=axis) if mask else tf.gather(t, self.counted(first, t.shape[axis]), axis=axis)
        return t[tuple(parts[:k] + [slice(None)] * (1 if mask else len(first.shape)) + parts[k + 1:])]

    def elements(self, t):
        return math.prod(t.shape)

    def one_or_all(self, indices):
        return indices[0] if len(indices) == 1 else tuple(indices)

    def counted(self, index, n):
        """Returns an index counted from the first."""
        return tf.where(index < 0, index + n, index)

    def put(self, t, index, value):
        """Returns a tensor but for the elements at an index."""
        if self.is_tensor(index) and index.dtype == tf.bool:
            mask = tf.reshape(index, [*index.shape, *[1] * (len(t.shape) - len(index.shape))])
            return tf.where(mask, self.number(self.of_rank(value, 0) if self.is_tensor(value) else value, t), t)
        key = tuple([self.array(i) if self.is_tensor(i) else i for i in (index if isinstance(index, tuple) else (index,))])
        places = np.arange(math.prod(t.shape)).reshape(t.shape)[key]
        values = tf.reshape(tf.broadcast_to(self.number(value, t), places.shape), [-1])
        return tf.reshape(tf.tensor_scatter_nd_update(tf.reshape(t, [-1]), places.reshape(-1, 1), values), t.shape)

    def attention(self, query, key, value, mask, causal, scale):
        heads = [tf.transpose(self.of_rank(t, 4), [0, 2, 1, 3]) for t in (query, key, value)]
        kind = {"mask" if mask is not None and mask.dtype == tf.bool else "bias": mask}
        return tf.transpose(tf.keras.ops.dot_product_attention(*heads, is_causal=causal, scale=scale, **kind), [0, 2, 1, 3])

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
