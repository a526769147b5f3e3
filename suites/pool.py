"""max_pool2d. The padding must not exceed half of the kernel."""
import torch
from plumb import *


@autotest()
def test_max_pool2d_module():
    m = torch.nn.MaxPool2d(
        kernel_size=random(2, 5),
        stride=random(1, 4) | nothing(),
        padding=random(0, 2) | nothing(),
        dilation=random(1, 3) | nothing(),
        ceil_mode=random_bool() | nothing(),
    )
    m.train(random())
    return m(random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(8, 12), dim3=random(8, 12)))


@autotest()
def test_max_pool2d():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(8, 12), dim3=random(8, 12))
    return torch.nn.functional.max_pool2d(
        x, random(2, 5), stride=random(1, 4) | nothing(), padding=random(0, 2) | nothing(), ceil_mode=random_bool() | nothing()
    )


@autotest()
def test_max_pool2d_uneven():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 4), dim2=random(8, 12), dim3=random(8, 12))
    return torch.max_pool2d(x, kernel_size=(3, random(2, 4)), stride=(random(1, 4), 2), padding=(1, 0), dilation=(random(1, 3), 2))


@autotest()
def test_max_pool2d_image():
    # one image without a batch
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(4, 9), dim2=random(4, 9))
    return torch.nn.functional.max_pool2d(x, kernel_size=random(1, 4))


@autotest()
def test_max_pool2d_overlapping():
    # an element that is the maximum of several windows gathers their gradients
    x = random_tensor(ndim=4, dim0=random(1, 3), dim1=random(1, 3), dim2=random(5, 9), dim3=random(5, 9))
    y = torch.nn.functional.max_pool2d(x, 3, 1, 1)
    return torch.nn.functional.max_pool2d(y, 2)
