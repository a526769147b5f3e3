"""gather, scatter, index_select, masked_select: elements by place.

Indices are drawn below 3, and an indexed dimension has at least 4 entries; a
write without a sum takes distinct places, because the order of writes to one
place is unspecified.
"""
import torch
from plumb import *


def indices(a, b):
    return random_tensor(ndim=2, dim0=a, dim1=b, low=0, high=3, dtype=int)


def vector(n):
    return random_tensor(ndim=1, dim0=n, low=0, high=3, dtype=int)


def places(n):
    # a permutation of 0 to n-1
    return torch.argsort(random_tensor(ndim=1, dim0=n, low=0, high=1, requires_grad=False), stable=True)


def mask(a, b):
    return random_tensor(ndim=2, dim0=a, dim1=b, low=-1, high=1, requires_grad=False) > 0


@autotest()
def test_index_select():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(4, 8), dim2=random(1, 5))
    return torch.index_select(x, oneof(1, -2), vector(random(0, 7)))


@autotest()
def test_index_select_method():
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=random(1, 5))
    return x.index_select(dim=0, index=vector(random(1, 7)).int()), x.t().index_select(-1, vector(1))


@autotest()
def test_index_select_channels_last():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(4, 6), dim2=random(1, 4), dim3=random(1, 4))
    return x.contiguous(memory_format=torch.channels_last).index_select(1, vector(random(1, 7)))


@autotest(auto_backward=False)
def test_index_select_integers():
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=random(1, 5), low=-9, high=9, dtype=int)
    return x.index_select(0, vector(5)), (x > 0).index_select(0, vector(5)), x.to(torch.uint8).index_select(0, vector(3))


@autotest()
def test_index_select_complex():
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=random(1, 5), dtype=complex)
    return x.index_select(0, vector(random(1, 7)))


@autotest()
def test_index_add():
    a, n = random(1, 5), random(0, 7)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8))
    source = random_tensor(ndim=2, dim0=a, dim1=n)
    return torch.index_add(x, oneof(1, -1), vector(n), source, alpha=random(-2.0, 2.0).to(float) | nothing())


@autotest()
def test_index_add_method():
    a, n = random(1, 5), random(1, 7)
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=a)
    return x.index_add(0, vector(n).int(), random_tensor(ndim=2, dim0=n, dim1=a), alpha=2)


@autotest(auto_backward=False)
def test_index_add_integers():
    a, n = random(1, 5), random(1, 7)
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=a, low=-9, high=9, dtype=int)
    source = random_tensor(ndim=2, dim0=n, dim1=a, low=-9, high=9, dtype=int)
    index = vector(n)
    return x.index_add(0, index, source, alpha=random(-3, 4).to(int)), (x > 0).index_add(0, index, source > 0)


@autotest()
def test_index_copy():
    a, n = random(1, 5), random(4, 8)
    x = random_tensor(ndim=2, dim0=a, dim1=n)
    return torch.index_copy(x, oneof(1, -1), places(n), random_tensor(ndim=2, dim0=a, dim1=n))


@autotest()
def test_index_copy_method():
    a = random(1, 5)
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=a)
    return x.index_copy(0, places(3), random_tensor(ndim=2, dim0=3, dim1=a))


@autotest()
def test_index_fill():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(4, 8))
    index = vector(random(0, 5))
    return torch.index_fill(x, 1, index, random(-2.0, 2.0).to(float)), x.t().index_fill(0, index - 3, 2)


@autotest()
def test_index_fill_tensor():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(4, 8))
    return x.index_fill(-1, vector(random(1, 5)), random_tensor(ndim=0, dim0=1))


@autotest(auto_backward=False)
def test_index_reduce():
    a, n = random(1, 5), random(0, 7)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8))
    source = random_tensor(ndim=2, dim0=a, dim1=n)
    return torch.index_reduce(x, 1, vector(n), source, oneof("prod", "mean", "amax", "amin"), include_self=random_bool())


@autotest()
def test_index_reduce_mean():
    a, n = random(1, 5), random(1, 7)
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=a)
    return x.index_reduce(0, vector(n), random_tensor(ndim=2, dim0=n, dim1=a), "mean", include_self=random_bool())


