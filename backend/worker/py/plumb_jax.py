"""JAX: its functions are in jax.json, its gradients are jax.vjp of the program."""

import os
import random

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import jax.scipy  # not there by jax alone
import numpy as np
import plumb_subject
import plumb_table
from plumb_names import Unsupported

jax.config.update("jax_enable_x64", True)
if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    # Programs are small and many: one that takes less than a second is kept too.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)

LANES = 3  # of vmap
NEAR = 0.75  # times the case's own floats are those of other lanes: within most domains
SPATIAL = "DHW"  # the dimensions of a convolution's image beside batch and channels


class JAX(plumb_subject.Adapter):
    name, version = "jax", jax.__version__
    root, tensor_class = jax, jax.Array
    own = functional = True
    quick = ("vmap",)
    table = plumb_subject.table("jax.json")

    def __init__(self):
        self.modes, self.batching = {"jit": jax.jit, "vmap": self.batched}, False

    def gap(self, e):
        # What JAX says of arguments, shapes, dtypes, and of values that jit does not know.
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError, OverflowError))

    def seed(self, n):
        self.lane, self.choices, self.keys = n % LANES, random.Random(n), jax.random.key(n)

    def key(self):
        """Returns a key for what is drawn next."""
        if self.batching:
            raise Unsupported("no random calls under vmap")
        self.keys, key = jax.random.split(self.keys)
        return key

    def batched(self, f):
        """Returns a function of tensors as one lane of jax.vmap, whose other lanes hold other floats."""
        def call(*tensors):
            if not tensors:
                raise Unsupported("it has no tensors to batch")
            dims = [self.choices.choice((0, t.ndim, None)) for t in tensors]
            if all(d is None for d in dims):
                dims[0] = 0
            given = [t if d is None else self.lanes(t, d) for t, d in zip(tensors, dims)]
            self.batching = True
            try:
                lanes = jax.vmap(f, in_axes=tuple(dims))(*given)
            finally:
                self.batching = False
            return jax.tree.map(lambda t: t[self.lane], lanes)

        return call

    def lanes(self, t, dim):
        other = (t * NEAR).astype(t.dtype) if jnp.issubdtype(t.dtype, jnp.inexact) else t
        return jnp.stack([t if lane == self.lane else other for lane in range(LANES)], dim)

    def dtype(self, name):
        return jnp.dtype(name)

    def dtype_name(self, dtype):
        return getattr(dtype, "name", "")

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        return jnp.asarray(array, self.dtype(dtype))

    def array(self, t):
        array = np.asarray(t)
        return array.astype(np.float32) if t.dtype.name == "bfloat16" else array

    def memory_format(self, name):
        if name not in ("contiguous_format", "preserve_format"):
            raise Unsupported("jax has no %s" % name)
        return name

    def cast(self, t, dtype):
        return t.astype(self.dtype(dtype))

    def stop(self, v):
        return jax.tree.map(jax.lax.stop_gradient, v)

    def vjp(self, f, leaves, cotangents):
        # The gradient of a complex number is the conjugate of PyTorch's.
        _, back = jax.vjp(lambda *v: list(f(*v)), *leaves)
        return [jnp.conj(g) for g in back([jnp.conj(c) for c in cotangents])]

    # What calls of jax.json use.

    def of_dtype(self, v, dtype):
        return jnp.asarray(v, dtype)

    def inside(self, index, size):
        """Returns an index that JAX reads without an error for what is beyond the end."""
        if not jnp.issubdtype(index.dtype, jnp.integer):
            raise Unsupported("jax reads by integers alone")
        if not isinstance(index, jax.core.Tracer) and index.size and not bool(jnp.all((index >= -size) & (index < size))):
            raise Unsupported("jax does not check indices")
        return index

    def index(self, t, index):
        """Returns an index whose numbers JAX would read beyond the end, with arrays for lists."""
        if isinstance(index, list):
            index = jnp.asarray(index) if all(isinstance(i, (bool, int)) for i in index) else tuple(index)
        if isinstance(index, tuple):
            index = tuple(jnp.asarray(i) if isinstance(i, list) else i for i in index)
        axis = 0
        for i in index if isinstance(index, tuple) else (index,):
            if i is Ellipsis or self.is_tensor(i) and i.dtype == jnp.bool_:
                break
            if self.is_tensor(i):
                self.inside(i, t.shape[axis])
            elif isinstance(i, int) and not isinstance(i, bool) and not -t.shape[axis] <= i < t.shape[axis]:
                raise Unsupported("jax does not check indices")
            axis += i is not None
        return index

    def conv(self, t, weight, bias, stride, padding, dilation, groups):
        n = len(weight.shape) - 2
        if not isinstance(padding, str):
            padding = [(p, p) for p in self.each(padding, n)]
        image = t if len(t.shape) == n + 2 else t[None]
        out = jax.lax.conv_general_dilated(image, weight, self.each(stride, n), padding.upper() if isinstance(padding, str) else padding,
                                           rhs_dilation=self.each(dilation, n), dimension_numbers=self.layout("OI", n), feature_group_count=groups)
        return self.biased(out, bias).reshape(out.shape[len(image.shape) - len(t.shape):])

    def layout(self, kernel, n):
        image = "NC" + SPATIAL[:n]
        return image, kernel + SPATIAL[:n], image

    def biased(self, t, bias):
        return t if bias is None else t + self.channels(bias, t)

    def channels(self, v, t):
        """Returns a number for each channel in a shape that broadcasts over a tensor."""
        return None if v is None else v.reshape((1, -1) + (1,) * (len(t.shape) - 2))

    def conv_transpose(self, t, weight, bias, stride, padding, output_padding, dilation):
        n = len(weight.shape) - 2
        stride, padding, output_padding, dilation = (self.each(v, n) for v in (stride, padding, output_padding, dilation))
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
        image = t if len(t.shape) == n + 2 else t[None]
        out = jax.lax.conv_transpose(image, weight, stride, [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding)],
                                     rhs_dilation=dilation, dimension_numbers=self.layout("OI", n), transpose_kernel=True)
        return self.biased(out, bias).reshape(out.shape[len(image.shape) - len(t.shape):])

    def windows(self, t, n, kernel, stride, padding, dilation=1, ceil=False):
        """Returns the windows of a pooling as lax.reduce_window has them."""
        kernel, padding, dilation = (self.each(v, n) for v in (kernel, padding, dilation))
        stride = kernel if stride is None or stride == () or stride == [] else self.each(stride, n)
        if any(2 * p > k for p, k in zip(padding, kernel)):
            raise Unsupported("padding beyond half of the window")
        rest = len(t.shape) - n
        pairs = [(p, p + (self.beyond(*each) if ceil else 0)) for p, *each in zip(padding, t.shape[rest:], kernel, stride, padding, dilation)]
        return {"window_dimensions": (1,) * rest + kernel, "window_strides": (1,) * rest + stride,
                "padding": ((0, 0),) * rest + tuple(pairs), "window_dilation": (1,) * rest + dilation}

    def beyond(self, size, kernel, stride, padding, dilation):
        """Returns how far the last window of ceil_mode, which starts before the end, reaches beyond the padding."""
        reach = dilation * (kernel - 1) + 1
        n = -(-(size + 2 * padding - reach) // stride) + 1
        if (n - 1) * stride >= size + padding:
            n -= 1
        return max(0, (n - 1) * stride + reach - size - 2 * padding)

    def max_pool(self, t, n, kernel, stride, padding, dilation, ceil):
        return jax.lax.reduce_window(t, -jnp.inf, jax.lax.max, **self.windows(t, n, kernel, stride, padding, dilation, ceil))

    def avg_pool(self, t, n, kernel, stride, padding, ceil, count_include_pad, divisor=None):
        windows = self.windows(t, n, kernel, stride, padding, 1, ceil)
        total = jax.lax.reduce_window(t, 0.0, jax.lax.add, **windows)
        if divisor is not None:
            return (total / divisor).astype(t.dtype)
        counted = jnp.ones_like(t)
        if count_include_pad:
            inner = [(low, low) for low, _ in windows["padding"]]
            counted = jnp.pad(counted, inner, constant_values=1)
            windows["padding"] = [(0, high - low) for low, high in windows["padding"]]
        return (total / jax.lax.reduce_window(counted, 0.0, jax.lax.add, **windows)).astype(t.dtype)

    def times(self, factor, t):
        """Returns a product; none of a factor of 0, as in PyTorch's sums of products."""
        factor = int(factor) if jnp.issubdtype(t.dtype, jnp.integer) else factor
        return t if factor == 1 else jnp.zeros_like(t) if factor == 0 else (factor * t).astype(t.dtype)

    def lines(self, tensors):
        return [jnp.atleast_1d(t) for t in tensors]

    def reduced(self, loss, reduction):
        return {"none": lambda v: v, "mean": jnp.mean, "sum": jnp.sum}[reduction](loss)

    def weighed(self, loss, weight):
        return loss if weight is None else loss * weight

    def classed(self, t):
        return 1 if len(t.shape) > 1 else 0

    def classes(self, t, n):
        return int(t.max()) + 1 if n == -1 and t.size else n

    def nll(self, t, target, weight, ignored, reduction):
        """Returns the negative of what a tensor has at each example's class."""
        axis = self.classed(t)
        if not jnp.issubdtype(target.dtype, jnp.integer):
            raise Unsupported("jax has no losses of probabilities")
        counted = target != ignored
        safe = self.inside(jnp.where(counted, target, 0), t.shape[axis])
        weights = counted.astype(t.dtype) * (1 if weight is None else weight[safe])
        loss = jnp.where(counted, -jnp.take_along_axis(t, jnp.expand_dims(safe, axis), axis).squeeze(axis), 0) * weights
        return jnp.sum(loss) / jnp.sum(weights) if reduction == "mean" else self.reduced(loss, reduction)

    def logdet(self, found):
        """Returns the logarithm of a determinant, NaN of one below 0."""
        return jnp.where(found[0] < 0, jnp.nan, found[1])

    def resize(self, t, size, method, antialias):
        return jax.image.resize(t, t.shape[:2] + self.each(self.given(size), len(t.shape) - 2), method, antialias=antialias)

    def affine(self, t, weight, bias):
        return self.biased(t if weight is None else t * self.channels(weight, t), bias)

    def group_norm(self, t, groups, weight, bias, eps):
        if t.shape[1] % groups:
            raise Unsupported("groups that are not all of the channels")
        parts = jax.nn.standardize(t.reshape(t.shape[0], groups, -1), axis=-1, epsilon=eps)
        return self.affine(parts.reshape(t.shape), weight, bias)

    def space(self, t):
        """Returns the dimensions beside batch and channels."""
        return tuple(range(2, len(t.shape)))

    def slopes(self, weight, t):
        """Returns the slope of prelu for each channel, or the one of all."""
        return weight.reshape(()) if weight.size == 1 else self.channels(weight, t)

    def patches(self, t, kernel, dilation, padding, stride):
        if len(t.shape) == 3:
            return self.patches(t[None], kernel, dilation, padding, stride)[0]
        found = jax.lax.conv_general_dilated_patches(t, self.each(kernel, 2), self.each(stride, 2), [(p, p) for p in self.each(padding, 2)],
                                                     rhs_dilation=self.each(dilation, 2))
        return found.reshape(*found.shape[:2], -1)

    def edges(self, t, pad):
        """Returns the widths of lax.pad, which may be negative."""
        return [(low, high, 0) for low, high in self.widths(t, pad)]

    def doubles(self, *values):
        """Returns tensors in float64 or complex128."""
        return [self.cast(v, "complex128" if jnp.iscomplexobj(v) else "float64") if self.is_tensor(v) else v for v in values]

    def quotient(self, a, b):
        """Returns the quotient of integers, rounded towards zero."""
        dtype = plumb_table.promoted(self, (a, b))
        return jax.lax.div(*jnp.broadcast_arrays(self.of_dtype(a, dtype), self.of_dtype(b, dtype)))

    def at(self, t, index, dim):
        """Returns the places of a tensor to which scatter puts by an index of one dimension."""
        places = list(jnp.indices(index.shape, sparse=True))
        places[self.axis(t, dim)] = self.inside(index, t.shape[dim])
        return t.at[tuple(places)]

    def attention(self, query, key, value, mask, causal, scale):
        if len(query.shape) != 4:
            raise Unsupported("jax has attention of 4 dimensions alone")
        bias = {"mask" if mask is not None and mask.dtype == jnp.bool_ else "bias": mask}
        heads = [jnp.swapaxes(t, 1, 2) for t in (query, key, value)]
        return jnp.swapaxes(jax.nn.dot_product_attention(*heads, is_causal=causal, scale=scale, **bias), 1, 2)


adapter = JAX
