"""Poolings over one, two and three dimensions: max, average, adaptive."""
import torch
import torch.nn.functional as F
from plumb import *


def line():
    return random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(8, 14))


def image():
    return random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(6, 10), dim3=random(6, 10))


def volume():
    return random_tensor(ndim=5, dim0=random(1, 3), dim1=random(1, 3), dim2=random(5, 8), dim3=random(5, 8), dim4=random(5, 8))


@autotest()
def test_max_pool1d():
    return F.max_pool1d(
        line(), random(2, 5), stride=random(1, 4) | nothing(), padding=random(0, 2) | nothing(), dilation=random(1, 3) | nothing(), ceil_mode=random_bool() | nothing()
    )


@autotest()
def test_max_pool1d_indices():
    return F.max_pool1d(line(), random(2, 5), stride=random(1, 4), padding=random(0, 2), ceil_mode=random_bool(), return_indices=True)[0]


@autotest()
def test_max_pool1d_pair():
    return torch.max_pool1d_with_indices(line(), random(2, 5), stride=random(1, 4) | nothing())[0]


@autotest()
def test_max_pool1d_unbatched():
    return torch.max_pool1d(random_tensor(ndim=2, dim0=random(1, 4), dim1=random(6, 12)), kernel_size=random(1, 4))


@autotest()
def test_max_pool1d_transposed():
    return F.max_pool1d(line().transpose(1, 2), 1, stride=random(1, 3))


@autotest()
def test_max_pool2d_indices():
    return F.max_pool2d(image(), random(2, 4), random(1, 4), random(0, 2), random(1, 3), random_bool(), True)[0]


@autotest()
def test_max_pool3d():
    return F.max_pool3d(
        volume(), random(2, 4), stride=random(1, 4) | nothing(), padding=random(0, 2) | nothing(), dilation=random(1, 3) | nothing(), ceil_mode=random_bool() | nothing()
    )


@autotest()
def test_max_pool3d_indices():
    return F.max_pool3d(volume(), (2, random(1, 4), 3), stride=(1, 2, random(1, 4)), padding=(1, 0, 1), return_indices=True)[0]


@autotest()
def test_max_pool3d_unbatched():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(4, 7), dim2=random(4, 7), dim3=random(4, 7))
    return torch.max_pool3d(x, kernel_size=random(1, 4))


@autotest()
def test_avg_pool1d():
    return F.avg_pool1d(
        line(), random(2, 5), stride=random(1, 4) | nothing(), padding=random(0, 2) | nothing(), ceil_mode=random_bool() | nothing(), count_include_pad=random_bool() | nothing()
    )


@autotest()
def test_avg_pool2d():
    return F.avg_pool2d(
        image(),
        random(2, 5),
        stride=random(1, 4) | nothing(),
        padding=random(0, 2) | nothing(),
        ceil_mode=random_bool() | nothing(),
        count_include_pad=random_bool() | nothing(),
        divisor_override=random(1, 9) | nothing(),
    )


@autotest()
def test_avg_pool2d_uneven():
    return F.avg_pool2d(image(), kernel_size=(3, random(2, 4)), stride=(random(1, 4), 2), padding=(1, 0), ceil_mode=True)


@autotest()
def test_avg_pool2d_channels_last():
    return F.avg_pool2d(image().contiguous(memory_format=torch.channels_last), random(1, 4))


@autotest(auto_backward=False)
def test_avg_pool2d_integers():
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=random(1, 3), dim2=random(4, 8), dim3=random(4, 8), low=-50, high=50, dtype=int)
    return F.avg_pool2d(x, random(1, 4), count_include_pad=random_bool())


@autotest()
def test_avg_pool3d():
    return F.avg_pool3d(
        volume(),
        random(2, 4),
        stride=random(1, 4) | nothing(),
        padding=random(0, 2) | nothing(),
        ceil_mode=random_bool() | nothing(),
        count_include_pad=random_bool() | nothing(),
        divisor_override=random(1, 9) | nothing(),
    )


