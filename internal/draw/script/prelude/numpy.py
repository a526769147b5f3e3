# The functions of numpy that are made of others. They are test file Python and
# run on the engine's own numpy; snippets hold them to the real one.
import math
import numpy as np


def atleast_1d(a):
    a = np.asarray(a)
    return a.reshape(1) if a.ndim == 0 else a


def atleast_2d(a):
    a = np.asarray(a)
    return a.reshape(1, -1) if a.ndim < 2 else a


def vstack(tup):
    return np.concatenate([atleast_2d(a) for a in tup], 0)


def hstack(tup):
    arrays = [atleast_1d(a) for a in tup]
    return np.concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def array_split(ary, indices_or_sections, axis=0):
    ary = np.asarray(ary)
    n, k = ary.shape[axis], indices_or_sections
    if isinstance(k, int):
        size, more = divmod(n, k)
        sizes = [size + 1] * more + [size] * (k - more)
        ends = [sum(sizes[: i + 1]) for i in range(k)]
    else:
        ends = list(k) + [n]
    starts = [0] + ends[:-1]
    before = (slice(None),) * (axis % ary.ndim)
    return [ary[before + (slice(i, j),)] for i, j in zip(starts, ends)]


def split(ary, indices_or_sections, axis=0):
    n = np.asarray(ary).shape[axis]
    if isinstance(indices_or_sections, int) and n % indices_or_sections != 0:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0 if np.asarray(ary).ndim == 1 else 1)


def vsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0)


def moveaxis(a, source, destination):
    a = np.asarray(a)
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    source = [s % a.ndim for s in source]
    order = [i for i in range(a.ndim) if i not in source]
    for d, s in sorted(zip([d % a.ndim for d in destination], source)):
        order.insert(d, s)
    return a.transpose(*order)


def swapaxes(a, axis1, axis2):
    a = np.asarray(a)
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return a.transpose(*order)


def roll(a, shift, axis=None):
    a = np.asarray(a)
    if axis is None:
        return roll(a.reshape(-1), shift, 0).reshape(a.shape)
    if not isinstance(axis, int):
        for s, x in zip([shift] * len(axis) if isinstance(shift, int) else shift, axis):
            a = roll(a, s, x)
        return a
    n = a.shape[axis]
    return take(a, [(i - shift) % n for i in range(n)], axis)


def flipud(m):
    return np.flip(m, 0)


def fliplr(m):
    return np.flip(m, 1)


def rot90(m, k=1, axes=(0, 1)):
    for _ in range(k % 4):
        m = np.flip(swapaxes(m, axes[0], axes[1]), axes[0])
    return m


def tile(A, reps):
    A = np.asarray(A)
    reps = [reps] if isinstance(reps, int) else list(reps)
    n = max(A.ndim, len(reps))
    A = A.reshape([1] * (n - A.ndim) + list(A.shape))
    for axis, k in enumerate([1] * (n - len(reps)) + reps):
        A = np.concatenate([A] * k, axis) if k > 0 else take(A, np.zeros(0, dtype=np.int64), axis)
    return A


def _below(m, k):
    rows, columns = m.shape[-2:]
    return np.arange(columns)[None, :] - np.arange(rows)[:, None] <= k


def tril(m, k=0):
    m = np.asarray(m)
    return np.where(_below(m, k), m, np.zeros_like(m))


def triu(m, k=0):
    m = np.asarray(m)
    return np.where(_below(m, k - 1), np.zeros_like(m), m)


def diagonal(a, offset=0, axis1=0, axis2=1):
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    n = min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0))
    i = np.arange(max(n, 0))
    return a[..., i - min(offset, 0), i + max(offset, 0)]


def diag(v, k=0):
    v = np.asarray(v)
    if v.ndim == 2:
        return diagonal(v, k)
    n = len(v) + abs(k)
    out = np.zeros((n, n), dtype=v.dtype)
    i = np.arange(len(v))
    out[i - min(k, 0), i + max(k, 0)] = v
    return out


def trace(a, offset=0, axis1=0, axis2=1):
    return diagonal(a, offset, axis1, axis2).sum(-1)


def outer(a, b):
    return np.asarray(a).reshape(-1, 1) * np.asarray(b).reshape(1, -1)


def inner(a, b):
    return np.matmul(np.asarray(a), np.asarray(b).T)


def vdot(a, b):
    return (np.asarray(a).reshape(-1) * np.asarray(b).reshape(-1)).sum()


