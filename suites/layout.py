"""Indexing, views, splitting, joining and reordering: data movement, exact."""
import torch
from plumb import *


@autotest()
def test_getitem_ints():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    return x[1], x[-1, 0], x[0, 1, -2], x[random(0, 2).to(int)]


@autotest()
def test_getitem_slices():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    a, b = random(0, 3).to(int), random(1, 6).to(int)
    return x[a:b], x[:, ::2], x[..., 1:-1], x[::3, 5:, -100:100] * 2


@autotest()
def test_getitem_mixed():
    x = random_tensor(ndim=4, dim0=random(2, 5), dim1=random(2, 5), dim2=random(2, 5), dim3=random(2, 5))
    return x[1:, ..., None, 0], x[None, :, None], x[...], x[0, ..., -1], x[:, -1, None, 1::2]


@autotest()
def test_getitem_of_view():
    x = random_tensor(ndim=2, dim0=random(2, 6), dim1=random(2, 6))
    return torch.exp(x.transpose(0, 1)[1:][:, 0])


@autotest(refusals=True)
def test_getitem_refused():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    return x[random(-4, 4).to(int), random(-5, 5).to(int)]


@autotest()
def test_select():
    x = random_tensor(ndim=3, dim0=random(2, 5), dim1=random(2, 5), dim2=random(2, 5))
    return torch.select(x, random(-3, 3).to(int), random(-2, 2).to(int)), x.select(dim=1, index=0)


@autotest()
def test_split():
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=random(1, 6))
    parts = torch.split(x, random(1, 4).to(int), dim=random(-2, 2).to(int))
    return parts[0], torch.exp(parts[-1]), torch.cat(x.split(split_size=2))


@autotest()
def test_split_sizes():
    n, k = random(0, 4).to(int), random(0, 4).to(int)
    x = random_tensor(ndim=2, dim0=n + k, dim1=random(1, 4))
    parts = torch.split(x, [n, k])
    return x.split((n, k), 0)[1], parts[0] * 2, parts[1]


@autotest()
def test_split_with_sizes():
    x = random_tensor(ndim=2, dim0=4, dim1=random(1, 4))
    return torch.split_with_sizes(x, [1, 3])[1], x.split_with_sizes([2, random(1, 3).to(int)], dim=0)[0]


@autotest()
def test_chunk():
    x = random_tensor(ndim=2, dim0=random(1, 7), dim1=random(1, 7))
    parts = torch.chunk(x, random(1, 5).to(int), dim=random(-2, 2).to(int))
    return parts[0] * 2, parts[-1], x.chunk(2)[0]


@autotest()
def test_unbind():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(1, 4))
    return torch.unbind(x, dim=random(-3, 3).to(int))[-1], x.unbind(1)[0], torch.stack(x.unbind())


@autotest()
def test_tensor_split():
    x = random_tensor(ndim=2, dim0=random(1, 7), dim1=random(1, 7))
    d = random(-2, 2).to(int)
    return torch.tensor_split(x, random(1, 4).to(int), dim=d)[0], x.tensor_split((1, random(-2, 4).to(int)), d)[1]


@autotest()
def test_axis_splits():
    x = random_tensor(ndim=3, dim0=4, dim1=6, dim2=2)
    return torch.hsplit(x, oneof(2, 3, (1, 4)))[1], x.vsplit(oneof(2, 4, (1,)))[0], torch.dsplit(x, oneof(1, 2, (1,)))[-1]


@autotest()
def test_stack():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    x, y = random_tensor(ndim=2, dim0=a, dim1=b), random_tensor(ndim=2, dim0=b, dim1=a)
    return torch.stack([x, y.t(), x], dim=random(-3, 3).to(int)), torch.stack((x, x))


@autotest()
def test_stacks():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    x, y = random_tensor(ndim=2, dim0=a, dim1=b), random_tensor(ndim=2, dim0=a, dim1=b)
    return torch.hstack([x, y]), torch.vstack((x, y)), torch.row_stack((x, y)), torch.dstack([x, y]), torch.column_stack([x, x[:, 0]])


@autotest()
def test_stacks_of_vectors():
    n = random(1, 5).to(int)
    x, y = random_tensor(ndim=1, dim0=n), random_tensor(ndim=1, dim0=n)
    s = random_tensor(ndim=0)
    return torch.hstack([x, y, s]), torch.vstack((x, y)), torch.dstack([x, y]), torch.column_stack([x, y])


@autotest()
def test_atleast():
    x = random_tensor(ndim=random(0, 4), dim0=random(1, 4))
    return torch.atleast_1d(x), torch.atleast_2d(x), torch.atleast_3d(x), torch.atleast_2d(x, x)[0], torch.atleast_3d([x])[0]


@autotest()
def test_meshgrid():
    x, y = random_tensor(ndim=1, dim0=random(1, 5)), random_tensor(ndim=1, dim0=random(1, 5))
    z = random_tensor(ndim=0)
    grid = torch.meshgrid(x, y, indexing=oneof("ij", "xy"))
    return grid[0], grid[1] * 2, torch.meshgrid([x, z, y])[2]


