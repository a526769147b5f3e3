"""
What else such files do: printing, formats, helpers, loops, globals.
Licensed under the Apache License, Version 2.0.
"""
import functools
import math
import random as python_random
import sys
import unittest
import warnings

import numpy as np
import oneflow as flow
import torch
import torch.nn.functional as F
from plumb import *

torch.backends.cudnn.deterministic = True
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_printoptions(profile="full")

EPS = 1e-6
DIMS = {"rows": 2, "cols": 3}
TABLE = torch.arange(6).reshape(2, 3)
counter = 0


def count():
    global counter
    counter += 1
    return counter


def repeat(times):
    def decorator(f):
        @functools.wraps(f)
        def wrapper(x):
            for _ in range(times):
                x = f(x)
            return x

        return wrapper

    return decorator


@repeat(3)
def halve(x):
    return x / 2


def pairs(n):
    for i in range(n):
        yield i, n - i


def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    """x * sigmoid(beta * x)"""
    return x * torch.sigmoid(beta * x)


@autotest(n=3)
def test_function_without_class():
    return swish(random_tensor(ndim=2, dim0=2, dim1=3), beta=1.5)


@autotest(n=2)
def test_print():
    x = random_tensor(ndim=1, dim0=3)
    print("x has", x.shape, f"{x.dtype}", "and sum %.3f" % x.sum().item())
    print(x)
    return x.exp()


@autotest(n=2)
def test_decorated_helper():
    return halve(random_tensor(ndim=1, dim0=3))


@autotest(n=2)
def test_generator_function():
    x = random_tensor(ndim=1, dim0=4)
    return sum(x[i] * w for i, w in pairs(4))


@autotest(n=2)
def test_global_counter():
    x = random_tensor(ndim=1, dim0=3)
    first, second = count(), count()
    assert second == first + 1
    return x * first + TABLE[0]


@autotest(n=2)
def test_module_level_tensor():
    return random_tensor(ndim=2, dim0=DIMS["rows"], dim1=DIMS["cols"]) * TABLE


@autotest(n=2)
def test_walrus_and_ternary():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=3)
    if (n := x.shape[0]) > 2:
        return x[: n - 1]
    return x if n else x + 1


@autotest(n=2)
def test_nonlocal():
    total = 0

    def add(v):
        nonlocal total
        total += v

    for v in (1, 2, 3):
        add(v)
    return random_tensor(ndim=1, dim0=total)


@autotest(n=2)
def test_comprehensions():
    x = random_tensor(ndim=2, dim0=3, dim1=3)
    rows = [x[i] for i in range(3) if i != 1]
    named = {f"row{i}": r for i, r in enumerate(rows)}
    return torch.stack(tuple(named.values())), {k: v.sum() for k, v in named.items()}


@autotest(n=2)
def test_star_arguments():
    shape = [2, 3, 4]
    x = random_tensor(len(shape), *shape)
    options = dict(dim=1, keepdim=True)
    return x.sum(**options), x.permute(*reversed(range(3)))


@autotest(n=2)
def test_numpy_in_the_body():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    weights = np.linspace(0.1, 1.0, 3, dtype=np.float32)
    expected = (x.detach().numpy() * weights).sum(axis=1)
    y = (x * torch.tensor(weights)).sum(1)
    assert np.allclose(y.detach().numpy(), expected, rtol=1e-4, atol=EPS)
    return y


@autotest(n=2)
def test_python_random():
    k = python_random.randint(1, 3)
    order = list(range(3))
    python_random.shuffle(order)
    x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4)
    return x.permute(*order).repeat(k, 1, 1)


@autotest(n=2)
def test_while_loop():
    x = random_tensor(ndim=1, dim0=4)
    n = 0
    while x.abs().sum().item() > 0.5 and n < 10:
        x = x * 0.5
        n += 1
    return x


@autotest(n=2)
def test_math_of_shapes():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=4)
    n = x.numel()
    return x.reshape(-1) * math.sqrt(n) / max(1, n // 2)


@autotest(n=2)
def test_warnings_are_ignored():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return F.softmax(random_tensor(ndim=2, dim0=2, dim1=3), dim=1)


@autotest(n=2)
def test_newton_iterations():
    a = random_tensor(ndim=1, dim0=4, low=0.5, high=2)
    r = torch.ones_like(a)
    for step in range(5):
        r = 0.5 * (r + a / r)
    return r


@autotest(n=2)
def test_power_iteration():
    a = random_tensor(ndim=2, dim0=3, dim1=3)
    v = torch.ones(3)
    for _ in range(3):
        v = F.normalize(a @ v, dim=0)
    return v @ a @ v


@autotest(n=2)
def test_tensor_iteration():
    x = random_tensor(ndim=2, dim0=3, dim1=2)
    total = torch.zeros(2)
    for row, scale in zip(x, [1.0, 2.0, 3.0]):
        total = total + row * scale
    first, *rest = x
    return total, first, len(rest) * first


@autotest(n=2)
def test_min_max_of_builtins():
    x = random_tensor(ndim=1, dim0=3)
    vals = x.tolist()
    assert max(vals) >= min(vals)
    return sum([x, x * 2]), max(len(vals), 2) * x


@autotest(n=2)
def test_trailing_comma_and_ellipsis():
    x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4)
    return x[0,], x[..., 1], x[(1,)], x[1, ..., None]


