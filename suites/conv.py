"""conv2d, conv_transpose2d.

Channels are multiples of the groups. An output_padding must stay below the
stride, which bounds its generator.
"""
import torch
from plumb import *


@autotest()
def test_conv_transpose2d_module():
    groups = random(1, 4)
    channels = groups * random(1, 4)
    m = torch.nn.ConvTranspose2d(
        in_channels=channels,
        out_channels=groups * random(1, 4),
        kernel_size=random(1, 4),
        stride=random(1, 4) | nothing(),
        padding=random(0, 3) | nothing(),
        dilation=random(1, 3) | nothing(),
        groups=groups | nothing(),
    )
    m.train(random())
    device = random_device()
    m.to(device)
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=channels, dim2=random(6, 9), dim3=random(6, 9)).to(device)
    y = m(x)
    return y


@autotest()
def test_conv_transpose2d_output_padding():
    stride = random(1, 4).to(int)
    channels = random(1, 4)
    m = torch.nn.ConvTranspose2d(
        channels,
        random(1, 4),
        kernel_size=random(1, 4),
        stride=stride,
        padding=random(0, 3),
        output_padding=random(0, stride).to(int),
        bias=random_bool(),
        dilation=random(1, 3),
    )
    return m(random_tensor(ndim=4, dim0=random(1, 3), dim1=channels, dim2=random(6, 9), dim3=random(6, 9)))


@autotest()
def test_conv_transpose2d():
    groups = random(1, 3).to(int)
    channels, out = groups * random(1, 3), random(1, 3).to(int)
    stride = random(1, 4).to(int)
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=channels, dim2=random(6, 9), dim3=random(6, 9))
    weight = random_tensor(ndim=4, dim0=channels, dim1=out, dim2=random(1, 4), dim3=random(1, 4))
    bias = random_tensor(ndim=1, dim0=groups * out)
    return torch.nn.functional.conv_transpose2d(
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
def test_conv_transpose2d_uneven():
    # a different number for height and width
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=2, dim2=random(5, 8), dim3=random(5, 8))
    weight = random_tensor(ndim=4, dim0=2, dim1=random(1, 4), dim2=random(1, 4), dim3=random(1, 4))
    return torch.conv_transpose2d(
        x, weight, stride=(2, random(1, 3)), padding=(random(0, 2), 1), output_padding=(1, 0), dilation=(random(1, 3), 2)
    )


@autotest()
def test_conv2d_module():
    groups = random(1, 4)
    channels = groups * random(1, 4)
    m = torch.nn.Conv2d(
        in_channels=channels,
        out_channels=groups * random(1, 4),
        kernel_size=random(1, 4),
        stride=random(1, 4) | nothing(),
        padding=random(0, 3) | nothing(),
        dilation=random(1, 4) | nothing(),
        groups=groups | nothing(),
        bias=random_bool() | nothing(),
        padding_mode=constant("zeros") | nothing(),
    )
    m.train(random())
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=channels, dim2=random(7, 10), dim3=random(7, 10))
    return m(x)


@autotest()
def test_conv2d():
    groups = random(1, 3).to(int)
    channels = random(1, 3).to(int)
    out = groups * random(1, 4)
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=groups * channels, dim2=random(7, 10), dim3=random(7, 10))
    weight = random_tensor(ndim=4, dim0=out, dim1=channels, dim2=random(1, 4), dim3=random(1, 4))
    bias = random_tensor(ndim=1, dim0=out)
    return torch.nn.functional.conv2d(
        x,
        weight,
        bias=constant(bias) | nothing(),
        stride=random(1, 4) | nothing(),
        padding=random(0, 3) | nothing(),
        dilation=random(1, 4) | nothing(),
        groups=groups,
    )


@autotest()
def test_conv2d_uneven():
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=2, dim2=random(5, 8), dim3=random(8, 12))
    weight = random_tensor(ndim=4, dim0=random(1, 5), dim1=2, dim2=random(1, 4), dim3=random(1, 4))
    return torch.conv2d(x, weight, stride=(1, random(1, 4)), padding=(random(0, 2), 2), dilation=(random(1, 3), 3))


@autotest()
def test_conv2d_pointwise():
    # a kernel of one element is a matrix product
    channels = random(1, 12)
    m = torch.nn.Conv2d(channels, random(1, 12), 1)
    return m(random_tensor(ndim=4, dim0=random(1, 4), dim1=channels))


@autotest()
def test_conv2d_depthwise():
    channels = random(1, 8)
    m = torch.nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels)
    return m(random_tensor(ndim=4, dim0=random(1, 4), dim1=channels, dim2=random(3, 9), dim3=random(3, 9)))


@autotest(n=10)
def test_conv2d_network():
    channels = random(1, 4)
    conv = torch.nn.Conv2d(channels, 4, kernel_size=3, padding=1)
    norm = torch.nn.BatchNorm2d(4)
    norm.eval()
    pool = torch.nn.MaxPool2d(2)
    head = torch.nn.Linear(4 * 3 * 3, 5)
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=channels, dim2=6, dim3=6)
    features = pool(torch.relu(norm(conv(x))))
    return torch.nn.functional.log_softmax(head(torch.flatten(features, 1)), dim=1)


@autotest(n=10)
def test_down_and_up_again():
    channels = random(1, 4)
    down = torch.nn.Conv2d(channels, 3, kernel_size=3, stride=2, padding=1)
    up = torch.nn.ConvTranspose2d(3, channels, kernel_size=3, stride=2, padding=1, output_padding=1)
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=channels, dim2=8, dim3=8)
    return up(torch.nn.functional.gelu(down(x))) - x