@autotest()
def test_broadcast():
    a, b = random(1, 5).to(int), random(1, 5).to(int)
    x, y = random_tensor(ndim=2, dim0=a, dim1=1), random_tensor(ndim=1, dim0=b)
    return torch.broadcast_tensors(x, y)[0], torch.broadcast_to(x, (2, a, b)), x.broadcast_to(a, b), x.expand_as(x * y)


@autotest()
def test_block_diag():
    x, y = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 4)), random_tensor(ndim=1, dim0=random(1, 4))
    return torch.block_diag(x, y, random_tensor(ndim=0))


@autotest()
def test_cartesian_prod():
    x, y = random_tensor(ndim=1, dim0=random(1, 5)), random_tensor(ndim=1, dim0=random(1, 5))
    return torch.cartesian_prod(x, y), torch.cartesian_prod(x, y, x), torch.cartesian_prod(x)


@autotest()
def test_combinations():
    x = random_tensor(ndim=1, dim0=random(0, 6))
    return torch.combinations(x), torch.combinations(x, random(0, 4).to(int), with_replacement=random().to(bool))


@autotest()
def test_repeat_interleave_tensor():
    x = random_tensor(ndim=2, dim0=3, dim1=random(1, 5))
    n = torch.tensor([random(0, 3).to(int), 2, random(0, 3).to(int)])
    return torch.repeat_interleave(x, n, dim=0), x.repeat_interleave(torch.tensor([2]))


@autotest()
def test_diagonal():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    return torch.diagonal(x, random(-5, 6).to(int), dim1=oneof(0, 1), dim2=oneof(2, -1)), x.diagonal()


@autotest()
def test_diag_embed():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5))
    return torch.diag_embed(x, random(-2, 3).to(int)), x.diag_embed(dim1=oneof(0, -1), dim2=1, offset=1)


@autotest()
def test_scatters():
    n = random(2, 5).to(int)
    x, v = random_tensor(ndim=2, dim0=n, dim1=n), random_tensor(ndim=1, dim0=n)
    return torch.diagonal_scatter(x, v), torch.select_scatter(x, v, 0, random(-2, 2).to(int))


@autotest()
def test_unfold():
    x = random_tensor(ndim=2, dim0=random(3, 7), dim1=random(3, 7))
    return x.unfold(random(-2, 2).to(int), random(1, 4).to(int), random(1, 4).to(int))


@autotest()
def test_as_strided():
    x = random_tensor(ndim=2, dim0=4, dim1=5)
    y = torch.as_strided(x, (random(1, 4).to(int), 3), (random(0, 4).to(int), 2), random(0, 3).to(int))
    return y * 1, x.as_strided((2, 2), (1, 1))


@autotest()
def test_movedim():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    return torch.movedim(x, random(-3, 3).to(int), 1), x.moveaxis((0, 1), (2, oneof(0, 1, -2))), torch.swapaxes(x, 0, -1), x.swapdims(1, 2)


@autotest()
def test_unflatten():
    x = random_tensor(ndim=2, dim0=6, dim1=random(1, 4))
    return torch.unflatten(x, 0, oneof((2, 3), (-1, 2), (1, 6, 1))), x.ravel(), torch.ravel(x.t())


@autotest()
def test_like_other():
    x = random_tensor(ndim=2, dim0=2, dim1=6)
    y = random_tensor(ndim=2, dim0=3, dim1=4, dtype=oneof(int, float))
    return x.view_as(y), x.t().reshape_as(y), x.type_as(y)


@autotest()
def test_transposed_attributes():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    return x.mT, x[0].T * 2, x[0].mT, x[0].H, torch.adjoint(x)


@autotest()
def test_flip():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    return torch.flip(x, (0, 2)), x.flip(random(-3, 3).to(int)), x.transpose(0, 1).flip(1, 2), torch.fliplr(x), x.flipud()


@autotest()
def test_flip_channels_last():
    x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=random(1, 5), dim3=random(1, 5))
    return x.contiguous(memory_format=torch.channels_last).flip(3)


@autotest()
def test_rot90():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    return torch.rot90(x, random(-5, 6).to(int), (0, 2)), x.rot90()


@autotest()
def test_roll():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    k = random(-6, 7).to(int)
    return torch.roll(x, k), x.roll(k, random(-3, 3).to(int)), torch.roll(x, shifts=(k, 1), dims=(0, 2)), x.transpose(0, 2).roll(1)


@autotest()
def test_repeat():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5))
    return x.repeat(2, random(1, 3).to(int)), x.repeat((random(1, 3).to(int), 1, 3)), x.tile(2), torch.tile(x, (2, 1, 2))


@autotest()
def test_repeat_interleave():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5))
    return torch.repeat_interleave(x, random(0, 4).to(int)), x.repeat_interleave(2, dim=random(-2, 2).to(int))