def kron(a, b):
    a, b = np.asarray(a), np.asarray(b)
    n = max(a.ndim, b.ndim)
    a = a.reshape([1] * (n - a.ndim) + list(a.shape))
    b = b.reshape([1] * (n - b.ndim) + list(b.shape))
    pairs = a.reshape([k for s in a.shape for k in (s, 1)]) * b.reshape([k for s in b.shape for k in (1, s)])
    return pairs.reshape([i * j for i, j in zip(a.shape, b.shape)])


def tensordot(a, b, axes=2):
    a, b = np.asarray(a), np.asarray(b)
    if isinstance(axes, int):
        axes = (list(range(a.ndim - axes, a.ndim)), list(range(axes)))
    left, right = [[x] if isinstance(x, int) else list(x) for x in axes]
    left, right = [x % a.ndim for x in left], [x % b.ndim for x in right]
    a_free = [i for i in range(a.ndim) if i not in left]
    b_free = [i for i in range(b.ndim) if i not in right]
    n = math.prod([a.shape[i] for i in left])
    product = np.matmul(a.transpose(*(a_free + left)).reshape(-1, n), b.transpose(*(right + b_free)).reshape(n, -1))
    return product.reshape([a.shape[i] for i in a_free] + [b.shape[i] for i in b_free])


def cross(a, b, axis=-1):
    a, b = moveaxis(np.asarray(a), axis, -1), moveaxis(np.asarray(b), axis, -1)
    out = [a[..., (i + 1) % 3] * b[..., (i + 2) % 3] - a[..., (i + 2) % 3] * b[..., (i + 1) % 3] for i in range(3)]
    return moveaxis(np.stack(out, -1), -1, axis)


def pad(array, pad_width, mode="constant", constant_values=0):
    array = np.asarray(array)
    width = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    for axis, (before, after) in enumerate(width):
        n = array.shape[axis]
        at = list(range(-before, n + after))
        if mode == "constant":
            inside = take(array, [min(max(i, 0), n - 1) for i in at], axis) if n else np.zeros([len(at) if d == axis else s for d, s in enumerate(array.shape)], dtype=array.dtype)
            keep = np.array([0 <= i < n for i in at]).reshape([-1 if d == axis else 1 for d in range(array.ndim)])
            array = np.where(keep, inside, np.full_like(inside, constant_values))
        elif mode == "edge":
            array = take(array, [min(max(i, 0), n - 1) for i in at], axis)
        elif mode == "wrap":
            array = take(array, [i % n for i in at], axis)
        elif mode == "reflect":
            array = take(array, [n - 1 - abs(i % max(2 * n - 2, 1) - (n - 1)) for i in at], axis)
        elif mode == "symmetric":
            array = take(array, [i % (2 * n) if i % (2 * n) < n else 2 * n - 1 - i % (2 * n) for i in at], axis)
        else:
            raise ValueError("mode '" + mode + "' is not supported")
    return array


def take(a, indices, axis=None):
    a = np.asarray(a)
    if axis is None:
        return a.reshape(-1)[np.asarray(indices)]
    return a[(slice(None),) * (axis % a.ndim) + (np.asarray(indices),)]


def _along(arr, indices, axis):
    where = []
    for d in range(indices.ndim):
        if d == axis % indices.ndim:
            where.append(indices)
        else:
            where.append(np.arange(indices.shape[d]).reshape([-1 if i == d else 1 for i in range(indices.ndim)]))
    return tuple(where)


def take_along_axis(arr, indices, axis):
    arr, indices = np.asarray(arr), np.asarray(indices)
    if axis is None:
        return arr.reshape(-1)[indices]
    return arr[_along(arr, indices, axis)]


def put_along_axis(arr, indices, values, axis):
    arr[_along(arr, np.asarray(indices), axis)] = values


def flatnonzero(a):
    return np.nonzero(np.asarray(a).reshape(-1))[0]


def argwhere(a):
    a = np.asarray(a)
    return np.stack(np.nonzero(a), 1)


def count_nonzero(a, axis=None, keepdims=False):
    return (np.asarray(a) != 0).sum(axis=axis, keepdims=keepdims)


def meshgrid(*xi, indexing="xy"):
    xs = [np.asarray(x).reshape(-1) for x in xi]
    shape = [len(x) for x in xs]
    out = [np.broadcast_to(x.reshape([-1 if d == i else 1 for d in range(len(xs))]), shape) for i, x in enumerate(xs)]
    return [swapaxes(x, 0, 1) for x in out] if indexing == "xy" and len(xs) > 1 else out


