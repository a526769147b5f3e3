# What tests of this kind are full of beside operators: sizes as values,
# parameters made by hand, gradients taken inside a test, values taken out of
# it, and what a run on one device cannot do.
import unittest
import numpy as np

from plumb import *


@autotest(n=5)
def test_size_as_a_value():
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=2, dim2=3)
    n = x.size(0)
    return x.reshape(torch.Size([n, 6])), torch.ones(torch.Size([2, 3])) * x, x.expand(x.size())


@autotest(n=5, auto_backward="auto")
def test_comparisons_by_name():
    x, y = random_tensor(ndim=2, dim0=3, dim1=4), random_tensor(ndim=2, dim0=3, dim1=4)
    return torch.gt(x, y), torch.ne(x, x), torch.negative(x), torch.triu(x, random(-2, 3).to(int))


@autotest(n=5)
def test_parameter():
    w = torch.nn.Parameter(random_tensor(ndim=2, dim0=3, dim1=random(1, 5), requires_grad=False))
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    return torch.matmul(x, w)


@autotest(n=5)
def test_parameter_of_a_module():
    m = torch.nn.Linear(4, 3)
    m.weight = torch.nn.Parameter(random_tensor(ndim=2, dim0=3, dim1=4, requires_grad=False))
    m.train(random())
    return m(random_tensor(ndim=2, dim0=random(1, 4), dim1=4))


@autotest(n=5, auto_backward=False)
def test_backward_inside():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=3)
    y = torch.tanh(x) * x
    y.sum().backward()
    return x.grad


@autotest(n=5)
def test_detached_halves():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=3)
    y = torch.exp(x).detach().requires_grad_()
    return y * x + y.cpu()


@autotest(n=5, auto_backward=False)
def test_values_taken_out():
    x = random_tensor(ndim=1, dim0=random(2, 6), requires_grad=False)
    largest = x.numpy().max()
    return torch.where(x >= float(largest), x, torch.zeros_like(x)), torch.tensor(np.arange(4)) + 1


@autotest(n=5)
def test_without_gradients():
    x = random_tensor(2, random(1, 4), 3)
    with torch.no_grad():
        scale = x.abs().mean() + 1
    return x / scale


@autotest(n=5)
def test_pools_and_grids():
    x = random_tensor(ndim=3, dim1=2, dim2=random(3, 8))
    image = random_tensor(ndim=4, dim0=1, dim1=2, dim2=4, dim3=4)
    theta = random_tensor(ndim=3, dim0=1, dim1=2, dim2=3)
    grid = torch.nn.functional.affine_grid(theta, (1, 2, 3, 3), align_corners=random_bool())
    columns = random_tensor(ndim=3, dim0=1, dim1=8, dim2=4)
    return (
        torch.nn.functional.adaptive_avg_pool1d(x, random(1, 4).to(int)),
        torch.nn.functional.grid_sample(image, grid.detach(), align_corners=False),
        torch.nn.functional.fold(columns, (4, 4), 2, stride=2),
    )


# What follows needs more than one device or global mode: each is unsupported
# by name where the run does not have it.
@autotest(n=2, auto_backward=False)
def test_cuda():
    return random_tensor(ndim=random(1, 3)).to(gpu_device())


@autotest(n=2, auto_backward=False)
def test_global():
    x = random_tensor(ndim=2, dim0=random(1, 3) * 8)
    placement = random_placement()
    return x.to_global(placement=placement, sbp=random_sbp(placement, max_dim=2))


class TestGlobal(unittest.TestCase):
    @globaltest
    def test_every_placement(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2):
                x = random_tensor(ndim=2, dim0=8).to_global(placement=placement, sbp=sbp)
                test_case.assertTrue(x.size(0) == 8)