@autotest()
def test_contiguous():
    x = random_tensor(ndim=4, dim0=2, dim1=random(1, 4), dim2=random(1, 4), dim3=random(1, 4))
    return x.transpose(0, 2).contiguous(), x.contiguous(memory_format=torch.channels_last)


@autotest(auto_backward=False)
def test_movement_of_integers():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), dtype=oneof(int, bool, torch.uint8, torch.int32))
    return x.flip(0), x.roll(1, 1), x.repeat(2, 2), torch.hstack([x, x]), x[:, 0], torch.block_diag(x, x), x.rot90()


@autotest()
def test_movement_of_complex():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5), dtype=complex)
    return x.flip(0), x.roll(1, 1), x.repeat(2, 2), torch.stack([x, x]), x[:, 0], x.unfold(1, 1, 1)


@autotest()
def test_zero_size():
    x = random_tensor(ndim=2, dim0=random(0, 2), dim1=3)
    return x.flip(0), x.roll(1, 0), x.chunk(2, 1)[0], x[:0], torch.vstack([x, x]), x.repeat(2, 0), x.unbind(1)[0], x.diag_embed()


@autotest()
def test_layout_0d():
    x = random_tensor(ndim=0)
    return x.flip(()), x.roll(1), x.repeat(2), x.repeat(()), x.tile(()), x.tile(2), x.repeat_interleave(2), x.ravel()


@autotest()
def test_views_0d():
    x = random_tensor(ndim=0)
    return x.unfold(0, 1, 1), x.movedim(0, 0), x.as_strided((), ()), x[...], x[None], x[None, ..., None], x.contiguous(), x.broadcast_to(2, 3), torch.stack([x, x]), x.H


@autotest()
def test_layout_channels_last():
    x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=2, dim3=3).contiguous(memory_format=torch.channels_last)
    return x.roll(1, 1), x.repeat(1, 1, 2, 1), x.unfold(1, 2, 1), x.diagonal(0, 1, 2), torch.stack([x, x]), torch.hstack([x, x]), x.rot90(1, (1, 2)), x.repeat_interleave(2, 1), x.unflatten(1, (3, 1)), x.ravel()


@autotest()
def test_layout_transposed():
    x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=2, dim3=3).transpose(1, 3)
    return torch.nn.functional.pad(x, (1, 1)), torch.nn.functional.pad(x, (0, -1)), torch.nn.functional.pad(x, (1, 0, 1, 0), mode="circular"), x.flip(1), x.diag_embed(), torch.select_scatter(x, x[0], 0, 1), x.as_strided((2, 2), (1, 2)), torch.block_diag(x[0, 0], x[1, 1]), x.mT, x.tile(2)


@autotest()
def test_layout_empty():
    x = random_tensor(ndim=3, dim0=random(0, 2), dim1=2, dim2=3)
    return x.flip(0), x.roll(1), x.rot90(), x.repeat(2, 1, 1), x.repeat_interleave(2), x.unfold(1, 2, 1), x.diagonal(), torch.nn.functional.pad(x, (1, 1, 0, 0, 1, 0)), torch.nn.functional.pad(x, (1, 1), mode="circular")


@autotest()
def test_views_empty():
    x = random_tensor(ndim=2, dim0=2, dim1=random(0, 2))
    return x[:, :0], x.unflatten(0, (2, 1)), x.movedim(0, 1), torch.stack([x, x], 1), torch.cartesian_prod(x[0], x[1]), torch.meshgrid(x[0], x[1])[0], torch.block_diag(x, x), x.diag_embed(), x.tensor_split(2)[1], x.split(1)[0]


@autotest()
def test_layout_keywords():
    x = random_tensor(ndim=2, dim0=4, dim1=4)
    return torch.roll(input=x, shifts=1, dims=0), torch.flip(input=x, dims=[0]), torch.stack(tensors=[x], dim=0), torch.split(tensor=x, split_size_or_sections=2)[0], torch.diagonal(x, offset=1, dim1=0, dim2=1), torch.chunk(input=x, chunks=2)[0], torch.movedim(x, source=0, destination=1), torch.tile(input=x, dims=(2, 2)), x.unfold(dimension=0, size=2, step=1), torch.rot90(x, k=1, dims=[0, 1])


@autotest(refusals=True)
def test_layout_refused():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    k = random(0, 12).to(int).value()
    if k == 0:
        return x.select(2, 0)
    if k == 1:
        return x.unfold(0, 5, 1)
    if k == 2:
        return x.movedim((0, 1), (1, 1))
    if k == 3:
        return x.unflatten(1, (2, 2))
    if k == 4:
        return x.as_strided((9, 9), (1, 1))
    if k == 5:
        return torch.stack([x, x.t()])
    if k == 6:
        return x.repeat(2)
    if k == 7:
        return x.diagonal(0, 1, 1)
    if k == 8:
        return x[0, 0].repeat_interleave(2, 0) + x[0, 0].roll(1, 0)
    return x * 1


@autotest()
def test_identity():
    return torch.nn.Identity()(random_tensor(ndim=random(0, 4)))
