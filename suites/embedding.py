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
def test_embedding_max_norm():
    # rows above the norm are changed in place, once; the gradient is that of the rows as they became
    w = weight() * oneof(1, 4)
    y = torch.nn.functional.embedding(rows(), w, max_norm=random(0.2, 4).to(float), norm_type=oneof(2, 1, 0.5, 1.2, 0, -2, float("inf")))
    return y, w * 2


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


def bag_rows(n):
    return random_tensor(ndim=1, dim0=n, low=0, high=3, dtype=int)


@autotest()
def test_embedding_bag():
    n = random(1, 7).to(int)
    return torch.nn.functional.embedding_bag(
        bag_rows(n),
        weight(),
        torch.tensor(oneof([0], [0, 0, 1], [0, 1, 1])),
        mode=oneof("sum", "mean", "max") | nothing(),
        padding_idx=random(-4, 4).to(int) | nothing(),
    )


@autotest()
def test_embedding_bag_of_rows():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 4), low=0, high=3, dtype=int)
    return torch.nn.functional.embedding_bag(x, weight(), mode=oneof("sum", "mean", "max"))


@autotest()
def test_embedding_bag_weighted():
    n = random(2, 7).to(int)
    return torch.nn.functional.embedding_bag(
        bag_rows(n), weight(), torch.tensor([0, 2, n]), mode="sum", per_sample_weights=random_tensor(ndim=1, dim0=n), include_last_offset=random_bool()
    )


@autotest()
def test_embedding_bag_module():
    m = torch.nn.EmbeddingBag(random(4, 9), random(1, 6), mode=oneof("sum", "mean", "max") | nothing(), scale_grad_by_freq=False, padding_idx=random(0, 4).to(int) | nothing())
    m.train(random())
    n = random(1, 7).to(int)
    return m(bag_rows(n), torch.tensor([0, 1]))
