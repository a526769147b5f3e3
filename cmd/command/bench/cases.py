# The twelve tests of `plumb bench cases`. They are fixed: figures of different
# versions are comparable.
from plumb import *


@autotest()
def test_relu():
    return torch.nn.functional.relu(random_tensor())


@autotest()
def test_gelu():
    return torch.nn.functional.gelu(random_tensor())


@autotest()
def test_softmax():
    x = random_tensor(ndim=3)
    return torch.nn.functional.softmax(x, dim=random(-3, 3).to(int))


@autotest()
def test_matmul():
    k = random(1, 6)
    return torch.matmul(random_tensor(ndim=2, dim0=random(1, 6), dim1=k), random_tensor(ndim=2, dim0=k))


@autotest()
def test_conv2d():
    channels = random(1, 6)
    m = torch.nn.Conv2d(channels, random(1, 6), kernel_size=random(1, 4), stride=random(1, 3), padding=random(0, 3).to(int))
    return m(random_tensor(ndim=4, dim1=channels, dim2=random(4, 8), dim3=random(4, 8)))


@autotest()
def test_conv_transpose2d():
    channels = random(1, 6)
    m = torch.nn.ConvTranspose2d(channels, random(1, 6), kernel_size=random(1, 4), stride=random(1, 3))
    return m(random_tensor(ndim=4, dim1=channels))


@autotest()
def test_layer_norm():
    n = random(5, 9).to(int)
    m = torch.nn.LayerNorm(n)
    return m(random_tensor(ndim=3, dim2=n))


@autotest()
def test_max_pool2d():
    m = torch.nn.MaxPool2d(kernel_size=random(2, 4), stride=random(1, 3))
    return m(random_tensor(ndim=4, dim2=random(4, 8), dim3=random(4, 8)))


@autotest()
def test_batch_norm():
    channels = random(1, 6)
    m = torch.nn.BatchNorm2d(channels)
    return m(random_tensor(ndim=4, dim0=random(2, 4), dim1=channels, dim2=random(2, 6)))


@autotest()
def test_cat():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=a, dim2=b)
    y = random_tensor(ndim=3, dim0=random(1, 4), dim1=a, dim2=b)
    return torch.cat([x, y], dim=0)


@autotest()
def test_sum():
    return torch.sum(random_tensor(ndim=4), dim=random(0, 4).to(int), keepdim=random_bool())


@autotest()
def test_leaky_relu():
    return torch.nn.functional.leaky_relu(random_tensor(), negative_slope=random(0, 1).to(float))
