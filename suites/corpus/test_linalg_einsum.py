"""
Products, decompositions, einsum.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


def positive_definite(n):
    a = random_tensor(ndim=2, dim0=n, dim1=n).to(torch.float64)
    return a @ a.t() + n * torch.eye(n, dtype=torch.float64)


@flow.unittest.skip_unless_1n1d()
class TestLinalg(flow.unittest.TestCase):
    @autotest(n=4, rtol=1e-3)
    def test_matmul(test_case):
        device = random_device()
        k = random(1, 6)
        x = random_tensor(ndim=2, dim0=random(1, 6), dim1=k).to(device)
        y = random_tensor(ndim=2, dim0=k, dim1=random(1, 6)).to(device)
        return torch.matmul(x, y)

    @autotest(n=3)
    def test_matmul_of_ranks(test_case):
        m = random_tensor(ndim=2, dim0=3, dim1=4)
        v = random_tensor(ndim=1, dim0=4)
        b = random_tensor(ndim=3, dim0=2, dim1=4, dim2=5)
        return m @ v, v @ v, v @ b, m @ b, torch.mv(m, v), torch.dot(v, v)

    @autotest(n=3)
    def test_bmm_baddbmm(test_case):
        a = random_tensor(ndim=3, dim0=2, dim1=3, dim2=4)
        b = random_tensor(ndim=3, dim0=2, dim1=4, dim2=3)
        c = random_tensor(ndim=2, dim0=3, dim1=3)
        return torch.bmm(a, b), torch.baddbmm(c, a, b, beta=0.5, alpha=2), torch.addmm(c, a[0], b[0])

    @autotest(n=3)
    def test_outer_kron(test_case):
        x = random_tensor(ndim=1, dim0=3)
        y = random_tensor(ndim=1, dim0=random(1, 4))
        return torch.outer(x, y), torch.kron(x, y), torch.cross(x, x + 1, dim=0)

    @autotest(n=3)
    def test_tensordot(test_case):
        a = random_tensor(ndim=3, dim0=3, dim1=4, dim2=5)
        b = random_tensor(ndim=3, dim0=4, dim1=3, dim2=2)
        return torch.tensordot(a, b, dims=([1, 0], [0, 1])), torch.tensordot(a, a, dims=3)

    @autotest(n=3, rtol=1e-3)
    def test_inv_det(test_case):
        a = positive_definite(3)
        return torch.linalg.inv(a), torch.linalg.det(a), torch.logdet(a), a.inverse()

    @autotest(n=3)
    def test_slogdet(test_case):
        sign, logabsdet = torch.linalg.slogdet(positive_definite(3))
        return logabsdet

    @autotest(n=3)
    def test_cholesky_and_solve(test_case):
        a = positive_definite(4)
        b = random_tensor(ndim=2, dim0=4, dim1=2).double()
        l = torch.linalg.cholesky(a)
        return l, torch.linalg.solve(a, b), torch.cholesky_solve(b, l)

    @autotest(n=3)
    def test_triangular_solve(test_case):
        l = torch.linalg.cholesky(positive_definite(3))
        b = random_tensor(ndim=2, dim0=3, dim1=1).double()
        return torch.linalg.solve_triangular(l, b, upper=False)

    @autotest(n=3)
    def test_eigenvalues(test_case):
        return torch.linalg.eigvalsh(positive_definite(3))

    @autotest(n=3)
    def test_svdvals(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=5).double()
        return torch.linalg.svdvals(x), torch.linalg.matrix_norm(x, ord="nuc")

    @autotest(n=3)
    def test_qr_reconstructs(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=3).double()
        q, r = torch.linalg.qr(x)
        return q @ r

    @autotest(n=3)
    def test_pinv_lstsq(test_case):
        x = random_tensor(ndim=2, dim0=5, dim1=3).double()
        y = random_tensor(ndim=2, dim0=5, dim1=1).double()
        return torch.linalg.pinv(x) @ y

    @autotest(n=3)
    def test_matrix_power_exp(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=3).double()
        return torch.linalg.matrix_power(x, 3), torch.matrix_exp(x)

    @autotest(n=3)
    def test_multi_dot(test_case):
        a = random_tensor(ndim=2, dim0=2, dim1=3)
        b = random_tensor(ndim=2, dim0=3, dim1=4)
        c = random_tensor(ndim=2, dim0=4, dim1=2)
        return torch.linalg.multi_dot([a, b, c]), torch.chain_matmul(a, b)

    @autotest(n=3)
    def test_cdist(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = random_tensor(ndim=2, dim0=5, dim1=4)
        return torch.cdist(x, y, p=2.0), torch.nn.functional.pairwise_distance(x, y[:3])

    @autotest(n=3)
    def test_einsum_matmul(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = random_tensor(ndim=2, dim0=4, dim1=5)
        return torch.einsum("ik,kj->ij", x, y)

    @autotest(n=3)
    def test_einsum_implicit(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=3)
        return torch.einsum("ii", x), torch.einsum("ii->i", x), torch.einsum("ij->ji", x), torch.einsum("ba", x)

    @autotest(n=3)
    def test_einsum_ellipsis(test_case):
        x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=4, dim3=5)
        y = random_tensor(ndim=2, dim0=5, dim1=6)
        return torch.einsum("...i,ij->...j", x, y), torch.einsum("b...->...", x)

    @autotest(n=3)
    def test_einsum_bilinear(test_case):
        l = random_tensor(ndim=2, dim0=2, dim1=3)
        r = random_tensor(ndim=2, dim0=2, dim1=4)
        w = random_tensor(ndim=3, dim0=5, dim1=3, dim2=4)
        return torch.einsum("bn,anm,bm->ba", l, w, r), torch.nn.functional.bilinear(l, r, w)

    @autotest(n=3)
    def test_einsum_sublists(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = random_tensor(ndim=2, dim0=4, dim1=2)
        return torch.einsum(x, [0, 1], y, [1, 2], [0, 2])

    @autotest(n=3)
    def test_einsum_attention(test_case):
        eq = "bhnd,bhmd->bhnm"
        q = random_tensor(ndim=4, dim0=2, dim1=2, dim2=3, dim3=4)
        k = random_tensor(ndim=4, dim0=2, dim1=2, dim2=5, dim3=4)
        return torch.einsum(eq, q, k)

    @autotest(n=3)
    def test_linear_and_bilinear(test_case):
        in_features = random(1, 6)
        m = torch.nn.Linear(in_features, random(1, 5), bias=random_bool() | nothing())
        m.train(random())
        x = random_tensor(ndim=random(1, 4), dim0=in_features, dim1=in_features, dim2=in_features)
        b = torch.nn.Bilinear(2, 3, 4)
        return m(x), b(torch.ones(5, 2), torch.ones(5, 3))

    @autotest(n=3)
    def test_tril_block_diag(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        return torch.tril(x, -1), torch.triu(x, 1), torch.block_diag(x, x.t()), torch.diag_embed(x), torch.rot90(x)

    @autotest(n=3, auto_backward=False)
    def test_rank_and_cond(test_case):
        a = positive_definite(3)
        return torch.linalg.matrix_rank(a), torch.linalg.cond(a), torch.vander(torch.tensor([1.0, 2.0, 3.0]))


if __name__ == "__main__":
    unittest.main()
