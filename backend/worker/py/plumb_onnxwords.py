"""What calls of onnx.json use: how elements are moved, put in places and drawn in operators of ONNX."""

import math

import numpy as np
import plumb_onnxfile as onnxfile
from plumb_names import Unsupported
from plumb_onnxlosses import Losses
from plumb_onnxorder import Order
from plumb_onnxrules import Rules


class Places:
    """The part of an adapter that moves elements and puts some in the place of others."""

    def moved(self, t, source, destination):
        """Moves dimensions; the others keep their order."""
        source, destination = ([self.axis(t, d) for d in self.listed(v)] for v in (source, destination))
        self.check(t, len(set(source)) == len(source) == len(destination) == len(set(destination)))
        axes = [d for d in range(t.ndim) if d not in source]
        for to, of in sorted(zip(destination, source)):
            axes.insert(to, of)
        return self.permuted(t, axes)

    def rolled(self, t, shifts, dims):
        """Rolls along dimensions, or along all as one."""
        dims = self.listed(dims)
        if not dims:
            return self.reshape(self.rolled(self.flatten(t, 0, -1), shifts, [0]), t.shape)
        for shift, dim in zip(self.each(shifts, len(dims)), dims):
            start = t.shape[dim] - shift % max(t.shape[dim], 1)
            t = self.op("Concat", self.cut(t, dim, start, t.shape[dim]), self.cut(t, dim, 0, start), axis=dim)
        return t

    def flipped(self, t, dims):
        self.check(t, len({d % t.ndim for d in dims}) == len(dims))
        n = len(dims)
        return self.op("Slice", t, [-1] * n, [-(1 << 62)] * n, dims, [-1] * n) if n else self.op("Identity", t)

    def turned(self, t, k, dims):
        """Rotates in the plane of two dimensions, k times by 90 degrees."""
        first, second = dims
        if k % 2 == 0:
            return self.flipped(t, dims if k % 4 else ())
        swapped = self.swapped(t, first, second)
        return self.flipped(swapped, [first if k % 4 == 1 else second])

    def windows(self, t, dim, size, step):
        """Returns all windows along a dimension, their elements last."""
        dim = self.axis(t, dim)
        starts = np.arange(0, t.shape[dim] - size + 1, step)
        found = self.op("Gather", t, self.literal(starts[:, None] + np.arange(size), np.int64), axis=dim)
        return self.moved(found, dim + 1, t.ndim)

    def diagonal(self, t, offset, first, second):
        """Returns a diagonal of the planes of two dimensions as the last dimension."""
        planes = self.moved(t, [first, second], [t.ndim - 2, t.ndim - 1])
        rows, columns = planes.shape[-2:]
        places = np.arange(rows * columns).reshape(rows, columns).diagonal(offset)
        return self.op("Gather", self.reshape(planes, (*planes.shape[:-2], rows * columns)), self.literal(places, np.int64), axis=t.ndim - 2)

    def repeated(self, t, repeats, dim):
        """Repeats each element along a dimension, or each of all."""
        if dim is None:
            return self.repeated(self.flatten(t, 0, -1), repeats, 0)
        places = np.repeat(np.arange(t.shape[dim]), repeats.value if self.is_tensor(repeats) else repeats)
        return self.op("Gather", t, self.literal(places, np.int64), axis=dim)

    def shuffled(self, t, shape, axes, result):
        """Takes dimensions apart and joins them in another order."""
        return self.reshape(self.permuted(self.reshape(t, shape), axes), result)

    def unshuffled(self, t, n):
        *batch, channels, height, width = self.check(t, t.ndim > 2).shape
        self.check(t, height % n == 0 and width % n == 0)
        many = math.prod(batch)
        return self.shuffled(t, (many, channels, height // n, n, width // n, n), (0, 1, 3, 5, 2, 4), (*batch, channels * n * n, height // n, width // n))

    def grouped(self, t, groups):
        self.check(t, t.ndim > 2 and t.shape[1] % groups == 0)
        rest = range(3, t.ndim + 1)
        return self.shuffled(t, (t.shape[0], groups, t.shape[1] // groups, *t.shape[2:]), (0, 2, 1, *rest), t.shape)

    def pieces(self, t, where, dim):
        """Splits into a number of parts, the first of which are the longer ones, or before each of the places."""
        n = t.shape[self.axis(t, dim)]
        if isinstance(where, int):
            sizes = [n // where + (i < n % where) for i in range(where)]
        else:
            ends = [max(0, min(n, i + n if i < 0 else i)) for i in where] + [n]
            sizes = [b - a for a, b in zip([0, *ends], ends)]
        return self.parts(t, sizes, dim)

    def least(self, t, n):
        """Returns a tensor of at least n dimensions, as atleast_1d, 2d and 3d do."""
        shape = t.shape
        if t.ndim < n:
            shape = {0: (1,) * n, 1: (1,) * (n > 1) + shape + (1,) * (n - 2), 2: shape + (1,)}[t.ndim]
        return self.reshape(t, shape)

    def together(self, tensors, dim, ranks):
        """Joins tensors of at least some dimensions."""
        return self.op("Concat", *self.alike(*[self.least(t, ranks) for t in tensors]), axis=dim)

    def columns(self, tensors):
        return self.op("Concat", *self.alike(*[self.reshape(t, (-1, 1)) if t.ndim < 2 else t for t in tensors]), axis=1)

    def common(self, tensors):
        shape = np.broadcast_shapes(*[t.shape for t in tensors])
        return tuple([self.expand(t, shape) for t in tensors])

    def grid(self, tensors):
        sizes = [math.prod(self.ranked(t, 0, 1).shape) for t in tensors]
        return tuple([self.expand(self.reshape(t, (1,) * i + (n,) + (1,) * (len(sizes) - i - 1)), sizes) for i, (t, n) in enumerate(zip(tensors, sizes))])

    def powered(self, t, n):
        """Multiplies a matrix by itself."""
        self.check(t, n > 0 and t.ndim > 1 and t.shape[-1] == t.shape[-2])
        found = t
        for _ in range(n - 1):
            found = self.op("MatMul", found, t)
        return found

    def filled_with(self, t, value):
        """Returns what has a tensor's shape and dtype, and the elements of another or a number."""
        return self.expand(self.to(value, t.dtype), t.shape) if self.is_tensor(value) else self.op("Expand", self.full((), value, t.dtype), t.shape)

    def put(self, t, index, value, reduction="none"):
        """Returns a tensor but for the elements at an index, whose tensors are read as the program is written."""
        whole = self.is_tensor(index) and index.dtype == bool and reduction == "none"
        if whole and (not self.is_tensor(value) or value.size == 1):
            mask = self.reshape(index, index.shape + (1,) * (t.ndim - index.ndim))
            return self.op("Where", mask, self.to(self.reshape(value, ()), t.dtype) if self.is_tensor(value) else self.full((), value, t.dtype), t)
        parts = tuple([i.value if self.is_tensor(i) else i for i in (index if isinstance(index, tuple) else (index,))])
        places = np.arange(t.size).reshape(t.shape)[parts]
        value = self.expand(self.to(value, t.dtype), places.shape) if self.is_tensor(value) else self.full(places.shape, value, t.dtype)
        flat = self.op("ScatterElements", self.flatten(t, 0, -1), self.literal(places.reshape(-1), np.int64), self.flatten(value, 0, -1), reduction=reduction)
        return self.reshape(flat, t.shape)

    def spaced(self, start, end, steps, dtype):
        """Returns numbers at equal distances, counted from both ends as PyTorch does."""
        self.check(dtype, dtype.kind == "f" and steps >= 0)
        if steps < 2:
            return self.op("Expand", self.full((), start, dtype), [steps])
        step, half = self.full((), (end - start) / (steps - 1), dtype), steps // 2

        def counted(v, low, high):
            return self.op("Add", self.full((), v, dtype), self.op("Mul", self.to(self.op("Range", *self.scalars(np.int64, low, high, 1)), dtype), step))

        return self.op("Concat", counted(start, 0, half), counted(end, half + 1 - steps, 1), axis=0)

    def tuple(self, values):
        return tuple(values)

    def spread_out(self, t, diagonal):
        """Returns a matrix that has a vector on a diagonal."""
        n = t.size + abs(diagonal)
        rows = np.arange(t.size)
        return self.put(self.full((n, n), 0, t.dtype), (rows + max(-diagonal, 0), rows + max(diagonal, 0)), t)

    def unwrapped(self, data):
        """Returns nested lists with numbers in the place of tensors of one element, read as the program is written."""
        if isinstance(data, (list, tuple)):
            return [v.value.reshape(()).item() if self.is_tensor(v) and v.size == 1 else self.unwrapped(v) for v in data]
        return data.value if self.is_tensor(data) else data

    def sliced_by(self, i):
        return slice(*self.unwrapped([i.start, i.stop, i.step])) if isinstance(i, slice) else i

    def whole_numbers(self, i):
        """Returns an index of integers; a mask of one dimension is read for one as the program is written."""
        return self.literal(np.flatnonzero(i.value), np.int64) if i.dtype == bool and i.ndim == 1 else i

    def masked_rows(self, t, mask):
        """Returns the rows of a tensor that a mask of its first dimensions names."""
        self.check(t, t.shape[:mask.ndim] == mask.shape and mask.ndim)
        return self.op("Compress", self.reshape(t, (mask.size, *t.shape[mask.ndim:])), self.flatten(mask, 0, -1), axis=0)

    def at_points(self, t, indices):
        """Returns what several tensors of integers choose in the first dimensions."""
        shape = np.broadcast_shapes(*[i.shape for i in indices])
        each = [self.op("Unsqueeze", self.expand(self.to(i, np.dtype(np.int64)), shape), [-1]) for i in indices]
        return self.op("GatherND", t, self.op("Concat", *each, axis=-1))

    def integers(self, index):
        return self.check(index, index.dtype == np.int64)

    def chosen(self, t, indices):
        """Returns what tensors of integers choose along their axes; what axes that are not neighbours choose comes first."""
        axes = list(indices)
        if len(axes) < 2:
            return self.op("Gather", t, self.integers(indices[axes[0]]), axis=axes[0]) if axes else t
        first, rest = axes[0], t.ndim - len(axes)
        found = self.at_points(self.moved(t, axes, range(len(axes))), [self.integers(i) for i in indices.values()])
        shape = range(found.ndim - rest)
        return self.moved(found, shape, [first + d for d in shape]) if axes[-1] - first < len(axes) else found

    def unpooled(self, n, t, indices, kernel, stride, padding, size):
        """Puts what pooling took back to its places, which PyTorch counts in each plane."""
        kernel, stride, padding = self.each(kernel, n), self.each(stride or kernel, n), self.each(padding, n)
        inner = self.ranked(t, n + 2).shape[2:]
        size = tuple(size)[-n:] if size else [(m - 1) * s - 2 * p + k for m, k, s, p in zip(inner, kernel, stride, padding)]
        planes = np.arange(math.prod(t.shape[:2])).reshape(t.shape[:2] + (1,) * n) * math.prod(size)
        places = self.op("Add", self.inside(indices), self.literal(planes, np.int64))
        return self.op("MaxUnpool", t, places, [*t.shape[:2], *size], kernel_shape=kernel, strides=stride, pads=padding * 2)

    def adaptively_won(self, n, t, output_size):
        image = self.ranked(t, n + 1, n + 2).shape[-n:]
        sizes = [d if s is None else s for d, s in zip(image, self.each(output_size, n))]
        if n == 1 and sizes[0] > 0 and image[0] % sizes[0]:
            return self.won_in_windows(t, image[0], sizes[0])
        self.check(t, all(s > 0 and d % s == 0 for d, s in zip(image, sizes)))
        return self.won("MaxPool", n, t, [d // s for d, s in zip(image, sizes)], None, 0)

    def won_in_windows(self, t, d, m):
        """Returns the maxima of windows of rows, and where they stand."""
        values, places = self.windowed("ReduceMax", 1, t, [m]), []
        for j in range(m):
            start = j * d // m
            part = self.op("ArgMax", self.cut(t, -1, start, -(-(j + 1) * d // m)), axis=-1, keepdims=1)
            places.append(self.op("Add", part, start))
        return values, self.op("Concat", *places, axis=-1)

    def scaled(self, scale, n):
        """Returns the factor of each dimension."""
        return [scale] * n if isinstance(scale, (int, float)) else self.check(scale, len(scale) == n)

    def uniques(self, t, dim, *which):
        """Returns the sorted elements of a tensor, each once, and their places or counts."""
        along = {} if dim is None else {"axis": dim}
        found = self.op("Unique", t if along else self.flatten(t, 0, -1), sorted=1, outputs=4, **along)
        parts = {"values": found[0], "inverse": found[2] if along else self.reshape(found[2], t.shape), "counts": found[3]}
        return parts["values"] if not which else tuple([parts["values"], *[parts[w] for w in which]])

    def placed_at(self, t, index, dim, value):
        """Returns a tensor with one value wherever an index points along a dimension."""
        shape = tuple(index.size if i == self.axis(t, dim) else d for i, d in enumerate(t.shape))
        value = self.expand(self.to(value, t.dtype), shape) if self.is_tensor(value) else self.full(shape, value, t.dtype)
        return self.op("ScatterElements", t, self.along(self.ranked(index, 1), value, dim), value, axis=dim)

    def masked(self, t, mask):
        """Returns the elements of a tensor and those of its mask as vectors."""
        shape = np.broadcast_shapes(t.shape, mask.shape)
        return [self.flatten(self.expand(v, shape), 0, -1) for v in (t, mask)]

    def each_row(self, t):
        return self.unbind(t, 0)

    def same(self, a, b):
        if a.shape != b.shape:
            return False
        return bool(self.op("ReduceMin", self.cast(self.op("Equal", *self.alike(a, b)), "int32"), keepdims=0).value) if a.size else True


class Draws:
    """The part of an adapter that draws: each call has a seed of its own, the same whenever the program runs."""

    drawn, seeded = 0, 0

    def seed(self, n):
        self.seeded, self.drawn = n, 0

    def key(self):
        """Returns the seed of a call, which ONNX takes as a float."""
        self.drawn += 1
        return float((self.seeded * 1021 + self.drawn * 7919) % (1 << 24))

    def draw(self, kind, size, dtype, **attributes):
        self.check(dtype, dtype.kind == "f")
        return self.op(kind, shape=list(size), dtype=onnxfile.TYPES[dtype.name], seed=self.key(), **attributes)

    def single(self, kind, dtype, attributes):
        """Checks that what ONNX takes as a float32 is one, where float64 is computed with it."""
        for name, v in attributes.items() if dtype == np.float64 else ():
            if isinstance(v, float) and float(np.float32(v)) != v:
                raise Unsupported("%s has %s of %s in float32 alone" % (self.name, name, kind))

    def matched(self, t, index, dim):
        """Returns a tensor and an index along one of its dimensions, with the others of equal sizes."""
        dim = self.axis(self.check(t, index.ndim == t.ndim), dim)
        others = np.broadcast_shapes(*[v.shape[:dim] + (1,) + v.shape[dim + 1:] for v in (t, index)])
        wide = [others[:dim] + (v.shape[dim],) + others[dim + 1:] for v in (t, index)]
        return [v if v.shape == shape else self.op("Expand", v, list(shape)) for v, shape in zip((t, index), wide)]

    def bernoulli(self, probabilities, dtype):
        return self.op("Bernoulli", probabilities, dtype=onnxfile.TYPES[dtype.name], seed=self.key())

    def drawn_integers(self, low, high, size, dtype):
        """Draws integers from low to before high, as the whole parts of uniform numbers, which are float32."""
        self.check(high, 0 < high - low < 1 << 20)
        found = self.op("Floor", self.draw("RandomUniform", size, np.dtype(np.float32), low=0.0, high=float(high - low)))
        return self.op("Add", self.cast(self.op("Min", found, high - low - 1), dtype.name), low)

    def shuffled_places(self, n, dtype):
        found = self.op("TopK", self.draw("RandomUniform", [n], np.dtype(np.float64)), [n], axis=0, outputs=2)[1]
        return self.to(found, dtype)

    def mask(self, t, shape, p, scale):
        """Draws what dropout multiplies by."""
        return self.op("Mul", self.bernoulli(self.full(shape, 1 - p, np.dtype(np.float32)), t.dtype), scale)

    def sampled(self, t, n):
        """Draws places by weights."""
        if t.ndim not in (1, 2):
            raise Unsupported("weights of %d dimensions" % t.ndim)
        rows = self.op("Log", t if t.ndim == 2 else self.op("Unsqueeze", t, [0]))
        found = self.op("Multinomial", rows, sample_size=n, dtype=onnxfile.TYPES["int64"], seed=self.key())
        return found if t.ndim == 2 else self.op("Squeeze", found, [0])

    def dropped(self, t, p, training):
        return self.op("Dropout", t, self.full((), p, t.dtype), self.full((), training, np.bool_), seed=int(self.key()))


class Parts(Draws, Places, Losses, Order, Rules):
    """What the adapter has beside what is asked of every adapter."""
