"""flatten, reshape, transpose, permute, cat.

Most results are views; the tests that compute with them read through strides.
"""
import torch
from plumb import *


@autotest()
def test_flatten_module():
    ndim = random(2, 6).to(int)
    start = random(0, ndim).to(int)
    m = torch.nn.Flatten(start_dim=start, end_dim=random(start, ndim).to(int) | nothing())
    m.train(random())
    device = random_device()
    m.to(device)
    x = random_tensor(ndim=ndim, dim0=random(1, 6)).to(device)
    return m(x)


@autotest()
def test_unflatten_module():
    a, b = random(1, 4).to(int), random(1, 4).to(int)
    dim = oneof(0, 1, 2, -1)
    m = torch.nn.Unflatten(dim, oneof((a, b), (a, -1), [-1, 1, b]))
    m.train(random())
    device = random_device()
    m.to(device)
    x = random_tensor(ndim=3, dim0=a * b, dim1=a * b, dim2=a * b).to(device)
    return m(x)


@autotest()
def test_flatten():
    x = random_tensor(ndim=random(0, 5), dim0=random(1, 6))
    return torch.flatten(x)


@autotest()
def test_flatten_dims():
    ndim = random(1, 6).to(int)
    start = random(0, ndim).to(int)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return x.flatten(start, random(start, ndim).to(int)) * 2


@autotest()
def test_reshape():
    a, b, c = random(1, 6), random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=a, dim1=b, dim2=c)
    return torch.reshape(x, oneof((-1,), (1, -1), (-1, 1, 1)))


@autotest()
def test_reshape_method():
    a, b, c = random(1, 6).to(int), random(1, 6).to(int), random(1, 6).to(int)
    x = random_tensor(ndim=3, dim0=a, dim1=b, dim2=c)
    return x.reshape(a * b, c) + x.reshape([a * b, -1])


@autotest()
def test_reshape_copies():
    # the transposed elements do not lie in order, so that no view is possible
    a, b = random(1, 6).to(int), random(1, 6).to(int)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    return x.transpose(0, 1).reshape(a, b)


@autotest()
def test_transpose():
    ndim = random(1, 6)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.transpose(x, random(-ndim, ndim).to(int), random(-ndim, ndim).to(int))


@autotest()
def test_transpose_method():
    x = random_tensor(ndim=3, dim0=random(1, 6))
    y = x.transpose(dim0=random(0, 3), dim1=random(-3, 0))
    return torch.exp(y)


@autotest()
def test_permute():
    x = random_tensor(ndim=4, dim0=random(1, 6))
    return torch.permute(x, dims=oneof((0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 3, 1), (1, 0, -1, -2)))


@autotest()
def test_permute_method():
    x = random_tensor(ndim=3, dim0=random(1, 6))
    return x.permute(2, 0, 1) * 3, x.permute(oneof((0, 2, 1), (1, 0, 2), (-1, 0, 1)))


@autotest()
def test_cat():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    y = random_tensor(ndim=2, dim0=a, dim1=b)
    z = random_tensor(ndim=2, dim0=a, dim1=b)
    return torch.cat([x, y, z], dim=random(-2, 2))


@autotest()
def test_cat_uneven():
    a, c = random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=a, dim1=random(1, 6), dim2=c)
    y = random_tensor(ndim=3, dim0=a, dim1=random(1, 6), dim2=c)
    return torch.cat((x, y), dim=oneof(1, -2))


@autotest()
def test_cat_default():
    b = random(1, 6)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=b)
    y = random_tensor(ndim=2, dim0=random(1, 6), dim1=b)
    return torch.cat([x, y, x])


@autotest()
def test_cat_of_views():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    y = random_tensor(ndim=2, dim0=b, dim1=a)
    return torch.cat([x, y.transpose(0, 1)], dim=1)


@autotest()
def test_shapes_chained():
    a, b, c = random(1, 5).to(int), random(1, 5).to(int), random(1, 5).to(int)
    x = random_tensor(ndim=3, dim0=a, dim1=b, dim2=c)
    y = x.permute(2, 0, 1).reshape(c * a, b).transpose(0, 1)
    return torch.cat([y, y * y], dim=0).flatten()


@autotest()
def test_view():
    a, b = random(1, 6).to(int), random(1, 6).to(int)
    x = random_tensor(ndim=3, dim0=a, dim1=b, dim2=2)
    return x.view(-1, b, 2), x.view(a, 2 * b), x.view((-1,))


@autotest()
def test_expand():
    x = random_tensor(ndim=3, dim0=1, dim1=random(1, 6), dim2=1)
    return x.expand(3, -1, 2), x.expand(2, 4, -1, random(1, 4))


@autotest()
def test_unsqueeze_squeeze():
    x = random_tensor(ndim=3, dim0=random(1, 3), dim1=1, dim2=random(1, 3))
    return torch.unsqueeze(x, oneof(0, 2, -1)), x.unsqueeze(-4), torch.squeeze(x), x.squeeze(oneof(0, 1, -1))


@autotest()
def test_narrow():
    x = random_tensor(ndim=2, dim0=random(3, 7), dim1=random(3, 7))
    return torch.narrow(x, 0, 1, random(0, 3)), x.narrow(-1, -2, 2)


@autotest()
def test_clone():
    x = random_tensor(ndim=4, dim0=2, dim1=3)
    return torch.clone(x), x.transpose(1, 2).clone(), x.clone(memory_format=torch.channels_last)


@autotest()
def test_slice_scatter():
    x = random_tensor(ndim=2, dim0=6, dim1=random(1, 5))
    y = random_tensor(ndim=2, dim0=2, dim1=x.shape[1])
    return torch.slice_scatter(x, y, 0, 1, 3, 1), x.slice_scatter(y, start=0, end=6, step=3)


@autotest(auto_backward=False)
def test_casts_to_integers():
    # from numbers that every one of the dtypes has
    x = random_tensor(ndim=2, dim0=random(1, 5), low=0, high=100)
    return x.bool(), x.byte(), x.char(), x.short(), x.int(), x.long()


@autotest()
def test_casts_to_floats():
    x = random_tensor(ndim=2, dim0=random(1, 5))
    return x.half(), x.bfloat16(), x.float(), x.double()


@autotest()
def test_casts_to_complex():
    x = random_tensor(ndim=2, dim0=random(1, 5))
    return x.cfloat(), x.cdouble()
