"""MLX: its functions are in mlx.json, its gradients are mx.vjp of the program."""

import importlib.metadata

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import plumb_subject
from plumb_names import Unsupported


UNTOLD = ("Unsupported type", "could not be translated")  # how MLX says that it lacks a dtype, or a mask in the place of an index


class Packages:
    """What a table's paths begin with."""

    core, nn = mx, nn


def apart(results):
    """Returns results none of which is another: vjp would take one cotangent for both."""
    return [mx.multiply(y, 1) for y in results]


class MLX(plumb_subject.Adapter):
    name, version = "mlx", importlib.metadata.version("mlx")
    root, tensor_class = Packages, mx.array
    own = functional = True
    table = plumb_subject.table("mlx.json")
    modes, quick = {"compile": mx.compile}, ("compile",)

    def gap(self, e):
        # MLX checks arguments, axes, shapes and dtypes by these, not values.
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError)) or "not implemented" in str(e).lower() or any(text in str(e) for text in UNTOLD)

    def seed(self, n):
        mx.random.seed(n % (1 << 63))

    def dtype(self, name):
        found = getattr(mx, "bool_" if name == "bool" else name, None)
        if found is None:
            raise Unsupported("mlx has no %s" % name)
        return found

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        return mx.array(np.ascontiguousarray(array).reshape(array.shape), dtype=self.dtype(dtype))

    def array(self, t):
        return np.array(t.astype(mx.float32) if t.dtype == mx.bfloat16 else t)

    def cast(self, t, dtype):
        return t.astype(self.dtype(dtype))

    def stop(self, v):
        return tuple(map(self.stop, v)) if isinstance(v, (tuple, list)) else mx.stop_gradient(v) if self.is_tensor(v) else v

    def vjp(self, f, leaves, cotangents):
        return mx.vjp(lambda *v: apart(f(*v)), list(leaves), list(cotangents))[1]

    # What calls of mlx.json use.

    def last(self, t):
        """Returns a tensor whose channels are last, as MLX has them."""
        return mx.moveaxis(t, 1, -1)

    def images(self, t, n):
        """Returns images with a batch, their channels last."""
        if len(t.shape) != n + 2:
            raise Unsupported("mlx has batches alone")
        return self.last(t)

    def second(self, t):
        return mx.moveaxis(t, -1, 1)

    def chosen(self, t, index, dim, keepdim):
        """Returns the elements at indices of one dimension, which get the gradient."""
        index = mx.stop_gradient(index)
        v = mx.take_along_axis(t, index, dim)
        return v if keepdim else mx.squeeze(v, dim), (index if keepdim else mx.squeeze(index, dim)).astype(mx.int64)

    def distinct(self, t):
        """Returns the elements that are not equal, where each is in a tensor, and how often; MLX pads them to a size that is given."""
        values, places, counts = mx.unique(t, t.size, return_inverse=True, return_counts=True)
        found = int(mx.sum(counts > 0))
        return values[:found], mx.reshape(places, t.shape).astype(mx.int64), counts[:found].astype(mx.int64)

    def assigned(self, t, index, v):
        """Returns a tensor, some elements of which are others."""
        t, index = mx.array(t), self.indexing(t, index)
        t[index] = self.of_dtype(v, t.dtype)
        return t

    def tuple(self, values):
        return values[0] if len(values) == 1 else tuple(values)

    def filled(self, t, index, dim, value):
        """Returns a tensor that has a value where an index of one dimension says, be it twice."""
        dim = self.axis(t, dim)
        places = mx.reshape(self.inside(index, t.shape[dim]) % t.shape[dim], (-1, 1))
        mask = mx.any(places == mx.arange(t.shape[dim]), 0)
        return mx.where(mx.reshape(mask, (-1, *[1] * (len(t.shape) - dim - 1))), self.of_dtype(value, t.dtype), t)

    def planes(self, tensors):
        """Returns tensors of at least two dimensions."""
        return [t if t.ndim > 1 else mx.reshape(t, (1, -1)) for t in tensors]

    def count(self, values):
        return len(values)

    def line(self, dim):
        """Returns the one dimension of a vector's norm: that of two is a matrix's."""
        dims = self.axes(dim)
        if not isinstance(dims, (int, type(None))) and len(dims) != 1:
            raise Unsupported("mlx's norm of two axes is that of matrices")
        return dims

    def rows(self, t, index, dim):
        """Returns the index of what one dimension's indices choose."""
        dim = self.axis(t, dim)
        return (slice(None),) * dim + (self.inside(index, t.shape[dim]),)

    def places(self, t, index, dim):
        """Returns the places of a tensor to which scatter puts by an index of one dimension."""
        dim = self.axis(t, dim)
        each = mx.meshgrid(*[mx.arange(n) for n in index.shape], indexing="ij")
        return tuple([self.inside(index, t.shape[dim]) if i == dim else e for i, e in enumerate(each)])

    def cut(self, t, dim, start, length):
        """Returns a slice along one dimension, which MLX would make shorter than asked."""
        if not 0 <= start <= start + length <= t.shape[dim]:
            raise Unsupported("mlx checks no bounds")
        return t[self.sliced(t, dim, start, start + length, 1)]

    def windows(self, n, size, step):
        """Returns the places of each window along a dimension."""
        if not 0 < size <= n or step < 1:
            raise Unsupported("mlx checks no windows")
        return mx.arange(0, n - size + 1, step)[:, None] + mx.arange(size)

    def ends(self, n, sections):
        """Returns where sections end, the first of which are the longer ones."""
        return [n // sections * i + min(i, n % sections) for i in range(1, sections)]

    def loss(self, t, reduction, shape):
        if reduction == "batchmean":
            raise Unsupported("mlx has no mean over a batch")
        return {"none": lambda t: mx.reshape(t, shape), "mean": mx.mean, "sum": mx.sum}[reduction](t)

    def resized(self, t, size, scale, mode, align, antialias):
        """Resizes images, which MLX does by factors."""
        kinds = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
        image = t.shape[2:]
        if mode not in kinds or len(image) < 1:
            raise Unsupported("mlx has no interpolation %s" % mode)
        scale = [s / d for s, d in zip(self.each(size, len(image)), image)] if size is not None else scale
        scale = [float(f) for f in (scale if isinstance(scale, (list, tuple)) else [scale] * len(image))]
        if any(int(f * d) != f * d or mode == "nearest" and f % 1 for f, d in zip(scale, image)):
            raise Unsupported("mlx has its own places for this factor")
        scale = tuple(scale)
        return self.second(nn.Upsample(scale, kinds[mode], bool(align), bool(antialias))(self.last(t)))

    def over_last(self, t, normalized_shape):
        if len(normalized_shape) != 1 or t.shape[-1] != normalized_shape[0]:
            raise Unsupported("mlx normalizes the last axis alone")
        return t

    def batch_norm(self, t, mean, var, eps):
        norm = nn.BatchNorm(t.shape[-1], eps, affine=False)
        norm.running_mean, norm.running_var = mean, var
        return norm.eval()(t)

    def inside(self, index, size):
        """Returns an index that MLX reads without looking: it has no error for one beyond the end."""
        if not mx.issubdtype(index.dtype, mx.integer):
            raise Unsupported("mlx reads by integers alone")
        if index.size and not bool(mx.all((index >= -size) & (index < size))):
            raise Unsupported("mlx does not check indices")
        return index

    def indexing(self, t, index):
        """Returns an index whose numbers MLX would read beyond the end."""
        axis = 0
        for i in index if isinstance(index, tuple) else (index,):
            if i is Ellipsis or self.is_tensor(i) and i.dtype == mx.bool_:
                break
            if isinstance(i, int) and not -t.shape[axis] <= i < t.shape[axis]:
                raise Unsupported("mlx does not check indices")
            if self.is_tensor(i):
                self.inside(i, t.shape[axis])
            axis += i is not None
        return index

    def same(self, a, b):
        if a.shape != b.shape:
            raise Unsupported("mlx wants one shape")
        return a, b

    def of_dtype(self, v, dtype):
        return v.astype(dtype) if self.is_tensor(v) else mx.array(v, dtype=dtype)

    def bounds(self, sizes, total):
        """Returns where MLX is to split: before each part but the first."""
        if isinstance(sizes, int):
            return list(range(sizes, total, sizes))
        if sum(sizes) != total:
            raise Unsupported("mlx splits all of an axis")
        return [sum(sizes[:i]) for i in range(1, len(sizes))]

    def channelwise(self, weight, t):
        """Returns a weight of each channel in a shape that broadcasts over a tensor."""
        return mx.reshape(weight, [-1] + [1] * (len(t.shape) - 2)) if len(t.shape) > 1 else mx.reshape(weight, t.shape)

    def pads(self, t, pad):
        """Returns the widths of MLX's pad: two for each axis, the first axis first."""
        if min(pad, default=0) < 0:
            raise Unsupported("mlx has no negative padding")
        pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)][::-1]
        return [(0, 0)] * (len(t.shape) - len(pairs)) + pairs


adapter = MLX