@autotest(auto_backward=False)
def test_index_reduce_integers():
    a, n = random(1, 5), random(1, 7)
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=a, low=-9, high=9, dtype=int)
    source = random_tensor(ndim=2, dim0=n, dim1=a, low=-9, high=9, dtype=int)
    return x.index_reduce(0, vector(n), source, oneof("prod", "mean", "amax", "amin"), include_self=random_bool())


@autotest()
def test_gather():
    a, c = random(1, 5).to(int), random(1, 5).to(int)
    x = random_tensor(ndim=3, dim0=a, dim1=random(4, 8), dim2=c)
    index = random_tensor(ndim=3, dim0=a, dim1=random(1, 6), dim2=c, low=0, high=3, dtype=int)
    return torch.gather(x, 1, index), x.gather(-2, index)


@autotest()
def test_scatter():
    a, n = random(1, 5).to(int), random(4, 8).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=n)
    index = torch.argsort(random_tensor(ndim=2, dim0=a, dim1=n, low=0, high=1, requires_grad=False), stable=True)
    return torch.scatter(x, 1, index, random_tensor(ndim=2, dim0=a, dim1=n)), x.scatter(1, index=index, src=x * 2)


@autotest()
def test_scatter_value():
    a = random(1, 5).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8))
    index = indices(a, random(1, 5))
    return torch.scatter(x, 1, index, random(-2.0, 2.0).to(float)), x.scatter(dim=1, index=index, value=3)


@autotest(auto_backward=False)
def test_scatter_with_reduction():
    a, n = random(1, 5).to(int), random(1, 7).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8), requires_grad=False)
    index, src = indices(a, n), random_tensor(ndim=2, dim0=a, dim1=n, requires_grad=False)
    reduce = oneof("add", "multiply")
    return torch.scatter(x, 1, index, src, reduce=reduce), x.scatter(1, index, 2.0, reduce=reduce), x.scatter(1, index, value=0.5, reduce=reduce)


@autotest()
def test_scatter_add():
    a, n = random(1, 5).to(int), random(1, 7).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8))
    return torch.scatter_add(x, 1, indices(a, n), random_tensor(ndim=2, dim0=a, dim1=n))


@autotest()
def test_scatter_reduce_sums():
    a, n = random(1, 5).to(int), random(1, 7).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8))
    src = random_tensor(ndim=2, dim0=a, dim1=n)
    return torch.scatter_reduce(x, 1, indices(a, n), src, oneof("sum", "mean"), include_self=random_bool() | nothing())


@autotest()
def test_scatter_reduce_product():
    # away from zero, where PyTorch divides by each factor
    a, n = random(1, 5).to(int), random(1, 5).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8), low=0.5, high=2)
    src = random_tensor(ndim=2, dim0=a, dim1=n, low=0.5, high=2)
    return x.scatter_reduce(1, indices(a, n), src, "prod", include_self=random_bool())


@autotest()
def test_scatter_reduce_extremes():
    a, n = random(1, 5).to(int), random(1, 7).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8))
    src = random_tensor(ndim=2, dim0=a, dim1=n)
    return x.scatter_reduce(1, indices(a, n), src, reduce=oneof("amax", "amin"), include_self=random_bool())


@autotest(auto_backward=False)
def test_scatter_reduce_integers():
    a, n = random(1, 5).to(int), random(1, 7).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=random(4, 8), low=-9, high=9, dtype=int)
    src = random_tensor(ndim=2, dim0=a, dim1=n, low=-9, high=9, dtype=int)
    return x.scatter_reduce(1, indices(a, n), src, oneof("sum", "prod", "mean", "amax", "amin"), include_self=random_bool())


@autotest()
def test_take():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(2, 5))
    index = indices(random(0, 4), random(1, 4))
    return torch.take(x, index), x.t().take(index - 3)


@autotest()
def test_put():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(2, 5))
    source = random_tensor(ndim=2, dim0=3, dim1=1)
    return torch.put(x, places(3), source), x.t().put(places(3) - 4, source)


