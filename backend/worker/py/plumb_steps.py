"""Operators that a framework's table lacks, of others that it has: calls of lists
of tensors, and those that move elements, sum or multiply them in an obvious way.
"""

import functools
import itertools

from plumb_names import Unsupported
from plumb_table import GROUPS, STEPS, call


def step(*idents):
    """Lets a function compute operators: it gets what calls one of PyTorch's functions, and arguments by name."""
    def of(f):
        def computed(adapter, **bound):
            def run(name, *args, **kwargs):
                return call(adapter, name if name.startswith("operator.") else "torch." + name, *args, **kwargs)

            run.adapter = adapter
            return f(run, **bound)

        STEPS.update({ident: computed for ident in idents})
        return f

    return of


def only(holds, what):
    if not holds:
        raise Unsupported(what)


def ranks(tensors):
    return [len(t.shape) for t in tensors]


# Lists of tensors.

def each(name, run, self, **beside):
    """Makes a call of each tensor of a list, with one number or with a tensor of another list."""
    others = beside.pop("other", None)
    several = [beside.pop("scalar")] * len(self) if others is None else others
    only(len(self) == len(several) > 0, "tensors of lists that do not match")
    return [run(name, t, v, **beside) for t, v in zip(self, several)]


for name in ("add", "mul"):
    step("_foreach_" + name, "_foreach_%s.list" % name)(functools.partial(each, name))


def widened(name, run, tensors):
    return [run(name, t) for t in tensors]


for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    step(name + ".list")(functools.partial(widened, name))


@step("column_stack")
def column_stack(run, tensors):
    return run("cat", [t if len(t.shape) > 1 else run("reshape", t, [-1, 1]) for t in tensors], 1)


@step("cartesian_prod")
def cartesian_prod(run, tensors):
    only(tensors and ranks(tensors) == [1] * len(tensors) and len({t.dtype for t in tensors}) == 1, "rows of one dtype alone")
    if len(tensors) == 1:
        return tensors[0]
    return run("stack", [run("reshape", t, [-1]) for t in run("meshgrid", list(tensors), indexing="ij")], 1)


@step("combinations")
def combinations(run, input, r, with_replacement):
    only(ranks([input]) == [1] and r > 0, "combinations of a row alone")
    taken = (itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(input.shape[0]), r)
    rows = [run("stack", [run("operator.getitem", input, i) for i in places], 0) for places in taken]
    only(rows, "no combinations")
    return run("stack", rows, 0)


# Elements that are moved.

@step("pixel_shuffle")
def pixel_shuffle(run, input, upscale_factor):
    r, n = upscale_factor, len(input.shape) - 3
    only(n >= 0 and r > 0 and input.shape[n] % (r * r) == 0, "these sizes")
    rest, (c, h, w) = list(input.shape[:n]), input.shape[n:]
    parts = run("reshape", input, [*rest, c // (r * r), r, r, h, w])
    return run("reshape", run("permute", parts, [*range(n + 1), n + 3, n + 1, n + 4, n + 2]), [*rest, c // (r * r), h * r, w * r])


@step("pixel_unshuffle")
def pixel_unshuffle(run, input, downscale_factor):
    r, n = downscale_factor, len(input.shape) - 3
    only(n >= 0 and r > 0 and input.shape[n + 1] % r == input.shape[n + 2] % r == 0, "these sizes")
    rest, (c, h, w) = list(input.shape[:n]), input.shape[n:]
    parts = run("reshape", input, [*rest, c, h // r, r, w // r, r])
    return run("reshape", run("permute", parts, [*range(n + 1), n + 2, n + 4, n + 1, n + 3]), [*rest, c * r * r, h // r, w // r])


@step("channel_shuffle")
def channel_shuffle(run, input, groups):
    only(len(input.shape) > 2 and groups > 0 and input.shape[1] % groups == 0, "these sizes")
    n, c, *rest = input.shape
    return run("reshape", run("transpose", run("reshape", input, [n, groups, c // groups, *rest]), 1, 2), [n, c, *rest])


@step("unfold")
def unfold(run, input, dimension, size, step):
    n = len(input.shape)
    only(-n <= dimension < n and step > 0 and 0 < size <= input.shape[dimension], "these sizes")
    at = dimension % n
    windows = [run("narrow", input, at, start, size) for start in range(0, input.shape[at] - size + 1, step)]
    return run("movedim", run("stack", windows, at), at + 1, n)


# Sums and products.

@step("sum_to_size")
def sum_to_size(run, input, size):
    if not size:
        return run("sum", input)  # in int64, of no dimensions too
    shape, n = list(input.shape), len(input.shape) - len(size)
    only(n >= 0 and all(a == b or b == 1 for a, b in zip(shape[n:], size)), "a size to which it cannot be summed")
    dims = [d for d in range(len(shape)) if d < n or shape[d] != size[d - n]]
    return run("reshape", run("sum", input, dims), list(size)) if dims else input


@step("chain_matmul", "multi_dot")
def multiplied(run, matrices=(), tensors=()):
    several = list(matrices or tensors)
    inner, ends = ranks(several[1:-1]), ranks(several[:1] + several[-1:])
    only(several and set(inner) <= {2} and set(ends) <= ({2} if matrices or len(several) == 1 else {1, 2}), "no chain of matrices")
    return functools.reduce(functools.partial(run, "matmul"), several)


def added(run, input, product, beta, alpha):
    """Returns a product beside a tensor; nothing of the tensor for a factor of 0."""
    kinds = {run.adapter.dtype_name(t.dtype) for t in (input, product)}
    only(len(kinds) == 1 and not kinds & set(GROUPS["bool"]), "numbers of one dtype alone")
    product = product if alpha == 1 else run("mul", product, alpha)
    if beta == 0:
        return product
    return run("add", input if beta == 1 else run("mul", input, beta), product)


@step("addr")
def addr(run, input, vec1, vec2, beta, alpha):
    return added(run, input, run("outer", vec1, vec2), beta, alpha)


@step("addmv")
def addmv(run, input, mat, vec, beta, alpha):
    return added(run, input, run("mv", mat, vec), beta, alpha)


@step("addbmm")
def addbmm(run, input, batch1, batch2, beta, alpha):
    product = run("sum", run("bmm", batch1, batch2), 0)
    return added(run, input, run.adapter.cast(product, run.adapter.dtype_name(batch1.dtype)), beta, alpha)
