"""Parameters of another shape or dtype than the constructor's, assigned to a module."""
import unittest

import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


def twice(p, axis=0):
    return torch.nn.Parameter(torch.cat([p.detach()] * 2, axis))


class TestAssignedParameters(flow.unittest.TestCase):
    @autotest(n=5)
    def test_parameters_of_another_shape(test_case):
        m, conv = torch.nn.Linear(4, 3), torch.nn.Conv2d(3, 4, 3)
        m.weight, m.bias = twice(m.weight), twice(m.bias)
        conv.weight = twice(conv.weight, 1)
        return m(random_tensor(ndim=2, dim1=4)), conv(random_tensor(ndim=4, dim1=6, dim2=5, dim3=5))

    @autotest(n=5)
    def test_parameters_of_another_dtype(test_case):
        m = torch.nn.Linear(4, 2)
        m.weight, m.bias = torch.nn.Parameter(m.weight.detach().double()), torch.nn.Parameter(m.bias.detach().double())
        return m(random_tensor(ndim=2, dim1=4).double())


if __name__ == "__main__":
    unittest.main()
