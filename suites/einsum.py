"""einsum. A letter is one generator, so that its size is the same everywhere."""
import torch
from plumb import *


@autotest()
def test_einsum_product():
    i, j, k = random(1, 6), random(1, 8), random(1, 6)
    x = random_tensor(ndim=2, dim0=i, dim1=j)
    y = random_tensor(ndim=2, dim0=j, dim1=k)
    return torch.einsum("ij,jk->ik", [x, y]), torch.einsum("ij, jk -> ki", x, y), torch.einsum("ij,jk", x, y)


@autotest()
def test_einsum_single():
    x = random_tensor(ndim=3, dim0=random(1, 6), dim1=random(1, 6), dim2=random(1, 6))
    return torch.einsum("abc->cab", [x]), torch.einsum("abc->b", [x]), torch.einsum("cba", [x]), torch.einsum("...a->...", [x]), torch.einsum("abc->", [x])


@autotest()
def test_einsum_diagonal():
    n = random(1, 6)
    x = random_tensor(ndim=3, dim0=n, dim1=random(1, 5), dim2=n)
    return torch.einsum("iji->j", [x]), torch.einsum("iji->ij", [x])


@autotest()
def test_einsum_batch():
    b, i, j, k = random(1, 4), random(1, 5), random(1, 7), random(1, 5)
    x = random_tensor(ndim=3, dim0=b, dim1=i, dim2=j)
    y = random_tensor(ndim=3, dim0=b, dim1=j, dim2=k)
    return torch.einsum("bij,bjk->bik", [x, y]), torch.einsum("bij,bjk->kbi", [x, y]), torch.einsum("bij,bjk->b", [x, y])


@autotest()
def test_einsum_ellipsis():
    a, i, j, k = random(1, 4), random(1, 5), random(1, 7), random(1, 5)
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=a, dim2=i, dim3=j)
    y = random_tensor(ndim=3, dim0=a | constant(1), dim1=j, dim2=k)
    return torch.einsum("...ij,...jk->...ik", [x, y]), torch.einsum("...ij,...jk", [x, y]), torch.einsum("...ij,...jk->ki", [x, y])


@autotest()
def test_einsum_outer():
    x = random_tensor(ndim=1, dim0=random(1, 8))
    y = random_tensor(ndim=1, dim0=random(1, 8))
    return torch.einsum("i,j->ij", [x, y]), torch.einsum("i,j->ji", [x, y]), torch.einsum("i,j->", [x, y])


@autotest()
def test_einsum_three():
    i, j, k, l = random(1, 5), random(1, 6), random(1, 6), random(1, 5)
    x = random_tensor(ndim=2, dim0=i, dim1=j)
    y = random_tensor(ndim=2, dim0=j, dim1=k)
    z = random_tensor(ndim=2, dim0=k, dim1=l)
    return torch.einsum("ij,jk,kl->il", [x, y, z]), torch.einsum("ij,jk,kl->lji", [x, y, z])


@autotest()
def test_einsum_bilinear():
    i, j, b = random(1, 5), random(1, 5), random(1, 5)
    x = random_tensor(ndim=2, dim0=b, dim1=i)
    w = random_tensor(ndim=3, dim0=random(1, 5), dim1=i, dim2=j)
    y = random_tensor(ndim=2, dim0=b, dim1=j)
    return torch.einsum("bi,kij,bj->bk", [x, w, y])


@autotest()
def test_einsum_shared():
    i, j = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=i, dim1=j)
    y = random_tensor(ndim=2, dim0=i | constant(1), dim1=j)
    return torch.einsum("ij,ij->j", [x, y]), torch.einsum("ij,ij->ij", [x, y]), torch.einsum("ij,ij", [x, x])


@autotest(auto_backward=False)
def test_einsum_integers():
    i, j, k = random(1, 6), random(1, 8), random(1, 6)
    x = random_tensor(ndim=2, dim0=i, dim1=j, dtype=torch.int64)
    y = random_tensor(ndim=2, dim0=j, dim1=k, dtype=torch.int64)
    return torch.einsum("ij,jk->ki", [x, y])


@autotest()
def test_einsum_complex():
    i, j, k = random(1, 6), random(1, 8), random(1, 6)
    x = random_tensor(ndim=2, dim0=i, dim1=j, dtype=torch.complex64)
    y = random_tensor(ndim=2, dim0=j, dim1=k, dtype=torch.complex64)
    return torch.einsum("ij,jk->ki", [x, y])


@autotest(refusals=True)
def test_einsum_refused():
    # a size that does not fit, a letter too many, or a letter that no operand has
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 4))
    y = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(1, 4))
    return torch.einsum(oneof("ij,jk->ik", "ijk,jk", "ij,jk->iz", "ij,jk->ii", "ij", "ij,jk,kl", "i1,jk", "ij.,jk", "ii,jk"), [x, y])