def cumprod(a, axis=None):
    a = np.asarray(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    out, at = [], 1
    for i in range(a.shape[axis]):
        at = at * take(a, i, axis)
        out.append(at)
    return np.stack(out, axis)


# The methods of numpy's functions of two arrays, such as np.maximum.accumulate.
def ufunc_accumulate(f, array, axis=0):
    array = np.asarray(array)
    out = [take(array, 0, axis)] if array.shape[axis] > 0 else []
    for i in range(1, array.shape[axis]):
        out.append(f(out[-1], take(array, i, axis)))
    return np.stack(out, axis) if out else array


def ufunc_reduce(f, array, axis=0):
    array = np.asarray(array)
    if axis is None:
        array, axis = array.reshape(-1), 0
    at = take(array, 0, axis)
    for i in range(1, array.shape[axis]):
        at = f(at, take(array, i, axis))
    return at


def ufunc_outer(f, a, b):
    a, b = np.asarray(a), np.asarray(b)
    return f(a.reshape(list(a.shape) + [1] * b.ndim), b)


def diff(a, n=1, axis=-1):
    a = np.asarray(a)
    for _ in range(n):
        k = np.arange(a.shape[axis] - 1)
        a = take(a, k + 1, axis) - take(a, k, axis)
    return a


def quantile(a, q, axis=None, keepdims=False):
    a = np.asarray(a)
    if axis is None:
        shape, a, axis = [1] * a.ndim, a.reshape(-1), 0
    else:
        shape = [1 if d == axis % a.ndim else s for d, s in enumerate(a.shape)]
    a = np.sort(a, axis)
    at = q * (a.shape[axis] - 1)
    low = int(math.floor(at))
    high = min(low + 1, a.shape[axis] - 1)
    out = take(a, low, axis) + (take(a, high, axis) - take(a, low, axis)) * (at - low)
    return np.asarray(out).reshape(shape) if keepdims else out


def percentile(a, q, axis=None, keepdims=False):
    return quantile(a, q / 100, axis, keepdims)


def median(a, axis=None, keepdims=False):
    return quantile(a, 0.5, axis, keepdims)


def average(a, axis=None, weights=None):
    a = np.asarray(a)
    if weights is None:
        return a.mean(axis=axis)
    weights = np.asarray(weights)
    if weights.ndim < a.ndim:
        weights = weights.reshape([-1 if d == axis % a.ndim else 1 for d in range(a.ndim)])
    weights = np.broadcast_to(weights, a.shape)
    return (a * weights).sum(axis=axis) / weights.sum(axis=axis)


def full_like(a, fill_value, dtype=None):
    a = np.asarray(a)
    return np.full(a.shape, fill_value, dtype=a.dtype if dtype is None else dtype)


def empty_like(a, dtype=None):
    return np.zeros_like(a, dtype=dtype)


def logspace(start, stop, num=50, endpoint=True, base=10.0):
    return base ** np.linspace(start, stop, num, endpoint)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = np.asarray(x)
    largest = np.finfo(x.dtype).max
    x = np.where(np.isnan(x), np.full_like(x, nan), x)
    x = np.where(x == np.inf, np.full_like(x, largest if posinf is None else posinf), x)
    return np.where(x == -np.inf, np.full_like(x, -largest if neginf is None else neginf), x)


def nansum(a, axis=None, keepdims=False):
    a = np.asarray(a)
    return np.where(np.isnan(a), np.zeros_like(a), a).sum(axis=axis, keepdims=keepdims)


def nanmean(a, axis=None, keepdims=False):
    a = np.asarray(a)
    return nansum(a, axis, keepdims) / (~np.isnan(a)).sum(axis=axis, keepdims=keepdims)


def ptp(a, axis=None):
    a = np.asarray(a)
    return a.max(axis=axis) - a.min(axis=axis)


def deg2rad(x):
    return np.asarray(x) * (math.pi / 180)


def rad2deg(x):
    return np.asarray(x) * (180 / math.pi)


def float_power(x1, x2):
    return np.power(np.asarray(x1).astype(np.float64), x2)


def fmax(x1, x2):
    x1, x2 = np.broadcast_arrays(x1, x2)
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.maximum(x1, x2)))


def fmin(x1, x2):
    x1, x2 = np.broadcast_arrays(x1, x2)
    return np.where(np.isnan(x1), x2, np.where(np.isnan(x2), x1, np.minimum(x1, x2)))


