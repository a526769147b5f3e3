"""matmul, linear. The contracted dimension of both sides is one generator."""
import torch
from plumb import *


@autotest()
def test_matmul():
    k = random(1, 6)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=k)
    y = random_tensor(ndim=2, dim0=k, dim1=random(1, 6))
    return torch.matmul(x, y)


@autotest()
def test_matmul_vector():
    k = random(1, 30)
    x = random_tensor(ndim=1, dim0=k)
    y = random_tensor(ndim=1, dim0=k)
    return torch.matmul(x, y)


@autotest()
def test_matmul_matrix_vector():
    k = random(1, 20)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=k)
    y = random_tensor(ndim=1, dim0=k)
    return x @ y


@autotest()
def test_matmul_vector_matrix():
    k = random(1, 20)
    x = random_tensor(ndim=1, dim0=k)
    y = random_tensor(ndim=2, dim0=k)
    return x.matmul(y)


@autotest()
def test_matmul_batched():
    b, k = random(1, 5), random(1, 8)
    x = random_tensor(ndim=3, dim0=b, dim1=random(1, 6), dim2=k)
    y = random_tensor(ndim=3, dim0=b, dim1=k, dim2=random(1, 6))
    return torch.matmul(x, y)


@autotest()
def test_matmul_broadcast_batch():
    a, b, k = random(1, 4), random(1, 4), random(1, 8)
    x = random_tensor(ndim=4, dim0=a, dim1=b | constant(1), dim2=random(1, 6), dim3=k)
    y = random_tensor(ndim=3, dim0=b, dim1=k, dim2=random(1, 6))
    return torch.matmul(x, y)


@autotest()
def test_matmul_batch_matrix():
    k = random(1, 8)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=random(1, 6), dim2=k)
    y = random_tensor(ndim=2, dim0=k, dim1=random(1, 6))
    return x @ y


@autotest()
def test_matmul_transposed():
    k = random(1, 8)
    x = random_tensor(ndim=2, dim0=k, dim1=random(1, 6))
    y = random_tensor(ndim=2, dim0=random(1, 6), dim1=k)
    return torch.matmul(x.transpose(0, 1), y.transpose(0, 1))


@autotest(n=5)
def test_matmul_large():
    k = random(60, 140)
    x = random_tensor(ndim=2, dim0=random(30, 100), dim1=k)
    y = random_tensor(ndim=2, dim0=k, dim1=random(30, 100))
    return x @ y


@autotest()
def test_matmul_double():
    k = random(1, 20)
    x = random_tensor(ndim=2, dim0=random(1, 20), dim1=k, dtype=torch.float64)
    y = random_tensor(ndim=2, dim0=k, dim1=random(1, 20), dtype=torch.float64)
    return x @ y


@autotest()
def test_linear():
    k, out = random(1, 12), random(1, 12)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=k)
    weight = random_tensor(ndim=2, dim0=out, dim1=k)
    bias = random_tensor(ndim=1, dim0=out)
    return torch.nn.functional.linear(x, weight, bias=constant(bias) | nothing())


@autotest()
def test_linear_module():
    k = random(1, 12)
    m = torch.nn.Linear(in_features=k, out_features=random(1, 12), bias=random_bool() | nothing())
    m.train(random())
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=k)
    return m(x)


@autotest()
def test_linear_module_batched():
    k = random(1, 12)
    m = torch.nn.Linear(k, random(1, 12))
    return m(random_tensor(ndim=4, dim0=random(1, 4), dim3=k))


@autotest()
def test_linear_module_vector():
    k = random(1, 12)
    m = torch.nn.Linear(k, random(1, 12))
    return m(random_tensor(ndim=1, dim0=k))


@autotest()
def test_attention():
    b, q, k, d = random(1, 3), random(1, 6), random(1, 6), random(2, 8)
    query = random_tensor(ndim=3, dim0=b, dim1=q, dim2=d)
    key = random_tensor(ndim=3, dim0=b, dim1=k, dim2=d)
    value = random_tensor(ndim=3, dim0=b, dim1=k, dim2=d)
    weights = torch.softmax(query @ key.transpose(1, 2) / 2.0, dim=-1)
    return weights @ value


@autotest()
def test_two_layers():
    k, hidden = random(1, 8), random(1, 12)
    first = torch.nn.Linear(k, hidden)
    second = torch.nn.Linear(hidden, random(1, 5))
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=k)
    return torch.log_softmax(second(torch.tanh(first(x))), dim=1)