@autotest(n=2)
def test_isinstance_and_types():
    x = random_tensor(ndim=1, dim0=3)
    assert isinstance(x, torch.Tensor) and isinstance(x.shape, torch.Size)
    assert x.dtype is torch.float32 or x.dtype == torch.float32
    assert torch.is_tensor(x) and not torch.is_tensor(3)
    assert x.device.type == "cpu"
    assert isinstance(x.shape[0], int) and type(x.ndim) is int
    return x.square()


@autotest(n=2)
def test_stats_by_hand():
    x = random_tensor(ndim=2, dim0=5, dim1=3)
    mean = x.mean(0, keepdim=True)
    var = ((x - mean) ** 2).sum(0) / (x.size(0) - 1)
    return (x - mean) / (var + EPS).sqrt()


@autotest(n=2)
def test_softmax_by_hand():
    x = random_tensor(ndim=2, dim0=2, dim1=4, low=-4, high=4)
    e = (x - x.amax(dim=-1, keepdim=True).detach()).exp()
    return e / e.sum(-1, keepdim=True)


@autotest(n=2)
def test_pad_roll_flip():
    x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=3, dim3=4)
    return F.pad(x, (1, 2)), F.pad(x, [1, 1, 0, 1], value=2.0), x.roll(1, 2), torch.roll(x, (1, -1), (2, 3)), x.fliplr()


@autotest(n=2)
def test_interpolate():
    x = random_tensor(ndim=4, dim0=1, dim1=2, dim2=3, dim3=4)
    return (
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, size=(5, 3), mode="bilinear", align_corners=False),
        F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2),
    )


@autotest(n=2)
def test_grid_sample():
    x = random_tensor(ndim=4, dim0=1, dim1=1, dim2=4, dim3=4)
    theta = torch.tensor([[[0.7, 0.2, 0.1], [-0.2, 0.8, 0.0]]])
    grid = F.affine_grid(theta, (1, 1, 3, 3), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@autotest(n=2, auto_backward=False)
def test_returns_numbers():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    return x.shape, x.dim(), x.size(0), x.numel(), x.dtype


@autotest(n=2, auto_backward=False)
def test_returns_nothing():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    y = x.relu()
    assert (y >= 0).all()


def test_deterministic_dropout_mask():
    torch.manual_seed(0)
    a = F.dropout(torch.ones(10), 0.5)
    torch.manual_seed(0)
    b = F.dropout(torch.ones(10), 0.5)
    assert torch.equal(a, b)


def test_saved_values():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = np.array([[0.2689, 0.7311], [0.2689, 0.7311]])
    np.testing.assert_allclose(F.softmax(x, 1).numpy(), expected, atol=1e-4)


@autotest(n=2)
def test_names_of_oneflow():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    return flow.cast(flow.gelu(x), flow.float64) + flow.pad(x, (0, 1))[:, 1:]


def test_scalars_of_numpy():
    x = torch.tensor([[3.0, 1.0], [2.0, 5.0]])
    largest = np.argmax(x.numpy().flatten(), axis=0)
    assert np.array_equal(x.argmax().numpy().flatten(), largest.flatten())
    assert largest.shape == () and largest.ndim == 0 and largest.sum() == 3


def test_gradient_is_one_tensor():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    first = id(x.grad)
    (x * 3).sum().backward()
    assert id(x.grad) == first and id(x) != first


@autotest(n=2)
def test_apply_of_an_instance():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    return Doubled().apply(random_tensor(ndim=1, dim0=3))


if __name__ == "__main__":
    sys.exit(unittest.main())


def test_draws_behind_seeds():
    x = torch.ones(20, requires_grad=True)
    y = torch.ones(20, requires_grad=True)
    torch.manual_seed(3)
    a = F.dropout(x, 0.5)
    torch.manual_seed(3)
    b = F.dropout(y, 0.5)
    c = F.dropout(y, 0.5)
    (a.sum() + b.sum()).backward()
    assert torch.equal(x.grad, y.grad) and torch.equal(x.grad, a)
    assert not torch.equal(b, c)
    m = flow.nn.Dropout(0.5)
    flow.manual_seed(7)
    p = m(x)
    flow.manual_seed(7)
    assert torch.equal(m(y), p)
