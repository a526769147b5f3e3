"""What is sorted, searched, counted and laid out anew, in operators of ONNX."""

import itertools
import math

import numpy as np


class Order:
    """The part of an adapter that orders elements and joins tensors."""

    def ordered(self, t, dim):
        """Returns the elements along a dimension in ascending order, and where they stood."""
        self.check(t, t.ndim and t.size and not (t.dtype.kind == "f" and np.isnan(t.value).any()))
        return self.op("TopK", t, [t.shape[dim]], axis=dim, largest=0, outputs=2)

    def kth(self, t, k, dim, keepdim):
        """Returns the k-th smallest element along a dimension, and where it stands."""
        self.check(t, t.ndim and 0 < k <= t.shape[dim])
        found = [self.cut(v, dim, k - 1, k) for v in self.ordered(t, dim)]
        return tuple(found if keepdim else [self.op("Squeeze", v, [dim]) for v in found])

    def middle(self, t, dim, keepdim=False):
        return self.kth(t, (self.check(t, t.ndim).shape[dim] + 1) // 2, dim, keepdim)

    def quantiles(self, t, q, dim, keepdim, kind):
        """Returns what lies at parts of the way through the sorted elements, between two of them."""
        self.check(t, kind == "linear" and t.size)
        q = q if self.is_tensor(q) else self.full((), q, t.dtype)
        self.check(q, q.ndim < 2)
        if dim is None:
            ones = (1,) * t.ndim
            t, dim = self.flatten(t, 0, -1), 0
        else:
            ones = None
        rows = self.ordered(t, dim)[0]
        n = t.shape[dim]
        places = self.op("Mul", self.to(q, t.dtype), float(n - 1))
        low, high = self.op("Floor", places), self.op("Ceil", places)
        ends = [self.moved(self.op("Gather", rows, self.cast(self.reshape(v, (q.size,)), "int64"), axis=dim), dim, 0) for v in (low, high)]
        share = self.reshape(self.op("Sub", places, low), (q.size,) + (1,) * (t.ndim - 1))
        found = self.op("Add", ends[0], self.op("Mul", self.op("Sub", ends[1], ends[0]), share))
        rest = list(found.shape[1:])
        if keepdim:
            rest = list(ones) if ones is not None else rest[:self.axis(t, dim)] + [1] + rest[self.axis(t, dim):]
        return self.reshape(found, (*q.shape, *rest))

    def searched(self, rows, t, right):
        """Returns how many of the sorted elements are before each."""
        rows, t = self.alike(rows, t)
        self.check(rows, rows.ndim == 1 or rows.ndim == t.ndim and rows.shape[:-1] == t.shape[:-1])
        row = rows if rows.ndim == 1 else self.op("Unsqueeze", rows, [-2])
        before = self.op("LessOrEqual" if right else "Less", row, self.op("Unsqueeze", t, [-1]))
        return self.op("ReduceSum", self.cast(before, "int64"), [-1], keepdims=0)

    def counted(self, t, weights, least):
        """Returns how often each number occurs, or the sums of its weights."""
        self.check(t, t.ndim == 1 and t.dtype.kind in "iu" and not (t.value < 0).any())
        n = max(int(t.value.astype(np.int64).max(initial=-1)) + 1, least)  # of uint8 nothing is below 0
        if weights is None or not t.size:
            weights = self.full(t.shape, 1, np.dtype(np.int64))
        elif weights.dtype != np.float32:
            weights = self.cast(weights, "float64")
        return self.op("ScatterElements", self.full((n,), 0, weights.dtype), self.cast(t, "int64"), weights, axis=0, reduction="add")

    def neighbours(self, t, dim, *which):
        """Returns the first of equal neighbours, and to which it counts or how many they are."""
        self.check(t, dim is None and t.size)
        flat = self.flatten(t, 0, -1)
        n = flat.shape[0]
        new = self.op("Not", self.op("Equal", self.cut(flat, 0, 1, n), self.cut(flat, 0, 0, n - 1)))
        new = self.op("Concat", self.literal([True], bool), new, axis=0)
        values = self.op("Compress", flat, new, axis=0)
        inverse = self.op("Sub", self.op("CumSum", self.cast(new, "int64"), self.whole(0)), 1)
        counts = self.op("ScatterElements", self.full(values.shape, 0, np.dtype(np.int64)), inverse, self.full((n,), 1, np.dtype(np.int64)), axis=0, reduction="add")
        parts = {"inverse": self.reshape(inverse, t.shape), "counts": counts}
        return (values, *[parts[w] for w in which]) if which else values

    def differences(self, t, n, dim, before, after):
        parts = [self.alike(v, t)[0] for v in (before, t, after) if v is not None]
        t = self.op("Concat", *parts, axis=dim) if len(parts) > 1 else t
        for _ in range(self.check(n, n > 0)):
            pair = [self.cut(t, dim, 1, t.shape[dim]), self.cut(t, dim, 0, t.shape[dim] - 1)]
            t = self.op("Xor" if t.dtype == bool else "Sub", *pair)
        return t

    def spilled(self, t, mask, source):
        """Returns a tensor whose masked elements are those of a source, in its order."""
        places = np.flatnonzero(self.expand(mask, t.shape).value)
        source = self.flatten(self.to(source, t.dtype), 0, -1)
        self.check(source, source.size >= places.size)
        found = self.op("ScatterElements", self.flatten(t, 0, -1), self.literal(places, np.int64), self.cut(source, 0, 0, places.size))
        return self.reshape(found, t.shape)

    def gathered_anew(self, t, index, source, dim, reduce):
        """Scatters over the elements, which count for nothing where others come."""
        starts = {"sum": 0, "mean": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}
        self.check(t, t.dtype.kind == "f" and reduce in starts)
        index, source = self.inside(index), self.corner(source, index.shape)
        t = self.op("ScatterElements", t, index, self.full(index.shape, starts[reduce], t.dtype), axis=dim)
        kind = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]
        t = self.op("ScatterElements", t, index, source, axis=dim, reduction=kind)
        if reduce != "mean":
            return t
        ones = self.full(index.shape, 1, t.dtype)
        counts = self.op("ScatterElements", self.full(t.shape, 0, t.dtype), index, ones, axis=dim, reduction="add")
        return self.op("Div", t, self.op("Max", counts, 1.0))

    def until(self, t, dim, neutral):
        """Returns for each place along a dimension, which comes last but one, all elements until there, the others neutral."""
        dim = self.axis(self.check(t, t.ndim), dim)
        t = self.moved(t, dim, t.ndim - 1)
        n = t.shape[-1]
        mask = self.literal(np.tril(np.ones((n, n), bool)), bool)
        return self.op("Where", mask, self.op("Unsqueeze", t, [-2]), self.full((), neutral, t.dtype))

    def running(self, kind, t, dim, neutral, **attributes):
        """Reduces the elements until each place along a dimension."""
        if not t.ndim:
            return self.op("Identity", t)
        return self.moved(self.op(kind, self.until(t, dim, neutral), [-1], keepdims=0, **attributes), t.ndim - 1, dim)

    def leading(self, largest, t, dim):
        """Returns the largest or smallest element until each place, and where it stands last."""
        self.check(t, t.ndim and t.dtype.kind == "f" and not np.isnan(t.value).any())
        parts = self.until(t, dim, -math.inf if largest else math.inf)
        found = (self.op("ReduceMax" if largest else "ReduceMin", parts, [-1], keepdims=0),
                 self.op("ArgMax" if largest else "ArgMin", parts, axis=-1, keepdims=0, select_last_index=1))
        return tuple([self.moved(v, t.ndim - 1, dim) for v in found])

    def commonest(self, t, dim, keepdim):
        """Returns what occurs most often along a dimension, the smallest of several, and where it stands last."""
        dim = self.axis(self.check(t, t.ndim and t.size), dim)
        rows = self.moved(t, dim, t.ndim - 1)
        same = self.cast(self.op("Equal", self.op("Unsqueeze", rows, [-1]), self.op("Unsqueeze", rows, [-2])), "int64")
        counts = self.op("ReduceSum", same, [-1], keepdims=0)
        most = self.op("Equal", counts, self.op("ReduceMax", counts, [-1], keepdims=1))
        value = self.op("ReduceMin", self.op("Where", most, rows, self.op("ReduceMax", rows, [-1], keepdims=1)), [-1], keepdims=1)
        place = self.op("ArgMax", self.cast(self.op("Equal", rows, value), "int32"), axis=-1, keepdims=1, select_last_index=1)
        found = [self.moved(v, t.ndim - 1, dim) for v in (value, place)]
        return tuple(found if keepdim else [self.op("Squeeze", v, [dim]) for v in found])

    def histogram(self, t, bins, low, high):
        """Returns how many elements are in each of some bins; without ends, from the smallest to the largest."""
        t = self.flatten(t, 0, -1)
        if low == high:
            low, high = float(self.check(t, t.size).value.min()), float(t.value.max())
        self.check(t, low < high and bins > 0 and not np.isnan(t.value).any())
        taken = self.op("And", self.op("GreaterOrEqual", t, low), self.op("LessOrEqual", t, high))
        places = self.op("Floor", self.op("Div", self.op("Mul", self.op("Sub", t, low), bins), self.full((), high - low, t.dtype)))
        places = self.op("Min", self.op("Where", taken, places, self.full((), 0, t.dtype)), bins - 1)
        return self.op("ScatterElements", self.full((bins,), 0, t.dtype), self.cast(places, "int64"), self.cast(taken, t.dtype.name), axis=0, reduction="add")

    def classes(self, t):
        """Returns one more than the largest element, which is read as the program is written."""
        return int(self.check(t, t.size).value.max()) + 1

    def counting(self, dtype, start, end, step):
        """Returns numbers from a start to before an end; ONNX counts in wide integers and floats alone."""
        wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32 if dtype.kind == "f" else np.int64)
        return self.to(self.op("Range", *self.scalars(wide, start, end, step)), dtype)

    def others(self, t):
        """Returns for each element of a row the product of all others."""
        n = self.check(t, t.ndim).shape[-1]
        parts = self.op("Where", self.literal(np.eye(n, dtype=bool), bool), self.full((), 1, t.dtype), self.op("Unsqueeze", t, [-2]))
        return self.op("ReduceProd", parts, [-1], keepdims=0)

    # Layouts.

    def crossed_vectors(self, a, b, dim):
        """Returns the cross product along a dimension, by default the first of three."""
        a, b = self.common(self.alike(a, b))
        dim = self.axis(a, dim) if dim is not None else next((i for i, d in enumerate(a.shape) if d == 3), 0)
        self.check(a, a.ndim and a.shape[dim] == 3)
        next_, last = [self.literal(p, np.int64) for p in ([1, 2, 0], [2, 0, 1])]

        def product(x, p, y, q):
            return self.op("Mul", self.op("Gather", x, p, axis=dim), self.op("Gather", y, q, axis=dim))

        return self.op("Sub", product(a, next_, b, last), product(a, last, b, next_))

    def diagonals(self, t, offset, first, second):
        """Returns matrices that have vectors on a diagonal."""
        n, shift = self.check(t, t.ndim).shape[-1], abs(offset)
        if shift:
            t = self.op("Pad", t, [0] * (2 * t.ndim - 1) + [shift])
        mask = self.literal(np.eye(n + shift, k=offset, dtype=bool), bool)
        planes = self.op("Where", mask, self.op("Unsqueeze", t, [-1 if offset >= 0 else -2]), self.full((), 0, t.dtype))
        return self.moved(planes, [planes.ndim - 2, planes.ndim - 1], [self.axis(planes, d) for d in (first, second)])

    def chosen_together(self, t, r, again):
        """Returns every choice of some of a vector's elements, in its order."""
        choose = itertools.combinations_with_replacement if again else itertools.combinations
        places = list(choose(range(self.ranked(t, 1).size), r)) if r else ()  # PyTorch's of none is a vector
        return self.op("Gather", t, self.literal(np.array(places, np.int64).reshape((len(places), r) if r else 0), np.int64), axis=0)

    def blocks(self, tensors):
        """Returns a matrix with others along its diagonal."""
        tensors = [self.least(t, 2) for t in self.alike(*tensors)]
        self.check(tensors, all(t.ndim == 2 for t in tensors))
        total, at, rows = sum(t.shape[1] for t in tensors), 0, []
        for t in tensors:
            rows.append(self.op("Pad", t, [0, at, 0, total - at - t.shape[1]]))
            at += t.shape[1]
        return self.op("Concat", *rows, axis=0)

    def products(self, tensors):
        """Returns every tuple of elements of vectors."""
        parts = [self.flatten(t, 0, -1) for t in self.grid(tensors)]
        return self.stacked(parts, 1) if len(parts) > 1 else parts[0]

    def kronecker(self, a, b):
        n = max(a.ndim, b.ndim)
        shapes = [(1,) * (n - t.ndim) + t.shape for t in (a, b)]
        pairs = [[d for s in shape for d in ((s, 1), (1, s))[k]] for k, shape in enumerate(shapes)]
        return self.reshape(self.op("Mul", self.reshape(a, pairs[0]), self.reshape(b, pairs[1])), [s * d for s, d in zip(*shapes)])

    def dotted(self, a, b, dims):
        """Multiplies and sums over dimensions of two tensors."""
        ours, theirs = (range(a.ndim - dims, a.ndim), range(dims)) if isinstance(dims, int) else [self.listed(d) for d in dims]
        ours, theirs = [self.axis(a, d) for d in ours], [self.axis(b, d) for d in theirs]
        self.check(a, [a.shape[d] for d in ours] == [b.shape[d] for d in theirs])
        free = [[d for d in range(t.ndim) if d not in used] for t, used in ((a, ours), (b, theirs))]
        n = math.prod(a.shape[d] for d in ours)
        left = self.reshape(self.permuted(a, free[0] + ours), (math.prod(a.shape[d] for d in free[0]), n))
        right = self.reshape(self.permuted(b, theirs + free[1]), (n, math.prod(b.shape[d] for d in free[1])))
        return self.reshape(self.op("MatMul", left, right), [a.shape[d] for d in free[0]] + [b.shape[d] for d in free[1]])

    def chained(self, tensors):
        self.check(tensors, len(tensors) > 1 and all(t.ndim == 2 for t in tensors))
        found = tensors[0]
        for t in tensors[1:]:
            found = self.op("MatMul", found, t)
        return found

    def blended(self, t, product, beta, alpha):
        """Adds a product to a tensor, which counts for nothing with a factor of 0."""
        if alpha != 1:
            product = self.op("Mul", product, alpha)
        if beta == 0:
            return self.expand(product, np.broadcast_shapes(product.shape, t.shape))
        return self.op("Add", t if beta == 1 else self.op("Mul", t, beta), product)

    def columned(self, t, kernel, dilation, padding, stride):
        """Returns the patches of images as columns."""
        single = self.ranked(t, 3, 4).ndim == 3
        kernel, dilation, padding, stride = [self.each(v, 2) for v in (kernel, dilation, padding, stride)]
        t = self.op("Pad", self.op("Unsqueeze", t, [0]) if single else t, [0, 0, *padding, 0, 0, *padding])
        b, c = t.shape[:2]
        counts = []
        for i, (k, d, s) in enumerate(zip(kernel, dilation, stride)):
            n = (t.shape[2 + 2 * i] - d * (k - 1) - 1) // s + 1
            self.check(t, n > 0)
            places = np.arange(k)[:, None] * d + np.arange(n) * s
            t, counts = self.op("Gather", t, self.literal(places, np.int64), axis=2 + 2 * i), [*counts, n]
        found = self.reshape(self.permuted(t, (0, 1, 2, 4, 3, 5)), (b, c * math.prod(kernel), math.prod(counts)))
        return self.op("Squeeze", found, [0]) if single else found

    def wrapped(self, t, pad):
        """Pads with what is at the other end."""
        for i in range(len(pad) // 2):
            dim, before, after = t.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
            n = t.shape[dim]
            self.check(t, 0 <= before <= n and 0 <= after <= n)
            t = self.op("Concat", self.cut(t, dim, n - before, n), t, self.cut(t, dim, 0, after), axis=dim)
        return t

    def triangle(self, rows, columns, offset, upper, dtype):
        ones = self.op("Trilu", self.full((rows, columns), 1, np.dtype(np.float32)), self.whole(offset), upper=upper)
        return self.to(self.op("NonZero", ones), dtype)

    def windowed(self, kind, n, t, size):
        """Pools to sizes: along each dimension, windows of which each begins where its share does."""
        single = self.ranked(t, n + 1, n + 2).ndim == n + 1
        sizes = (None,) * n if size is None else self.each(size, n)
        for i, m in enumerate(sizes):
            dim = t.ndim - n + i
            d = t.shape[dim]
            m = d if m is None else self.check(m, m > 0)
            parts = [self.op(kind, self.cut(t, dim, j * d // m, -(-(j + 1) * d // m)), [dim], keepdims=1) for j in range(m)]
            t = parts[0] if m == 1 else self.op("Concat", *parts, axis=dim)
        return t

    def averaged(self, n, t, kernel, stride, padding, divisor, ceil):
        """Sums windows and divides by one number: the means of a padded image, times what each counts."""
        kernel, padding = self.each(kernel, n), self.each(padding, n)
        stride, ends = self.each(stride or kernel, n), []
        self.ranked(t, n + 1, n + 2)
        for d, k, s, p in zip(t.shape[-n:], kernel, stride, padding):
            rest = d + 2 * p - k
            self.check(rest, rest >= 0 and 2 * p <= k)
            m = (-(-rest // s) if ceil else rest // s) + 1
            m -= ceil and (m - 1) * s >= d + p
            ends.append(max((m - 1) * s + k - d - p, 0))
        t = self.op("Pad", t, [0] * (t.ndim - n) + list(padding) + [0] * (t.ndim - n) + ends)
        whole = self.pooled("AveragePool", n, t, kernel, stride, 0)
        return self.op("Mul", whole, math.prod(kernel) / self.check(divisor, divisor != 0))