def broadcast_arrays(*args):
    arrays = [np.asarray(a) for a in args]
    shape = sum(arrays[1:], arrays[0]).shape
    return [np.broadcast_to(a, shape) for a in arrays]


def logaddexp(x1, x2):
    top = np.maximum(x1, x2)
    return top + np.log1p(np.exp(-np.abs(np.asarray(x1) - np.asarray(x2))))


def bitwise_and(x1, x2):
    return np.asarray(x1) & np.asarray(x2)


def bitwise_or(x1, x2):
    return np.asarray(x1) | np.asarray(x2)


def bitwise_xor(x1, x2):
    return np.asarray(x1) ^ np.asarray(x2)


def bitwise_not(x):
    return ~np.asarray(x)


def bincount(x, weights=None, minlength=0):
    x = [int(v) for v in np.asarray(x).tolist()]
    out = [0] * max(max(x + [-1]) + 1, minlength)
    for i, v in enumerate(x):
        out[v] = out[v] + (1 if weights is None else float(weights[i]))
    return np.array(out, dtype=np.int64 if weights is None else np.float64)


def searchsorted(a, v, side="left"):
    a, v = np.asarray(a), np.asarray(v)
    below = a < v[..., None] if side == "left" else a <= v[..., None]
    return below.sum(-1)


def digitize(x, bins, right=False):
    return searchsorted(bins, x, "left" if right else "right")


def histogram(a, bins=10, range=None):
    a = np.asarray(a).reshape(-1)
    low, high = (float(a.min()), float(a.max())) if range is None else range
    edges = np.linspace(low, high, bins + 1)
    counts = [int(((a >= edges[i]) & ((a < edges[i + 1]) | ((i == bins - 1) & (a == edges[i + 1])))).sum()) for i in np.arange(bins).tolist()]
    return np.array(counts), edges


def isin(element, test_elements):
    element, tests = np.asarray(element), np.asarray(test_elements).reshape(-1)
    return (element[..., None] == tests).any(-1)


def intersect1d(ar1, ar2):
    u = np.unique(ar1)
    return u[isin(u, ar2)]


def setdiff1d(ar1, ar2):
    u = np.unique(ar1)
    return u[~isin(u, ar2)]


def union1d(ar1, ar2):
    return np.unique(np.concatenate([np.asarray(ar1).reshape(-1), np.asarray(ar2).reshape(-1)]))


def unravel_index(indices, shape):
    out, rest = [], np.asarray(indices)
    for n in reversed(shape):
        out.append(rest % n)
        rest = rest // n
    return tuple(reversed(out))


def ravel_multi_index(multi_index, dims):
    at = 0
    for i, n in zip(multi_index, dims):
        at = at * n + np.asarray(i)
    return at


def ix_(*args):
    return tuple([np.asarray(a).reshape([-1 if d == i else 1 for d in range(len(args))]) for i, a in enumerate(args)])


def ndindex(*shape):
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    for i in range(math.prod(shape)):
        yield tuple([int(k) for k in unravel_index(i, shape)])


class nditer:
    def __init__(self, op, flags=(), op_flags=()):
        self.operand = np.asarray(op)
        self.places = list(ndindex(*self.operand.shape))
        self.iterindex = 0

    @property
    def multi_index(self):
        return self.places[self.iterindex]

    @property
    def finished(self):
        return self.iterindex >= len(self.places)

    @property
    def value(self):
        return self.operand[self.multi_index]

    def iternext(self):
        self.iterindex += 1
        return not self.finished

    def __iter__(self):
        return iter([self.operand[i] for i in self.places])


def ndenumerate(arr):
    arr = np.asarray(arr)
    for index in ndindex(*arr.shape):
        yield index, arr[index]


def apply_along_axis(func1d, axis, arr):
    arr = moveaxis(arr, axis, -1)
    rows = [np.asarray(func1d(row)) for row in arr.reshape(-1, arr.shape[-1])]
    out = np.stack(rows, 0).reshape(list(arr.shape[:-1]) + list(rows[0].shape))
    return moveaxis(out, -1, axis) if rows[0].ndim == 1 else out


def vectorize(pyfunc):
    def each(*args):
        arrays = broadcast_arrays(*args)
        out = [pyfunc(*row) for row in zip(*[a.reshape(-1).tolist() for a in arrays])]
        return np.array(out).reshape(arrays[0].shape)

    return each


