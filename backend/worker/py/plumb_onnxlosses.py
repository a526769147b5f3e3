"""Losses, norms and distances that ONNX has no operator of, in operators of ONNX: the formulas that PyTorch documents."""

import math

import numpy as np


class Losses:
    """The part of an adapter that weighs how far tensors are apart."""

    def paired(self, *tensors):
        """Returns tensors of one dtype and one shape."""
        return self.common(self.alike(*tensors))

    def norm(self, t, p, dim=None, keepdim=False):
        """Returns the p-norm over dimensions, or of all elements."""
        axes, p = self.over(self.check(t, t.size), dim), 2 if p in (None, "fro") else self.check(p, isinstance(p, (int, float)))
        whole = {1: "ReduceL1", 2: "ReduceL2"}.get(p)
        if whole:
            return self.op(whole, t, axes, keepdims=keepdim)
        sizes = self.op("Abs", t)
        if math.isinf(p):
            return self.op("ReduceMax" if p > 0 else "ReduceMin", sizes, axes, keepdims=keepdim)
        if p == 0:
            return self.op("ReduceSum", self.cast(self.cast(t, "bool"), t.dtype.name), axes, keepdims=keepdim)
        return self.op("Pow", self.op("ReduceSum", self.op("Pow", sizes, p), axes, keepdims=keepdim), 1 / p)

    def unit(self, t, p, dim, eps):
        return self.op("Div", t, self.op("Max", self.norm(t, p, dim, True), eps))

    def apart(self, a, b, p, eps, keepdim=False):
        """Returns the p-norms of differences along the last dimension."""
        return self.norm(self.op("Add", self.op("Sub", a, b), eps), p, -1, keepdim)

    def crosswise(self, a, b, p):
        """Returns the distance of each row of one tensor from each of another."""
        self.check(a, a.ndim > 1 and b.ndim > 1 and a.shape[-1] == b.shape[-1])
        return self.norm(self.op("Sub", self.op("Unsqueeze", a, [-2]), self.op("Unsqueeze", b, [-3])), p, -1)

    def cosine(self, a, b, dim, eps):
        """Returns the cosine of the angle between vectors, the product of whose lengths is at least eps."""
        dot = self.op("ReduceSum", self.op("Mul", a, b), [dim], keepdims=0)
        lengths = [self.op("Max", self.op("ReduceL2", v, [dim], keepdims=0), eps) for v in (a, b)]
        return self.op("Div", dot, self.op("Mul", *lengths))

    # Losses, given tensors of one dtype.

    def scaled_by(self, t, weight):
        return t if weight is None else self.op("Mul", t, weight)

    def floored(self, t):
        return self.op("Max", t, 0.0)

    def half_square(self, d, factor=0.5):
        return self.op("Mul", self.op("Mul", d, d), factor)

    def huber(self, x, y, delta, reduction):
        d = self.op("Abs", self.op("Sub", x, y))
        line = self.op("Mul", self.op("Sub", d, 0.5 * delta), delta)
        return self.reduced(self.op("Where", self.op("LessOrEqual", d, delta), self.half_square(d), line), reduction)

    def smooth(self, x, y, beta, reduction):
        d = self.op("Abs", self.op("Sub", x, y))
        if beta == 0:
            return self.reduced(d, reduction)
        return self.reduced(self.op("Where", self.op("Less", d, beta), self.half_square(d, 0.5 / beta), self.op("Sub", d, 0.5 * beta)), reduction)

    def crossed(self, x, y, weight, reduction):
        """The cross entropy of probabilities, whose logarithms PyTorch takes for at least -100."""
        terms = [self.op("Mul", p, self.op("Max", q, -100.0)) for p, q in
                 ((y, self.op("Log", x)), (self.op("Sub", 1.0, y), self.log1p(self.op("Neg", x))))]
        return self.reduced(self.scaled_by(self.op("Neg", self.op("Add", *terms)), weight), reduction)

    def crossed_logits(self, x, y, weight, reduction, positive):
        off = self.op("Softplus", self.op("Neg", x))
        if positive is not None:
            off = self.op("Mul", off, self.op("Add", self.op("Mul", self.op("Sub", positive, 1.0), y), 1.0))
        return self.reduced(self.scaled_by(self.op("Add", self.op("Mul", self.op("Sub", 1.0, y), x), off), weight), reduction)

    def divergence(self, x, y, log_target, reduction):
        if log_target:
            each = self.op("Mul", self.op("Exp", y), self.op("Sub", y, x))
        else:
            each = self.op("Sub", self.op("Where", self.op("Equal", y, 0.0), y, self.op("Mul", y, self.op("Log", y))), self.op("Mul", y, x))
        if reduction == "batchmean":
            return self.op("Div", self.reduced(each, "sum"), float(self.check(x, x.ndim).shape[0]))
        return self.reduced(each, reduction)

    def poisson(self, x, y, logs, full, eps, reduction):
        if logs:
            each = self.op("Sub", self.op("Exp", x), self.op("Mul", y, x))
        else:
            each = self.op("Sub", x, self.op("Mul", y, self.op("Log", self.op("Add", x, eps))))
        if full:
            more = self.op("Add", self.op("Sub", self.op("Mul", y, self.op("Log", y)), y), self.half_log(self.op("Mul", y, 2 * math.pi)))
            each = self.op("Add", each, self.op("Where", self.op("Greater", y, 1.0), more, self.full((), 0, y.dtype)))
        return self.reduced(each, reduction)

    def half_log(self, t):
        return self.op("Mul", self.op("Log", t), 0.5)

    def gaussian(self, x, y, var, full, eps, reduction):
        if var.shape != x.shape and var.shape == x.shape[:-1]:
            var = self.op("Unsqueeze", var, [-1])
        var, d = self.op("Max", var, eps), self.op("Sub", x, y)
        each = self.op("Mul", self.op("Add", self.op("Log", var), self.op("Div", self.op("Mul", d, d), var)), 0.5)
        return self.reduced(self.op("Add", each, 0.5 * math.log(2 * math.pi)) if full else each, reduction)

    def hinged(self, x, y, margin, reduction):
        """Each element where the target is 1, what is below the margin where it is -1."""
        near = self.floored(self.op("Sub", margin, x))
        zero = self.full((), 0, x.dtype)
        parts = [self.op("Where", self.op("Equal", y, s), zero, v) for s, v in ((1.0, near), (-1.0, x))]
        return self.reduced(self.op("Add", *parts), reduction)

    def angled(self, a, b, y, margin, reduction):
        dim = self.check(a, a.ndim in (1, 2) and a.ndim == b.ndim and y.ndim < 2).ndim - 1
        y = self.to(y, a.dtype)
        sums = [self.op("ReduceSum", self.op("Mul", v, w), [dim], keepdims=0) for v, w in ((a, b), (a, a), (b, b))]
        lengths = [self.op("Add", s, 1e-12) for s in sums[1:]]
        cosine = self.op("Div", sums[0], self.op("Sqrt", self.op("Mul", *lengths)))
        zero = self.full((), 0, a.dtype)
        parts = [self.op("Where", self.op("Equal", y, s), v, zero) for s, v in
                 ((1.0, self.op("Sub", 1.0, cosine)), (-1.0, self.floored(self.op("Sub", cosine, margin))))]
        return self.reduced(self.op("Add", *parts), reduction)

    def triplet(self, a, near, far, margin, p, eps, swap, reduction):
        self.check(a, a.ndim == near.ndim == far.ndim and a.ndim)
        apart = self.apart(a, far, p, eps)
        if swap:
            apart = self.op("Min", apart, self.apart(near, far, p, eps))
        return self.reduced(self.floored(self.op("Add", self.op("Sub", self.apart(a, near, p, eps), apart), margin)), reduction)

    def margins(self, x, y, p, margin, weight, reduction):
        """The margins by which other classes miss the one that is right."""
        self.check(x, p in (1, 2) and x.ndim == 2 and y.ndim == 1)
        index = self.op("Unsqueeze", self.inside(y), [1])
        off = self.floored(self.op("Add", self.op("Sub", x, self.op("GatherElements", x, index, axis=1)), margin))
        each = self.op("Mul", off, off) if p == 2 else off
        if weight is not None:
            each = self.op("Mul", each, self.op("Unsqueeze", self.op("Gather", weight, y), [1]))
        each = self.op("ScatterElements", each, index, self.full(index.shape, 0, x.dtype), axis=1)
        return self.reduced(self.op("ReduceMean", self.filled(each, 1), [1], keepdims=0), reduction)

    def several_right(self, x, y, weight, reduction):
        logs = [self.op("Neg", self.op("Softplus", v)) for v in (self.op("Neg", x), x)]
        each = self.op("Add", self.op("Mul", y, logs[0]), self.op("Mul", self.op("Sub", 1.0, y), logs[1]))
        return self.reduced(self.op("Neg", self.op("ReduceMean", self.scaled_by(self.filled(each, -1), weight), [-1], keepdims=0)), reduction)

    def crossing(self, x, y, weight, ignore, reduction, smoothing):
        """The cross entropy of classes or of probabilities of them."""
        self.check(x, x.ndim > 1)
        if y.dtype.kind == "f":
            return self.blurred(x, y, weight, reduction, smoothing)
        if smoothing:
            return self.smoothed(x, y, weight, ignore, reduction, smoothing)
        return self.op("SoftmaxCrossEntropyLoss", x, self.inside(y), weight, ignore_index=ignore, reduction=reduction)

    def smoothed(self, x, y, weight, ignore, reduction, smoothing):
        """The cross entropy of classes that are right but for some uncertainty, of those that are not to be ignored."""
        self.check(reduction, reduction in ("none", "mean", "sum"))
        logs = self.op("LogSoftmax", x, axis=1)
        zero, taken = self.full((), 0, x.dtype), self.op("Not", self.op("Equal", y, ignore))
        index = self.inside(self.op("Where", taken, y, self.full((), 0, y.dtype)))
        right = self.op("Neg", self.op("Squeeze", self.op("GatherElements", logs, self.op("Unsqueeze", index, [1]), axis=1), [1]))
        shares = self.full(y.shape, 1, x.dtype) if weight is None else self.op("Gather", weight, index)
        every = logs if weight is None else self.op("Mul", logs, self.reshape(weight, (1, -1) + (1,) * (x.ndim - 2)))
        right, even, shares = [self.op("Where", taken, v, zero) for v in
                               (self.op("Mul", right, shares), self.op("Neg", self.op("ReduceSum", every, [1], keepdims=0)), shares)]
        each = self.op("Add", self.op("Mul", right, 1 - smoothing), self.op("Mul", even, smoothing / (x.shape[1] or math.nan)))
        if reduction == "mean":
            return self.op("Div", self.reduced(each, "sum"), self.op("ReduceSum", shares, keepdims=0))
        return self.reduced(each, reduction)

    def blurred(self, x, y, weight, reduction, smoothing):
        """The cross entropy of probabilities of classes."""
        self.check(x, x.shape == y.shape)
        if smoothing:
            y = self.op("Add", self.op("Mul", y, 1 - smoothing), smoothing / (x.shape[1] or math.nan))
        each = self.op("Mul", self.op("LogSoftmax", x, axis=1), y)
        if weight is not None:
            each = self.op("Mul", each, self.reshape(weight, (1, -1) + (1,) * (x.ndim - 2)))
        each = self.op("Neg", self.op("ReduceSum", each, [1], keepdims=0))
        if reduction == "mean":
            return self.op("Div", self.reduced(each, "sum"), float(x.size / max(x.shape[1], 1)))
        return self.reduced(each, reduction)

    # Elements.

    def log1p(self, x):
        """Returns log(1+x), where what rounding 1+x takes away is given back (Goldberg, 1991, theorem 4)."""
        u = self.op("Add", x, 1.0)
        d = self.op("Sub", u, 1.0)
        whole = self.op("Or", self.op("Equal", d, 0.0), self.op("Equal", d, math.inf))
        return self.op("Mul", x, self.op("Where", whole, self.full((), 1, x.dtype), self.op("Div", self.op("Log", u), d)))

    def near(self, a, b, rtol, atol, equal_nan):
        """Tells which elements are close to others, infinities to themselves."""
        if a.dtype.kind != "f":
            a, b = [self.cast(v, "float64") for v in (a, b)]
        off = self.op("Abs", self.op("Sub", a, b))
        finite = self.op("Less", off, math.inf)  # a NaN is not less
        close = self.op("And", finite, self.op("LessOrEqual", off, self.op("Add", self.op("Mul", self.op("Abs", b), rtol), atol)))
        close = self.op("Or", close, self.op("Equal", a, b))
        return self.op("Or", close, self.op("And", self.op("IsNaN", a), self.op("IsNaN", b))) if equal_nan else close

    def every(self, mask):
        return bool(self.op("ReduceMin", self.cast(mask, "int32"), keepdims=0).value) if mask.size else True

    def no_nan(self, t, nan, above, below):
        """Returns a tensor with numbers in the place of NaN and the infinities."""
        ends = np.finfo(t.dtype)
        for kind, v, only in (("IsNaN", nan or 0, {}), ("IsInf", ends.max if above is None else above, {"detect_negative": 0}),
                              ("IsInf", ends.min if below is None else below, {"detect_positive": 0})):
            t = self.op("Where", self.op(kind, t, **only), self.full((), v, t.dtype), t)
        return t

    def mean_of_numbers(self, t, dim, keepdim):
        """Returns the mean of all that is no NaN."""
        axes = self.over(t, dim)
        count = self.op("ReduceSum", self.cast(self.op("Not", self.op("IsNaN", t)), t.dtype.name), axes, keepdims=keepdim)
        return self.op("Div", self.op("ReduceSum", self.zeroed(t), axes, keepdims=keepdim), count)

    def added(self, a, b):
        """Adds; two truth values are one of them."""
        return self.op("Or" if a.dtype == bool else "Add", a, b)

    def shifted(self, t, n, left):
        """Shifts integers by less than their bits: multiplies, or divides and rounds down."""
        t, n = self.alike(t, n)
        self.check(t, t.dtype.kind == "i" and not ((n.value < 0) | (n.value >= 8 * t.dtype.itemsize - 1)).any())
        powers = self.op("Pow", self.full((), 2, t.dtype), n)
        return self.op("Mul", t, powers) if left else self.floor_divided(t, powers)

    def zeroed(self, t):
        return self.op("Where", self.op("IsNaN", t), self.full((), 0, t.dtype), t) if t.dtype.kind == "f" else t

    def remains(self, a, b):
        """Returns the remainder, which has the sign of the divisor."""
        if a.dtype.kind != "f":
            return self.op("Mod", a, b)
        rest, zero = self.op("Mod", a, b, fmod=1), self.full((), 0, a.dtype)
        other = self.op("And", self.op("Not", self.op("Equal", rest, zero)),
                        self.op("Xor", self.op("Less", rest, zero), self.op("Less", b, zero)))
        return self.op("Where", other, self.op("Add", rest, b), rest)

    def floor_divided(self, a, b):
        """Divides and rounds down, exactly: by the remainder, as PyTorch does."""
        if a.dtype.kind == "i":
            return self.op("Div", self.op("Sub", a, self.op("Mod", a, b)), b)
        if a.dtype.kind == "u":
            return self.op("Div", a, b)
        rest = self.op("Mod", a, b, fmod=1)
        found = self.op("Div", self.op("Sub", a, rest), b)
        zero, one = self.scalars(a.dtype, 0, 1)
        other = self.op("And", self.op("Not", self.op("Equal", rest, zero)),
                        self.op("Xor", self.op("Less", rest, zero), self.op("Less", b, zero)))
        found = self.op("Sub", found, self.op("Where", other, one, zero))
        low = self.op("Floor", found)
        low = self.op("Add", low, self.op("Where", self.op("Greater", self.op("Sub", found, low), 0.5), one, zero))
        whole = self.op("Div", a, b)
        found = self.op("Where", self.op("Equal", b, zero), whole, low)
        below = self.op("And", self.op("Equal", found, zero), self.op("Less", self.op("Div", one, whole), zero))
        return self.op("Mul", found, self.op("Where", below, self.op("Neg", one), one))  # 0 has the quotient's sign