@autotest()
def test_put_accumulate():
    n = random(0, 6)
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(2, 5))
    return x.put(vector(n), random_tensor(ndim=1, dim0=n), accumulate=True)


@autotest()
def test_take_along_dim():
    a = random(2, 5).to(int)
    x = random_tensor(ndim=3, dim0=a, dim1=random(4, 8), dim2=1)
    index = random_tensor(ndim=3, dim0=1, dim1=random(1, 5), dim2=3, low=0, high=3, dtype=int)
    return torch.take_along_dim(x, index, 1), x.take_along_dim(index)


@autotest(auto_backward=False)
def test_one_hot():
    x = indices(random(1, 4), random(1, 4))
    return torch.nn.functional.one_hot(x), torch.nn.functional.one_hot(x, num_classes=random(4, 8).to(int))


@autotest(auto_backward=False)
def test_nonzero():
    x = random_tensor(ndim=random(0, 4), dim0=random(0, 5), low=-2, high=2, requires_grad=False)
    return torch.nonzero(torch.trunc(x)), (x > 0).nonzero(), torch.argwhere(torch.trunc(x))


@autotest(auto_backward=False)
def test_nonzero_as_tuple():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 4), low=-2, high=2, requires_grad=False)
    rows, columns = torch.where(x > 0)
    i, j = torch.trunc(x).nonzero(as_tuple=True)
    return rows, columns, x[i, j], torch.nonzero(x[0] > 0, as_tuple=True)[0]


@autotest()
def test_masked_select():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    return torch.masked_select(x, mask(a, b))


@autotest(auto_backward=False)
def test_masked_select_transposed():
    # PyTorch 1.13 writes the gradient in the order of the memory; its gradcheck fails
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    return random_tensor(ndim=2, dim0=a, dim1=b).t().masked_select(mask(b, 1))


@autotest()
def test_masked_select_broadcast():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    return torch.masked_select(random_tensor(ndim=1, dim0=b), mask(a, b))


@autotest()
def test_masked_scatter():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    x, source = random_tensor(ndim=2, dim0=a, dim1=b), random_tensor(ndim=3, dim0=2, dim1=a, dim2=b)
    return torch.masked_scatter(x, mask(a, b), source), x.t().masked_scatter(mask(b, 1), source)


@autotest()
def test_index_put():
    b = random(1, 5).to(int)
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=b)
    return torch.index_put(x, (places(4),), random_tensor(ndim=2, dim0=4, dim1=b)), x.index_put([places(4) - 4], random_tensor(ndim=1, dim0=1))


@autotest()
def test_index_put_accumulate():
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=random(4, 8))
    values = random_tensor(ndim=2, dim0=3, dim1=4)
    return x.index_put((indices(3, 1), vector(4)), values, accumulate=True)


@autotest()
def test_index_put_mask():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    return x.index_put((mask(a, b),), random_tensor(ndim=0, dim0=1), random_bool())


@autotest()
def test_diag():
    n = random(1, 6)
    return torch.diag(random_tensor(ndim=1, dim0=n), random(-3, 4).to(int)), random_tensor(ndim=2, dim0=n, dim1=random(1, 6)).diag(oneof(-1, 0, 1))


@autotest()
def test_triangles():
    x = random_tensor(ndim=random(2, 5), dim0=random(1, 5))
    return torch.tril(x, random(-4, 5).to(int)), x.triu(diagonal=random(-4, 5).to(int)), x.transpose(0, 1).tril()


@autotest()
def test_trace():
    n = random(1, 6)
    x = random_tensor(ndim=2, dim0=n, dim1=n)
    return torch.trace(x), x.t().trace()


@autotest(auto_backward=False)
def test_trace_of_oblong():
    # PyTorch 1.13 writes the gradient of a tall matrix below its square too; its gradcheck fails
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=random(1, 6))
    return torch.trace(x), x.t().trace()


@autotest(auto_backward=False)
def test_matrices_of_integers():
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=random(1, 6), low=-9, high=9, dtype=int)
    return x.trace(), x.tril(1), (x > 0).triu(), x.diag()
