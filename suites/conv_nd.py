"""Convolutions over one and three dimensions, their transposes, unfold and fold."""
import torch
import torch.nn.functional as F
from plumb import *


@autotest()
def test_conv1d():
    groups, channels = random(1, 3).to(int), random(1, 4).to(int)
    out = groups * random(1, 4)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=groups * channels, dim2=random(8, 14))
    weight = random_tensor(ndim=3, dim0=out, dim1=channels, dim2=random(1, 4))
    bias = random_tensor(ndim=1, dim0=out)
    return F.conv1d(
        x, weight, bias=constant(bias) | nothing(), stride=random(1, 4) | nothing(), padding=random(0, 3) | nothing(), dilation=random(1, 4) | nothing(), groups=groups
    )


@autotest()
def test_conv1d_same():
    x = random_tensor(ndim=2, dim0=2, dim1=random(5, 9))
    weight = random_tensor(ndim=3, dim0=random(1, 4), dim1=2, dim2=random(1, 5))
    return torch.conv1d(x, weight, padding=oneof("same", "valid"), dilation=random(1, 2))


@autotest()
def test_conv3d():
    groups, channels = random(1, 3).to(int), random(1, 3).to(int)
    out = groups * random(1, 3)
    x = random_tensor(ndim=5, dim0=random(1, 3), dim1=groups * channels, dim2=random(4, 7), dim3=random(4, 7), dim4=random(4, 7))
    weight = random_tensor(ndim=5, dim0=out, dim1=channels, dim2=random(1, 3), dim3=random(1, 4), dim4=random(1, 4))
    bias = random_tensor(ndim=1, dim0=out)
    return F.conv3d(
        x, weight, bias=constant(bias) | nothing(), stride=random(1, 4) | nothing(), padding=random(0, 3) | nothing(), dilation=random(1, 2) | nothing(), groups=groups
    )


@autotest()
def test_conv3d_uneven():
    x = random_tensor(ndim=4, dim0=2, dim1=random(4, 7), dim2=random(5, 8), dim3=random(6, 9))
    weight = random_tensor(ndim=5, dim0=random(1, 4), dim1=2, dim2=2, dim3=random(1, 4), dim4=3)
    return torch.conv3d(x, weight, stride=(1, random(1, 3), 2), padding=(1, 0, random(0, 3)), dilation=(2, 1, random(1, 3)))


@autotest()
def test_conv_transpose1d():
    groups = random(1, 3).to(int)
    channels, out, stride = groups * random(1, 3), random(1, 3).to(int), random(1, 4).to(int)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=channels, dim2=random(5, 9))
    weight = random_tensor(ndim=3, dim0=channels, dim1=out, dim2=random(1, 4))
    bias = random_tensor(ndim=1, dim0=groups * out)
    return F.conv_transpose1d(
        x,
        weight,
        bias=constant(bias) | nothing(),
        stride=stride,
        padding=random(0, 3) | nothing(),
        output_padding=random(0, stride).to(int) | nothing(),
        groups=groups,
        dilation=random(1, 3) | nothing(),
    )


@autotest()
def test_conv_transpose3d():
    groups = random(1, 3).to(int)
    channels, out, stride = groups * random(1, 3), random(1, 3).to(int), random(1, 3).to(int)
    x = random_tensor(ndim=5, dim0=random(1, 3), dim1=channels, dim2=random(3, 5), dim3=random(3, 5), dim4=random(3, 5))
    weight = random_tensor(ndim=5, dim0=channels, dim1=out, dim2=random(1, 3), dim3=random(1, 4), dim4=random(1, 3))
    return torch.conv_transpose3d(
        x, weight, stride=stride, padding=random(0, 2), output_padding=random(0, stride).to(int), groups=groups, dilation=random(1, 3)
    )


@autotest()
def test_unfold():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(7, 10), dim3=random(7, 10))
    return F.unfold(x, random(1, 4), dilation=random(1, 3) | nothing(), padding=random(0, 3) | nothing(), stride=random(1, 4) | nothing())


@autotest()
def test_unfold_uneven():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(5, 9), dim2=random(5, 9))
    return F.unfold(x, (2, random(1, 4)), (random(1, 3), 1), (0, random(0, 2)), (1, random(1, 3)))


@autotest()
def test_fold():
    kernel, rows, columns = random(1, 4).to(int), random(1, 5).to(int), random(1, 5).to(int)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4).to(int) * kernel * kernel, dim2=rows * columns)
    return F.fold(x, (rows + kernel - 1, columns + kernel - 1), kernel)


@autotest()
def test_fold_unfold():
    size = random(6, 10).to(int)
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=random(1, 4), dim2=size, dim3=size)
    y = F.unfold(x, (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    return F.fold(y, (size, size), (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))


@autotest()
def test_conv1d_module():
    groups = random(1, 3).to(int)
    channels = groups * random(1, 4)
    m = torch.nn.Conv1d(
        in_channels=channels,
        out_channels=groups * random(1, 4),
        kernel_size=random(1, 4),
        stride=random(1, 4) | nothing(),
        padding=random(0, 3) | nothing(),
        dilation=random(1, 3) | nothing(),
        groups=groups,
        bias=random_bool() | nothing(),
    )
    return m(random_tensor(ndim=3, dim0=random(1, 4), dim1=channels, dim2=random(7, 12)))


@autotest()
def test_conv3d_module():
    channels = random(1, 4)
    m = torch.nn.Conv3d(channels, random(1, 4), random(1, 4), padding=oneof("same", "valid") | nothing(), bias=random_bool())
    return m(random_tensor(ndim=5, dim0=random(1, 3), dim1=channels, dim2=random(4, 6), dim3=random(4, 6), dim4=random(4, 6)))


@autotest()
def test_conv_transpose1d_module():
    channels = random(1, 4)
    m = torch.nn.ConvTranspose1d(channels, random(1, 4), random(1, 4), stride=random(1, 4), padding=random(0, 2), bias=random_bool())
    return m(random_tensor(ndim=3, dim0=random(1, 4), dim1=channels, dim2=random(4, 8)))


@autotest()
def test_conv_transpose3d_module():
    channels = random(1, 4)
    m = torch.nn.ConvTranspose3d(channels, random(1, 4), 2, stride=2)
    return m(random_tensor(ndim=5, dim0=random(1, 3), dim1=channels, dim2=random(2, 4), dim3=random(2, 4), dim4=random(2, 4)))


@autotest()
def test_fold_modules():
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=random(1, 4), dim2=6, dim3=8)
    apart, together = torch.nn.Unfold(kernel_size=2, stride=2), torch.nn.Fold(output_size=(6, 8), kernel_size=2, stride=2)
    return together(apart(x))