def norm(x, ord=None, axis=None, keepdims=False):
    x = np.asarray(x)
    if axis is None:
        if ord is not None and x.ndim == 2:
            axis = (0, 1)
        else:
            out = norm(x.reshape(-1), ord, 0)
            return np.asarray(out).reshape([1] * x.ndim) if keepdims else out
    if not isinstance(axis, int):
        if len(axis) == 2 and ord not in (None, "fro"):
            return _matrix_norm(moveaxis(x, axis, (-2, -1)), ord, axis, keepdims)
        return np.sqrt((np.abs(x) ** 2).sum(axis=axis, keepdims=keepdims))
    if ord is None or ord == 2:
        return np.sqrt((np.abs(x) ** 2).sum(axis=axis, keepdims=keepdims))
    if ord == np.inf:
        return np.abs(x).max(axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.abs(x).min(axis=axis, keepdims=keepdims)
    if ord == 0:
        return (x != 0).astype(x.dtype).sum(axis=axis, keepdims=keepdims)
    return (np.abs(x) ** ord).sum(axis=axis, keepdims=keepdims) ** (1.0 / ord)


def _matrix_norm(x, ord, axis, keepdims):
    if abs(ord) not in (1, np.inf):
        raise NotImplementedError("numpy.linalg.norm with ord=" + str(ord) + " of a matrix is not supported in test files")
    sums = np.abs(x).sum(-2 if abs(ord) == 1 else -1)
    out = sums.max(-1) if ord > 0 else sums.min(-1)
    if keepdims:
        out = np.expand_dims(np.expand_dims(out, min(axis)), max(axis))
    return out


def _eliminated(a, b):
    # Gauss-Jordan with partial pivoting, in float64
    a, b, det = a.astype(np.float64), b.astype(np.float64), 1.0
    n = a.shape[0]
    for i in range(n):
        p = i + int(np.argmax(np.abs(a[i:, i])))
        if a[p, i] == 0:
            return None, 0.0
        if p != i:
            swapped = list(range(n))
            swapped[i], swapped[p] = p, i
            a, b, det = a[swapped], b[swapped], -det
        det = det * a[i, i]
        b[i] = b[i] / a[i, i]
        a[i] = a[i] / a[i, i]
        for j in range(n):
            if j != i:
                b[j] = b[j] - b[i] * a[j, i]
                a[j] = a[j] - a[i] * a[j, i]
    return b, det


def _each_matrix(f, a):
    a = np.asarray(a)
    if a.ndim == 2:
        return f(a)
    return np.stack([_each_matrix(f, m) for m in a], 0)


def det(a):
    kind = np.asarray(a).dtype
    return _each_matrix(lambda m: np.asarray(_eliminated(m, m)[1]).astype(kind), a)


def inv(a):
    kind = np.asarray(a).dtype

    def one(m):
        out, _ = _eliminated(m, np.eye(m.shape[0]))
        if out is None:
            raise ValueError("Singular matrix")
        return out.astype(kind)

    return _each_matrix(one, a)


def solve(a, b):
    return np.matmul(inv(a), b)


def repeat(a, repeats, axis=None):
    a = np.asarray(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    n = a.shape[axis]
    counts = [repeats] * n if isinstance(repeats, int) else np.broadcast_to(np.asarray(repeats), (n,)).tolist()
    return take(a, np.array([i for i in range(n) for _ in range(counts[i])], dtype=np.int64), axis)


def einsum(subscripts, *operands):
    text = subscripts.replace(" ", "")
    inputs = text.split("->")[0].split(",")
    labels = sorted(set([c for part in inputs for c in part]))
    out = text.split("->")[1] if "->" in text else "".join([c for c in labels if text.count(c) == 1])
    order = out + "".join([c for c in labels if c not in out])
    product = np.asarray(1)
    for part, x in zip(inputs, operands):
        x = np.asarray(x)
        for c in labels:
            while part.count(c) > 1:  # a diagonal
                i = part.index(c)
                j = part.index(c, i + 1)
                x = diagonal(x, 0, i, j)
                part = part[:i] + part[i + 1 : j] + part[j + 1 :] + c
        x = x.transpose(*[part.index(c) for c in order if c in part]) if x.ndim > 1 else x
        sizes = list(x.shape)
        product = product * x.reshape([sizes.pop(0) if c in part else 1 for c in order])
    for _ in range(len(order) - len(out)):
        product = product.sum(-1)
    return product


def result_type(*arrays_and_dtypes):
    total = None
    for x in arrays_and_dtypes:
        x = np.zeros(1, dtype=x) if isinstance(x, type(np.float32)) else np.asarray(x)
        total = x if total is None else total + x
    return total.dtype
