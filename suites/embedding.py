"""embedding: rows of a weight by number.

Row numbers are drawn below 4, and every weight has at least 4 rows.
"""
import torch
from plumb import *


def rows():
    return random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=0, high=3, dtype=int)


def weight():
    return random_tensor(ndim=2, dim0=random(4, 9), dim1=random(1, 6))


@autotest()
def test_embedding():
    return torch.nn.functional.embedding(rows(), weight())


@autotest()
def test_embedding_padding():
    return torch.nn.functional.embedding(rows(), weight(), padding_idx=random(-4, 4).to(int) | nothing())


@autotest()
def test_embedding_scaled():
    return torch.nn.functional.embedding(rows(), weight(), scale_grad_by_freq=random_bool())


@autotest()
def test_embedding_torch():
    return torch.embedding(weight(), rows(), oneof(-1, 0, 2), random_bool())


@autotest()
def test_embedding_of_transposed():
    w = random_tensor(ndim=2, dim0=random(1, 6), dim1=random(4, 9))
    return torch.nn.functional.embedding(rows(), w.t())


@autotest()
def test_embedding_no_rows():
    return torch.nn.functional.embedding(random_tensor(ndim=2, dim0=random(1, 4), dim1=0, low=0, high=3, dtype=int), weight())


@autotest()
def test_embedding_int32():
    return torch.nn.functional.embedding(rows().int(), weight())


@autotest()
def test_embedding_module():
    m = torch.nn.Embedding(
        num_embeddings=random(4, 9),
        embedding_dim=random(1, 6),
        padding_idx=random(0, 4).to(int) | nothing(),
        scale_grad_by_freq=random_bool() | nothing(),
    )
    m.train(random())
    return m(rows())


@autotest()
def test_embedding_twice():
    m = torch.nn.Embedding(random(4, 9), random(1, 6))
    return m(rows()) * 2, m(rows())
