"""Engines that run ONNX: each call of onnx.json is written as nodes of a graph,
of which an engine runs each by itself, or, in the mode graph, all as one model.
"""

import functools
import math

import numpy as np
import plumb_onnxfile as onnxfile
import plumb_subject
from plumb_names import Unsupported
from plumb_onnxengine import ENGINES
from plumb_onnxwords import Parts
from plumb_table import promoted

SESSIONS = 256  # compiled models that are kept


class Tensor:
    """The elements of a value; those of a constant are written into models."""

    def __init__(self, value, constant=False):
        self.value, self.constant = value, constant

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)


class Node:
    """A call of an operator of ONNX's."""

    def __init__(self, kind, inputs, attributes, outputs):
        self.kind, self.inputs, self.attributes = kind, inputs, attributes
        self.results = [Tensor(None) for _ in range(outputs)]


class ONNX(Parts, plumb_subject.Adapter):
    tensor_class = Tensor
    own = functional = True
    gradients = "program"
    table = plumb_subject.table("onnx.json")

    def __init__(self, engine):
        self.name, self.engine = "onnx:" + engine, ENGINES[engine]()
        self.version, self.gaps = self.engine.version, self.engine.gaps
        self.modes, self.nodes = {"graph": self.graph}, None
        self.compile = functools.lru_cache(SESSIONS)(self.engine.compile)

    def gap(self, e):
        # Engines refuse by these what an operator of ONNX's does not take.
        return super().gap(e) or isinstance(e, (TypeError, ValueError, IndexError)) or type(e).__name__ in self.engine.refusals

    def refuses(self, e):
        return type(e).__name__ in self.engine.refusals and not any(g in str(e) for g in self.gaps)

    def dtype(self, name):
        if name not in onnxfile.TYPES or name in self.engine.absent:
            raise Unsupported("%s has no %s" % (self.name, name))
        return np.dtype(name)

    def dtype_name(self, dtype):
        return getattr(dtype, "name", "")

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        return Tensor(np.asarray(array, self.dtype(dtype), order="C"))

    def array(self, t):
        return t.value

    def cast(self, t, dtype):
        return self.op("Cast", t, to=onnxfile.TYPES[self.dtype(dtype).name])

    def member(self, path):
        """Returns what writes a node of an operator of ONNX's."""
        if self.engine.operators is not None and path not in self.engine.operators:
            raise Unsupported("%s has no %s" % (self.name, path))
        return functools.partial(self.op, path)

    # Graphs.

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Runs a node. A list among the inputs is a constant of integers, a number one of the first tensor's dtype."""
        dtype = next((v.dtype for v in inputs if isinstance(v, Tensor)), None)
        inputs = [v if v is None or isinstance(v, Tensor) else self.full((), v, dtype) if np.isscalar(v)
                  else Tensor(np.array(v, np.int64), True) for v in inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        self.single(kind, dtype, attributes)
        attributes = {k: int(v) if isinstance(v, bool) else v for k, v in attributes.items()}
        node = Node(kind, inputs, attributes, outputs)
        given = list({id(t): t for t in inputs if t is not None and not t.constant}.values())
        for t, v in zip(node.results, self.run([node], given, node.results)):
            t.value = np.asarray(v)
        if self.nodes is not None:
            self.nodes.append(node)
        return node.results[0] if outputs == 1 else tuple(node.results)

    def run(self, nodes, inputs, results):
        """Returns the arrays of results of a model of nodes."""
        names = {id(t): "x%d" % i for i, t in enumerate(inputs)}
        written, constants = [], []
        for node in nodes:
            for t in node.inputs:
                if t is not None and id(t) not in names:
                    names[id(t)] = "c%d" % len(constants)
                    constants.append((names[id(t)], t.value))
            for t in node.results:
                names[id(t)] = "y%d" % len(names)
            written.append(onnxfile.node(node.kind, ["" if t is None else names[id(t)] for t in node.inputs],
                                         [names[id(t)] for t in node.results], node.attributes))
        model = onnxfile.model(written, [(names[id(t)], t.dtype.name, t.shape) for t in inputs], constants, [names[id(t)] for t in results])
        return self.compile(model)([t.value for t in inputs])

    def graph(self, program):
        """Returns a function of tensors that runs as one model what a program makes of them."""
        def run(*tensors):
            inputs = [Tensor(t.value) for t in tensors]
            self.nodes = nodes = []
            try:
                flat = program(*inputs)
            finally:
                self.nodes = None
            wanted = {id(t): t for t in flat}
            results = [t for node in nodes for t in node.results if id(t) in wanted]
            read = {id(t) for node in nodes for t in node.inputs}
            found = self.run(nodes, [t for t in inputs if id(t) in read], results) if results else []
            made = {id(t): Tensor(np.asarray(v)) for t, v in zip(results, found)}
            return [made.get(id(t), t) for t in flat]

        return run

    # What calls of onnx.json use.

    def full(self, shape, v, dtype):
        return Tensor(np.full(tuple(shape), np.asarray(v).astype(dtype)), True)

    def count(self, v):
        return len(v)

    def scalars(self, dtype, *numbers):
        return [self.full((), n, dtype) for n in numbers]

    def literal(self, data, dtype):
        return Tensor(np.array(self.unwrapped(data), dtype), True)

    def filled(self, t, dim):
        """Returns a tensor whose dimensions have elements: ONNX leaves open what is made of none."""
        axes = range(t.ndim) if self.over(t, dim) is None else self.over(t, dim)
        return self.check(t, all(t.shape[a] for a in axes))

    def fewest(self, size):
        """Returns the least size of an image: with one point ONNX stands at its corner, PyTorch in the middle."""
        return min(size[2:])

    def whole(self, n):
        return self.full((), n, np.int64)

    def alike(self, *values):
        """Returns tensors of the dtype to which PyTorch promotes them and the numbers beside them."""
        dtype = promoted(self, values)
        return [v if v is None else self.to(v, self.dtype(dtype)) if self.is_tensor(v) else self.full((), v, self.dtype(dtype)) for v in values]

    def to(self, t, dtype):
        return t if dtype is None or t.dtype == dtype else self.cast(t, dtype.name)

    def over(self, t, dim):
        """Returns the axes of a reduction, None for all."""
        dim = self.axes(dim)
        if dim is None or not t.ndim:
            return None
        dims = [dim] if isinstance(dim, int) else list(dim)
        if len({d % t.ndim for d in dims}) < len(dims):
            raise Unsupported("an axis is given twice")
        return dims

    def check(self, v, holds):
        """Returns a value where ONNX means by it what PyTorch does."""
        if not holds:
            raise Unsupported("%s reads these arguments otherwise" % self.name)
        return v

    def ranked(self, t, *ranks):
        return self.check(t, t.ndim in ranks)

    def inside(self, index):
        """Returns an index without negative numbers, which ONNX counts from the end."""
        return self.check(index, index.dtype.kind == "i" and not (index.value < 0).any())

    def spatial(self, kind, n, t, *rest, outputs=1, **attributes):
        """Runs an operator on images of n dimensions, which may be without a batch."""
        single = self.ranked(t, n + 1, n + 2).ndim == n + 1
        found = self.op(kind, self.op("Unsqueeze", t, [0]) if single else t, *rest, outputs=outputs, **attributes)
        found = [found] if outputs == 1 else found
        found = [self.op("Squeeze", v, [0]) for v in found] if single else found
        return found[0] if outputs == 1 else tuple(found)

    def pooled(self, kind, n, t, kernel_size, stride, padding, **attributes):
        kernel, padding = self.each(kernel_size, n), self.each(padding, n)
        self.check(t, all(0 <= 2 * p <= k for p, k in zip(padding, kernel)))
        return self.spatial(kind, n, t, kernel_shape=kernel, strides=self.each(stride or kernel, n), pads=padding * 2, **attributes)

    def convolved(self, kind, n, t, weight, bias, stride, padding, dilation, groups, **attributes):
        self.check(t, weight.ndim == n + 2 and (bias is None or bias.ndim == 1))
        pads = self.around(padding, weight.shape[2:], dilation, n)[::-1]
        return self.spatial(kind, n, t, weight, bias, kernel_shape=weight.shape[2:], strides=self.each(stride, n), pads=pads[1::2] + pads[::2],
                            dilations=self.each(dilation, n), group=groups, **attributes)

    def adaptive(self, kind, n, t, output_size):
        """Pools to sizes, in one call where the images' are multiples of them."""
        image = self.ranked(t, n + 1, n + 2).shape[-n:]
        sizes = [d if s is None else s for d, s in zip(image, self.each(output_size, n) if output_size is not None else image)]
        if not all(s > 0 and d % s == 0 for d, s in zip(image, sizes)):
            return self.windowed("ReduceMax" if kind == "MaxPool" else "ReduceMean", n, t, sizes)
        return self.pooled(kind, n, t, [d // s for d, s in zip(image, sizes)], None, 0)

    def channelwise(self, t, weight, bias):
        """Scales and shifts each channel."""
        shape = (1, -1) + (1,) * (t.ndim - 2)
        for kind, v in (("Mul", weight), ("Add", bias)):
            t = t if v is None else self.op(kind, t, self.reshape(v, shape[1 if t.ndim == 1 else 0:]))
        return t

    def variance(self, t, dim, keepdim, ddof):
        axes = self.over(t, dim)
        off = self.op("Sub", t, self.op("ReduceMean", t, axes, keepdims=1))
        n = math.prod(t.shape if axes is None else [t.shape[a] for a in axes])
        self.check(t, n > ddof)
        return self.op("Div", self.op("ReduceSumSquare", off, axes, keepdims=keepdim), n - ddof)

    def reduced(self, t, reduction):
        self.check(t, reduction in ("none", "mean", "sum"))
        return t if reduction == "none" else self.op("ReduceSum", t, keepdims=0) if reduction == "sum" else self.op("ReduceMean", self.filled(t, None), keepdims=0)

    def reshape(self, t, shape):
        """Reshapes; ONNX would read a size of 0 as the input's, OpenVINO a constant without elements as a number."""
        known = math.prod(d for d in shape if d != -1)
        self.check(t, -1 not in shape or known > 0)
        if not len(shape) and t.size == 1:
            return self.op("Squeeze", t)
        return self.op("Reshape", t, [t.size // known if d == -1 else d for d in shape], allowzero=1)

    def flatten(self, t, start, end):
        start, end = start % max(t.ndim, 1), end % max(t.ndim, 1)
        self.check(t, start <= end)
        return self.reshape(t, t.shape[:start] + (math.prod(t.shape[start:end + 1]),) + t.shape[end + 1:])

    def expand(self, t, size):
        old = (None,) * (len(size) - t.ndim) + t.shape
        size = [o if s == -1 else s for s, o in zip(size, old)]
        self.check(t, len(old) == len(size) and all(s is not None and o in (None, 1, s) for s, o in zip(size, old)))
        return self.op("Expand", t, size)

    def swapped(self, t, a, b):
        axes = list(range(t.ndim))
        if axes:
            axes[a], axes[b] = axes[b], axes[a]
        return self.permuted(t, axes)

    def permuted(self, t, axes):
        axes = [a % max(t.ndim, 1) for a in axes]
        self.check(t, sorted(axes) == list(range(t.ndim)))
        return self.op("Transpose", t, perm=axes)

    def squeeze(self, t, dim):
        dims = [i for i, d in enumerate(t.shape) if d == 1 and (dim is None or i == dim % t.ndim)]
        return self.op("Squeeze", t, dims) if dims else self.op("Identity", t)

    def tiled(self, t, repeats, pad):
        n = max(len(repeats), t.ndim)
        self.check(t, (pad or n == len(repeats)) and min(repeats, default=0) >= 0)
        return self.op("Tile", self.reshape(t, (1,) * (n - t.ndim) + t.shape), [1] * (n - len(repeats)) + list(repeats))

    def parts(self, t, sizes, dim):
        """Splits into parts of the sizes, or of one size but the last."""
        total = t.shape[dim]
        if isinstance(sizes, int):
            self.check(t, sizes > 0 and total > 0)
            sizes = [min(sizes, total - i) for i in range(0, total, sizes)]
        self.check(t, min(sizes) >= 0)
        found = self.op("Split", t, sizes, axis=dim, outputs=len(sizes))
        return found if isinstance(found, tuple) else (found,)

    def unbind(self, t, dim):
        return tuple([self.op("Squeeze", p, [dim]) for p in self.parts(t, 1, dim)])

    def stacked(self, tensors, dim):
        return self.op("Concat", *[self.op("Unsqueeze", t, [dim]) for t in self.alike(*tensors)], axis=dim)

    def cut(self, t, dim, start, end, step=1):
        return self.op("Slice", t, [start], [end], [dim], [step])

    def corner(self, t, shape):
        """Returns the first elements of a tensor in each dimension."""
        self.check(t, t.ndim == len(shape) and all(s <= d for s, d in zip(shape, t.shape)))
        return t if t.shape == tuple(shape) else self.op("Slice", t, [0] * t.ndim, shape)

    def pads(self, t, pad):
        """Returns the widths of ONNX's Pad: all starts, then all ends."""
        k = len(pad) // 2
        self.check(t, len(pad) % 2 == 0 and k <= t.ndim)
        none = [0] * (t.ndim - k)
        return none + [pad[2 * i] for i in reversed(range(k))] + none + [pad[2 * i + 1] for i in reversed(range(k))]

    def indexed(self, t, index):
        """Reads by numbers, slices, None and an ellipsis, then by tensors of integers, or by one mask."""
        if isinstance(index, list) and any(i is None or isinstance(i, (slice, list)) or self.is_tensor(i) for i in index):
            index = tuple(index)
        parts = [self.literal(i, bool if i and isinstance(i[0], bool) else np.int64) if isinstance(i, list) else self.sliced_by(i)
                 for i in (index if isinstance(index, tuple) else [index])]
        if len(parts) == 1 and self.is_tensor(parts[0]) and parts[0].dtype == bool:
            return self.masked_rows(t, parts[0])
        used = sum(i is not None and i is not Ellipsis for i in parts)
        at = next((k for k, i in enumerate(parts) if i is Ellipsis), len(parts))
        parts[at:at + 1] = [slice(None)] * (t.ndim - used)
        self.check(t, len([i for i in parts if i is not None]) == t.ndim)
        axis, chosen = 0, {}
        for i in parts:
            if i is None:
                t = self.op("Unsqueeze", t, [axis])
            elif isinstance(i, slice):
                if i != slice(None):
                    start, end, step = i.indices(t.shape[axis])
                    t = self.cut(t, axis, start, end, step)
            elif self.is_tensor(i) and i.ndim:
                chosen[axis] = self.whole_numbers(i)
            else:
                self.check(t, self.is_tensor(i) or type(i) is int)
                t = self.op("Gather", t, self.integers(i) if self.is_tensor(i) else self.whole(i), axis=axis)
                axis -= 1
            axis += 1
        return self.chosen(t, chosen)

    def resized(self, t, size, scale, mode, align):
        """Resizes images to sizes, or by factors."""
        n = t.ndim - 2
        kinds = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
        self.check(t, n > 0 and {"nearest": n, "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode) == n)
        where = "asymmetric" if mode == "nearest" else "align_corners" if align else "half_pixel"
        scales = None if scale is None else Tensor(np.array([1, 1, *self.scaled(scale, n)], np.float32), True)
        sizes = [*t.shape[:2], *self.each(size, n)] if scale is None else None
        return self.op("Resize", t, None, scales, sizes, mode=kinds[mode], nearest_mode="floor",
                       coordinate_transformation_mode=where, cubic_coeff_a=-0.75)


adapter = ONNX
