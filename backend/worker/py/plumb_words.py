"""What the calls of a table use, as self.NAME: parts of what PyTorch's arguments mean."""

import collections
import math

from plumb_names import Unsupported
from plumb_table import GROUPS, promoted

SUMMED = ("bool", *GROUPS["integers"])  # dtypes whose sums are int64


class Words:
    """The part of an adapter that its table's calls use."""

    def alike(self, *values):
        """Returns tensors in the dtype to which PyTorch promotes them and the numbers beside them."""
        dtype = promoted(self, values)
        return [self.cast(v, dtype) if self.is_tensor(v) and self.dtype_name(v.dtype) != dtype else v for v in values]

    def summed(self, t, dtype=None):
        """Returns a tensor in the dtype of its sums: the one asked for, int64 of integers."""
        name = "int64" if self.dtype_name(t.dtype) in SUMMED else None
        return self.cast(t, self.dtype_name(dtype)) if dtype is not None else self.cast(t, name) if name else t

    def shrinking(self, t, size):
        """Returns a tensor in the dtype of its sums where another shape, or no dimension, has it summed."""
        return t if len(size) and tuple(t.shape) == tuple(size) else self.summed(t)

    def axes(self, dim):
        """Returns the dimensions of a reduction: no list of them is all."""
        if dim is None or isinstance(dim, int):
            return dim
        return tuple(dim) or None

    def ddof(self, correction, unbiased):
        return correction if correction is not None else int(unbiased is not False)

    def each(self, v, n):
        """Returns an argument of each of n dimensions, which may be given as one for all."""
        if isinstance(v, int) or len(v) == 1:
            return (v if isinstance(v, int) else v[0],) * n
        if len(v) != n:
            raise Unsupported("an argument of %d dimensions, not of %d" % (len(v), n))
        return tuple(v)

    def contracted(self, equation, operands):
        """Returns operands of einsum: PyTorch sums what one of them alone has in the dtype of sums, and the rest with it."""
        read, arrow, result = equation.replace(" ", "").partition("->")
        kept = result if arrow else "".join(c for c in read if read.count(c) == 1)
        having = collections.Counter()  # operands by the letters of which they have more than one entry
        for part, t in zip(read.split(","), operands):
            first, _, last = part.partition("...")
            having.update(c for c, n in {**dict(zip(first, t.shape)), **dict(zip(last[::-1], t.shape[::-1]))}.items() if (n > 1 or len(operands) == 1) and c not in kept)
        alone = 1 in having.values() and all(n for t in operands for n in t.shape)
        return [self.summed(v) for v in operands] if alone else operands

    def right(self, a, b):
        """Returns the right side of equations: where PyTorch has a vector of each, NumPy has one matrix for all."""
        if len(a.shape) > 2 and tuple(b.shape) == tuple(a.shape[:-1]):
            raise Unsupported("%s reads vectors as a matrix" % self.name)
        return b

    def thin(self, u, s, vh):
        """Returns singular vectors as svd.thin does, whose last are columns."""
        return u, s, vh.swapaxes(-1, -2).conj()

    def listed(self, v):
        return [v] if isinstance(v, int) else v

    def given(self, v):
        """Returns an argument without which PyTorch chooses."""
        if v is None:
            raise Unsupported("an argument is not given")
        return v

    def crossed(self, t, dim):
        """Returns the dimension of a cross product, which is the first of three elements where it is not given."""
        return self.given(next((d for d, n in enumerate(t.shape) if n == 3), None)) if dim is None else dim

    def softened(self, t, dim):
        """Returns the dimension of a softmax, which PyTorch chooses where it is not given."""
        return (0 if len(t.shape) in (0, 1, 3) else 1) if dim is None else dim

    def axis(self, t, dim):
        """Returns a dimension counted from the first."""
        if not -len(t.shape) <= dim < len(t.shape):
            raise Unsupported("no dimension %d" % dim)
        return dim % len(t.shape)

    def place(self, t, dim, start):
        """Returns where along a dimension something starts, counted from the first."""
        return start + t.shape[dim] if start < 0 else start

    def sliced(self, t, dim, start, end, step):
        """Returns the index of a slice along one dimension."""
        return (slice(None),) * self.axis(t, dim) + (slice(start, end, step),)

    def last(self, t, shape):
        """Returns the last dimensions of a tensor, which have a shape."""
        n = len(t.shape) - len(shape)
        if tuple(t.shape[n:]) != tuple(shape):
            raise Unsupported("a tensor of another shape")
        return tuple(range(n, len(t.shape)))

    def without(self, t, dim):
        """Returns all dimensions of a tensor but one."""
        return tuple(i for i in range(len(t.shape)) if i != dim)

    def sizes(self, t, size):
        """Returns the shape of an expanded tensor, in which -1 stands for its own size."""
        own = (0,) * (len(size) - len(t.shape)) + tuple(t.shape)
        return tuple(n if d == -1 else d for d, n in zip(size, own))

    def parted(self, t, dim, sizes):
        """Returns the shape of a tensor whose dimension becomes several."""
        dim = self.axis(t, dim)
        return tuple(t.shape[:dim]) + tuple(sizes) + tuple(t.shape[dim + 1:])

    def flat(self, t, start, end):
        """Returns the shape of a tensor some dimensions of which become one."""
        first, last = self.axis(t, start), self.axis(t, end)
        return (*t.shape[:first], math.prod(t.shape[first:last + 1]), *t.shape[last + 1:])

    def repeats(self, t, repeats):
        if len(repeats) < len(t.shape):
            raise Unsupported("a number of repeats for each dimension")
        return tuple(repeats)

    def share(self, total, n):
        """Returns the size of n chunks of a dimension."""
        return max(1, -(-total // n))

    def bounds(self, sizes, total):
        """Returns where a dimension is split: before each part but the first."""
        if isinstance(sizes, int):
            return list(range(sizes, total, sizes))
        if sum(sizes) != total:
            raise Unsupported("sizes that are not all of a dimension")
        return [sum(sizes[:i]) for i in range(1, len(sizes))]

    def widths(self, t, pad):
        """Returns how much is added before and after each dimension, the first one first."""
        pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad) - 1, 2)][::-1]
        return [(0, 0)] * (len(t.shape) - len(pairs)) + pairs

    def around(self, padding, kernel, dilation, n):
        """Returns what a convolution adds around an image, as pad takes it: the last dimension first."""
        if padding == "valid":
            padding = 0
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.each(dilation, n), self.each(kernel, n))]
            return [p for total in totals[::-1] for p in (total // 2, total - total // 2)]
        return [p for p in self.each(padding, n)[::-1] for _ in range(2)]

    def number(self, v):
        if not isinstance(v, (int, float)):
            raise Unsupported("a number is needed")
        return v

    def several(self, v):
        """Returns a tuple of what is one tensor where one was given."""
        return (v,) if self.is_tensor(v) else tuple(v)

    def default(self, dtype, *numbers):
        """Returns the dtype of a tensor made of numbers: the one asked for, or PyTorch's."""
        if dtype is not None:
            return dtype
        return self.dtype(promoted(self, numbers) or "float32")

    def leaves(self, data):
        """Lists the numbers of nested lists."""
        return [v for e in data for v in self.leaves(e)] if isinstance(data, (tuple, list)) else [data]

    def beside(self, t, index, dim=None):
        """Returns the part of a tensor that gather reads by an index, or whose elements scatter puts by one."""
        return t[tuple(slice(None) if dim is not None and i == dim % len(t.shape) else slice(n) for i, n in enumerate(index.shape))]

    # Of ctc_loss, where a framework normalises what PyTorch takes as normalised.

    def normalised(self, log_probs):
        """Returns logarithms of probabilities, [time, batch, classes], which normalising leaves as they are, but for rounding."""
        t = self.array(log_probs)
        if t.ndim != 3:
            raise Unsupported("ctc_loss of a batch alone")
        unit = 2.0 ** (-52 if t.dtype.name == "float64" else -23)
        if not all(abs(math.fsum(math.exp(min(v, 99)) for v in row) - 1) <= unit * len(row) for sample in t.tolist() for row in sample):
            raise Unsupported("%s normalises what ctc_loss takes" % self.name)
        return log_probs

    def lengths(self, v):
        """Lists lengths, which may be a tensor."""
        return self.array(v).tolist() if self.is_tensor(v) else list(v)

    def rows(self, targets, target_lengths):
        """Lists the targets of each sample, filled up: PyTorch takes them one after another too."""
        found, lengths = self.array(targets).tolist(), self.lengths(target_lengths)
        if not found or not isinstance(found[0], list):
            found = [found[sum(lengths[:i]):sum(lengths[:i + 1])] for i in range(len(lengths))]
        longest = max([1, *map(len, found)])
        return [row + [0] * (longest - len(row)) for row in found]

    def shares(self, target_lengths, reduction):
        """Lists by what the losses of samples are divided."""
        return [max(n, 1) if reduction == "mean" else 1 for n in self.lengths(target_lengths)]
