"""What the rules of gradients compute, in operators of ONNX: the calls of
onnx.json that no public name of PyTorch's means.
"""

import math

import numpy as np


class Rules:
    """The part of an adapter that gradients need."""

    def imaged(self, map, weight, size, stride, padding, dilation, groups):
        """Returns the image, of a size, that receives a map through weights."""
        rest = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for n, m, k, s, p, d in
                zip(size, map.shape[2:], weight.shape[2:], stride, padding, dilation)]
        self.check(map, all(0 <= r < max(s, d) for r, s, d in zip(rest, stride, dilation)))
        return self.convolved("ConvTranspose", len(size), map, weight, None, stride, padding, dilation, groups, output_padding=rest)

    def weighted(self, image, map, size, stride, padding, dilation, groups):
        """Returns the weights, with kernels of a size, that connect an image and a map: a
        convolution of the image by the map, in which batch and channels change places."""
        n, found = len(size), []
        channels = [t.shape[1] // groups for t in (image, map)]
        for x, y in zip(self.parts(image, channels[0], 1), self.parts(map, channels[1], 1)):
            x, y = self.swapped(x, 0, 1), self.swapped(y, 0, 1)
            w = self.convolved("Conv", n, x, y, None, dilation, padding, stride, 1)
            found.append(self.swapped(self.corner(w, w.shape[:2] + tuple(size)), 0, 1))
        return found[0] if groups == 1 else self.op("Concat", *found, axis=0)

    def placed(self, t, source, dim, start, end, step):
        """Returns a tensor with others in the place of a slice of it."""
        places = range(*slice(start, end, step).indices(t.shape[dim]))
        return self.op("ScatterElements", t, self.along(self.constant(np.arange(places.start, places.stop, places.step)), source, dim), source, axis=dim)

    def constant(self, array):
        return self.literal(array, np.int64)

    def along(self, index, source, dim):
        """Returns indices of a dimension in the shape of a source."""
        self.check(source, source.ndim > 0 and index.size == source.shape[dim])
        shape = [1] * source.ndim
        shape[dim] = index.size
        return self.op("Expand", self.reshape(self.inside(index), shape), source.shape)

    def scattered(self, t, indices, size):
        """Adds each element to the position of its plane, of a size, that an index names."""
        head = t.shape[:t.ndim - len(size)]
        flat = [self.reshape(v, head + (math.prod(v.shape[len(head):]),)) for v in (t, self.inside(indices))]
        zeros = self.full(head + (math.prod(size),), 0, t.dtype)
        return self.reshape(self.op("ScatterElements", zeros, flat[1], flat[0], axis=-1, reduction="add"), head + tuple(size))

    def won(self, kind, n, t, *arguments, **attributes):
        """Returns the maxima of a pooling and where in their plane they stand, which ONNX counts through all planes."""
        values, places = self.pooled(kind, n, t, *arguments, outputs=2, **attributes)
        return values, self.op("Mod", places, math.prod(t.shape[t.ndim - n:]))

    def layers_backward(self, grad, t, shape, weight, eps):
        """Returns the gradients of layer_norm: of its input, weight and bias."""
        first = t.ndim - len(shape)
        by = grad if weight is None else self.op("Mul", grad, weight)
        return self.norm_backward(grad, by, t, list(range(first, t.ndim)), list(range(first)), eps)

    def channels(self, v, t):
        """Returns a number for each channel in a shape that broadcasts over a tensor."""
        return self.reshape(v, (1, -1) + (1,) * (t.ndim - 2))

    def batches_backward(self, grad, t, weight, eps):
        """Returns the gradients of batch_norm: of its input, weight and bias."""
        axes = list(self.without(t, 1))
        by = grad if weight is None else self.op("Mul", grad, self.channels(weight, t))
        return self.norm_backward(grad, by, t, axes, axes, eps)

    def moments(self, t, eps):
        """Returns the mean of each channel and the reciprocal of its deviation, with dimensions of 1."""
        return self.normed(t, list(self.without(t, 1)), eps)[:2]

    def normed(self, t, axes, eps):
        """Returns the means over axes, the reciprocals of the deviations, and what is normalised by them."""
        mean = self.op("ReduceMean", t, axes, keepdims=1)
        off = self.op("Sub", t, mean)
        variance = self.op("ReduceMean", self.op("Mul", off, off), axes, keepdims=1)
        scale = self.op("Reciprocal", self.op("Sqrt", self.op("Add", variance, eps)))
        return mean, scale, self.op("Mul", off, scale)

    def norm_backward(self, grad, by, t, axes, sums, eps):
        """Returns the gradients of what is normalised over axes, given that of the result and that
        times the weight; those of weight and bias are sums."""
        def mean(v):
            return self.op("ReduceMean", v, axes, keepdims=1)

        _, scale, unit = self.normed(t, axes, eps)
        back = self.op("Sub", self.op("Sub", by, mean(by)), self.op("Mul", unit, mean(self.op("Mul", by, unit))))
        added = [self.op("ReduceSum", g, sums, keepdims=0) if sums else g for g in (self.op("Mul", grad, unit), grad)]
        return (self.op("Mul", back, scale), *added)

    def spread(self, grad, size, kernel, stride, padding, padded, divisor):
        """Returns images of a size in which each window of an average has its share: a transposed convolution by ones."""
        n, inner = len(size), grad.shape[grad.ndim - len(size):]
        stride = tuple(stride or kernel)
        counts = np.ones((), np.int64)
        for m, d, k, s, p in zip(inner, size, kernel, stride, padding):
            starts = np.arange(m) * s - p
            low, high = (-p, d + p) if padded else (0, d)
            counts = np.multiply.outer(counts, np.minimum(starts + k, high) - np.maximum(starts, low))
        share = self.literal(1 / (divisor or counts), grad.dtype)
        planes = self.reshape(self.op("Mul", grad, share), (-1, 1) + inner)
        whole = self.op("ConvTranspose", planes, self.full((1, 1) + tuple(kernel), 1, grad.dtype), strides=stride)
        reach = [max(0, p + d - w) for p, d, w in zip(padding, size, whole.shape[2:])]
        whole = self.op("Pad", whole, [0] * (n + 4) + reach)
        cut = self.op("Slice", whole, list(padding), [p + d for p, d in zip(padding, size)], list(range(2, n + 2)))
        return self.reshape(cut, grad.shape[:grad.ndim - n] + tuple(size))

    def unpadded(self, t, size, pad, mode):
        """Returns the part of a padded tensor that is not padding."""
        self.check(t, mode == "constant" and min(pad, default=0) >= 0)
        starts = self.pads(t, pad)[:t.ndim]
        return self.op("Slice", t, starts, [a + d for a, d in zip(starts, size)])
