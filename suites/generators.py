# The vocabulary of AutoTest and what Plumb adds to it: generators, options of
# @autotest, tests that tests call.
import unittest
from typing import List, Tuple, Union

from plumb import *


@autotest(n=10)
def test_or_weighs_leaves_alike():
    slope = random(0.01, 0.5).to(float) | constant(0.25) | nothing()
    return torch.nn.functional.leaky_relu(random_tensor(), negative_slope=slope)


@autotest(n=10)
def test_arithmetic_ties_sizes():
    k = random(1, 4)
    x = random_tensor(ndim=2, dim0=k * 2, dim1=k + 1)
    return torch.reshape(x, (k * 2 * (k + 1),)), -x


@autotest(n=10)
def test_oneof_calls():
    f = oneof(torch.tanh, torch.sigmoid, torch.exp, possibility=[0.5, 0.25, 0.25])
    return f(random_tensor(ndim=random(0, 4)))


@autotest(n=10)
def test_random_or_nothing():
    return torch.nn.functional.elu(random_tensor(), alpha=random_or_nothing(0.5, 2).to(float))


@autotest(n=10)
def test_random_bool_and_device():
    device = random_device()
    x = random_tensor(ndim=2, dim0=random(1, 5), requires_grad=random_bool()).to(device)
    return torch.sum(x * random_tensor(ndim=0), dim=random(0, 2).to(int), keepdim=random_bool())


@autotest(n=10)
def test_cpu_device():
    return torch.relu(random_tensor().to(cpu_device()))


@autotest(n=10)
def test_types():
    p = random(1, 4).to(Union[int, float]).value()
    size = random(1, 3).to(_size_2_t).value()
    x = random_tensor(ndim=4, dim2=random(3, 6), dim3=random(3, 6), low=0.5, high=2)
    return torch.pow(x, p), torch.nn.functional.avg_pool2d(x, size)


@autotest(n=10)
def test_optional_sizes():
    x = random_tensor(ndim=4, dim2=random(3, 6), dim3=random(3, 6))
    y = random_tensor(ndim=5, dim2=random(2, 4), dim3=random(2, 4), dim4=random(2, 4))
    two = random(1, 4).to(_size_2_opt_t_not_none)
    three = random(1, 4).to(_size_3_opt_t_not_none)
    return torch.nn.functional.adaptive_avg_pool2d(x, two), torch.nn.functional.adaptive_avg_pool3d(y, three)


@autotest(n=10, auto_backward="auto")
def test_typed_tuples():
    shape = random(1, 4).to(Tuple[int, int]).value()
    more = random(1, 3).to(List[int]).value()
    return torch.reshape(torch.ones(shape), (-1,)), torch.zeros(more), random_tensor(ndim=1) * 2


@autotest(n=20, auto_backward="auto")
def test_every_dtype():
    x = random_tensor(ndim=2, dtype=random_dtype(["all", "complex", "pod", "image", "index"]))
    return torch.reshape(x, (-1,)), x * x if x.dtype != torch.bool else x


@autotest(n=10, auto_backward=False)
def test_python_dtypes():
    a = random_tensor(ndim=2, dim0=2, dim1=3, dtype=int)
    b = random_tensor(ndim=2, dim0=2, dim1=3, dtype=complex)
    c = random_tensor(ndim=2, dim0=2, dim1=3, dtype=bool)
    d = random_tensor(ndim=2, dim0=2, dim1=3, dtype=random_pytorch_dtype(["arithmetic", "half", "bfloat16", "unsigned"]), pin_memory=False)
    return a + b, torch.where(c, a, a * 2), d + 1


@autotest(n=10)
def test_lazy_tensors():
    x = random_pytorch_tensor(ndim=2, dim0=2, dim1=3)
    return torch.relu(x) + x