@autotest()
def test_avg_pool_unbatched():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(4, 9), dim2=random(4, 9))
    return F.avg_pool2d(x, 2), torch.avg_pool1d(x, 3, 1)


@autotest()
def test_adaptive_avg_pool1d():
    return F.adaptive_avg_pool1d(line(), random(1, 9))


@autotest()
def test_adaptive_avg_pool2d():
    return F.adaptive_avg_pool2d(image(), (random(1, 9) | constant(None), random(1, 9)))


@autotest()
def test_adaptive_avg_pool2d_channels_last():
    return F.adaptive_avg_pool2d(image().contiguous(memory_format=torch.channels_last), random(1, 5))


@autotest()
def test_adaptive_avg_pool3d():
    return F.adaptive_avg_pool3d(volume(), (random(1, 7), random(1, 7) | constant(None), random(1, 7)))


@autotest()
def test_adaptive_max_pool1d():
    return torch.adaptive_max_pool1d(line(), random(1, 9))[0]


@autotest()
def test_adaptive_max_pool1d_functional():
    return F.adaptive_max_pool1d(line(), random(1, 9), return_indices=constant(False) | nothing())


@autotest()
def test_adaptive_max_pool2d():
    return F.adaptive_max_pool2d(image(), (random(1, 9), random(1, 9) | constant(None)))


@autotest()
def test_adaptive_max_pool3d():
    return F.adaptive_max_pool3d(volume(), random(1, 7))


@autotest()
def test_adaptive_max_pool_indices():
    y = F.adaptive_max_pool2d(image(), random(1, 9), return_indices=True)[0]
    return y, F.adaptive_max_pool3d(volume(), (random(1, 7), random(1, 7), None), return_indices=True)[0]


@autotest()
def test_max_pool_modules():
    m = torch.nn.MaxPool1d(random(2, 5), stride=random(1, 4) | nothing(), padding=random(0, 2) | nothing(), ceil_mode=random_bool() | nothing())
    n = torch.nn.MaxPool3d(random(2, 4), dilation=random(1, 3) | nothing())
    return m(line()), n(volume())


@autotest()
def test_avg_pool_modules():
    m = torch.nn.AvgPool1d(random(2, 5), padding=random(0, 2) | nothing(), count_include_pad=random_bool() | nothing())
    n = torch.nn.AvgPool2d(random(2, 5), stride=random(1, 4) | nothing(), divisor_override=random(1, 5) | nothing())
    return m(line()), n(image()), torch.nn.AvgPool3d((2, 1, 3))(volume())


@autotest()
def test_adaptive_pool_modules():
    a, b, c = torch.nn.AdaptiveAvgPool1d(random(1, 9)), torch.nn.AdaptiveAvgPool2d((random(1, 9), None)), torch.nn.AdaptiveAvgPool3d(random(1, 6))
    return a(line()), b(image()), c(volume())


@autotest()
def test_adaptive_max_pool_modules():
    a, b, c = torch.nn.AdaptiveMaxPool1d(random(1, 9)), torch.nn.AdaptiveMaxPool2d((None, random(1, 9))), torch.nn.AdaptiveMaxPool3d(random(1, 6))
    return a(line()), b(image()), c(volume())


@autotest()
def test_lp_pool1d():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 4), dim2=random(6, 12), low=0.3, high=2)
    return F.lp_pool1d(x, oneof(1, 2, 3, 1.5), random(1, 5).to(int), stride=random(1, 4) | nothing(), ceil_mode=random_bool() | nothing())


@autotest()
def test_lp_pool2d():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(5, 9), dim3=random(5, 9), low=0.3, high=2)
    return F.lp_pool2d(x, oneof(1, 2, 2.5), (random(1, 4), 3), stride=random(1, 4) | nothing(), ceil_mode=random_bool() | nothing())


@autotest()
def test_lp_pool_modules():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(4, 9), dim2=random(4, 9), low=0.3, high=2)
    return torch.nn.LPPool1d(2, 3)(x), torch.nn.LPPool2d(oneof(2, 3), 2, stride=2)(x)
