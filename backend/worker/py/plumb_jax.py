"""JAX: its functions are in jax.json, its gradients are jax.vjp of the program."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import jax.scipy  # not there by jax alone
import numpy as np
import plumb_subject
from plumb_names import Unsupported

jax.config.update("jax_enable_x64", True)
if os.environ.get("JAX_COMPILATION_CACHE_DIR"):
    # Programs are small and many: one that takes less than a second is kept too.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)

SPATIAL = "DHW"  # the dimensions of a convolution's image beside batch and channels


class JAX(plumb_subject.Adapter):
    name, version = "jax", jax.__version__
    root, tensor_class = jax, jax.Array
    own = functional = True
    table = plumb_subject.table("jax.json")
    modes = {"jit": jax.jit}

    def gap(self, e):
        # What JAX says of arguments, shapes, dtypes, and of values that jit does not know.
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError, OverflowError))

    def seed(self, n):
        pass

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
        """Returns an index whose numbers JAX would read beyond the end."""
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

    def windows(self, t, n, kernel, stride, padding, dilation=1):
        """Returns the windows of a pooling as lax.reduce_window has them."""
        kernel = self.each(kernel, n)
        stride = kernel if stride is None or stride == () or stride == [] else self.each(stride, n)
        rest = len(t.shape) - n
        if any(2 * p > k for p, k in zip(self.each(padding, n), kernel)):
            raise Unsupported("padding beyond half of the window")
        return {"window_dimensions": (1,) * rest + kernel, "window_strides": (1,) * rest + stride,
                "padding": ((0, 0),) * rest + tuple((p, p) for p in self.each(padding, n)), "window_dilation": (1,) * rest + self.each(dilation, n)}

    def max_pool(self, t, n, kernel, stride, padding, dilation):
        return jax.lax.reduce_window(t, -jnp.inf, jax.lax.max, **self.windows(t, n, kernel, stride, padding, dilation))

    def avg_pool(self, t, n, kernel, stride, padding, count_include_pad):
        windows = self.windows(t, n, kernel, stride, padding)
        count = np.prod(self.each(kernel, n)) if count_include_pad else jax.lax.reduce_window(jnp.ones_like(t), 0.0, jax.lax.add, **windows)
        return (jax.lax.reduce_window(t, 0.0, jax.lax.add, **windows) / count).astype(t.dtype)

    def resize(self, t, size, method, antialias):
        return jax.image.resize(t, t.shape[:2] + self.each(self.given(size), len(t.shape) - 2), method, antialias=antialias)

    def affine(self, t, weight, bias):
        return self.biased(t if weight is None else t * self.channels(weight, t), bias)

    def attention(self, query, key, value, mask, causal, scale):
        if len(query.shape) != 4:
            raise Unsupported("jax has attention of 4 dimensions alone")
        bias = {"mask" if mask is not None and mask.dtype == jnp.bool_ else "bias": mask}
        heads = [jnp.swapaxes(t, 1, 2) for t in (query, key, value)]
        return jnp.swapaxes(jax.nn.dot_product_attention(*heads, is_causal=causal, scale=scale, **bias), 1, 2)


adapter = JAX