@autotest(n=10, auto_backward="auto")
def test_choice_tensor():
    index = choice_tensor(4, size=random(1, 6), dtype=int)
    x = random_tensor(ndim=2, dim0=4, dim1=random(1, 4))
    y = choice_tensor([-1.5, 0.0, 2.5], size=(2, 3), p=[0.5, 0.25, 0.25], dtype=float, requires_grad=True)
    z = choice_pytorch_tensor(6, size=5, replace=False, dtype=float)
    return torch.index_select(x, 0, index), torch.relu(y), torch.sort(z)[0]


@autotest(n=10, include_complex=True)
def test_include_complex():
    x = random_tensor(ndim=2)
    return x * x + 1


@autotest(n=20, layouts=True)
def test_layouts():
    x = random_tensor(ndim=4, dim0=2, dim1=3)
    return torch.tanh(x), torch.sum(x, dim=random(0, 4).to(int)), x.contiguous()


@autotest(n=10)
def test_layout_of_one_tensor():
    x = random_tensor(ndim=2, dim0=4, dim1=5, layout=oneof("strided", "transposed", "expanded"))
    y = random_tensor(ndim=2, dim0=5, dim1=3, layout="non-contiguous")
    return torch.matmul(x, y)


@autotest(n=10)
def test_channels_last():
    x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=random(3, 7), dim3=random(3, 7), layout="channels_last")
    w = random_tensor(ndim=4, dim0=2, dim1=3, dim2=2, dim3=3, layout=oneof("contiguous", "channels_last"))
    return torch.nn.functional.conv2d(x, w)


@autotest(n=30, special=True, auto_backward=False)
def test_edge_values():
    x = random_tensor(ndim=2, dim0=4, dim1=random(3, 8), low=-3, high=3)
    return torch.abs(x), torch.sign(x), torch.round(x), torch.isfinite(x), torch.signbit(x)


@autotest(n=20, special=["inf", "nan", "zeros"], auto_backward=False)
def test_edges_of_comparisons():
    x = random_tensor(ndim=2, dim0=3, dim1=4)
    y = random_tensor(ndim=2, dim0=3, dim1=4)
    return torch.maximum(x, y), x < y, x == y, torch.isnan(x + y)


@autotest(n=20, special="extremes", dtypes=[torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], auto_backward=False)
def test_edges_of_integers():
    x = random_tensor(ndim=1, dim0=random(1, 9))
    return x + x, x * x, -x, torch.max(x), x >> 1


@autotest(n=10, dtypes=[torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_dtypes():
    return -random_tensor(ndim=2) * 2


@autotest(n=10, order=2)
def test_second_order():
    x = random_tensor(ndim=2, dim0=3, dim1=4)
    m = torch.nn.Linear(4, 2)
    return torch.tanh(m(x)) * m(x), torch.sin(x)


@autotest(n=10, rtol=1e-3, atol=1e-4, check_graph="ValidatedFalse", check_dtype=True, check_grad_use_random_data=False)
def test_options():
    return torch.exp(random_tensor())


@autotest(n=5, seed=7, tolerance="autotest", check_graph=False)
def test_seed_of_its_own():
    return torch.nn.functional.softshrink(random_tensor(ndim=2))


@autotest(n=5, check_allclose=False)
def test_shapes_only():
    return torch.nn.functional.dropout(random_tensor(ndim=2), p=0.5)


@autotest(n=5, random="shape")
def test_shape_of_what_is_random():
    x = random_tensor(ndim=2)
    return torch.nn.functional.dropout(x, p=0.5), torch.tanh(x)


@autotest(n=2)
def _test_sum(test_case, ndim, keepdim):
    x = random_tensor(ndim=ndim)
    return torch.sum(x, dim=0, keepdim=keepdim)


class TestCalls(unittest.TestCase):
    def test_every_call_is_a_case(test_case):
        for ndim in [1, 2, 3]:
            for keepdim in [True, False]:
                _test_sum(test_case, ndim, keepdim)
