"""Products of vectors and matrices, inverses and determinants.

Matrices that are inverted have a dominant diagonal: entries of the identity,
which is the power 0 of a matrix, and small others.
"""
import torch
from plumb import *


def matrix(rows, columns):
    return random_tensor(ndim=2, dim0=rows, dim1=columns)


def regular(n):
    small = random_tensor(ndim=3, dim0=random(1, 4), dim1=n, dim2=n, low=-0.1, high=0.1)
    return small + torch.matrix_power(small, 0)


@autotest()
def test_mv():
    k = random(1, 12)
    x, v = matrix(random(1, 8), k), random_tensor(ndim=1, dim0=k)
    return torch.mv(x, v), x.mv(v)


@autotest()
def test_mm():
    k = random(1, 12)
    x, y = matrix(random(1, 8), k), matrix(k, random(1, 8))
    return torch.mm(x, y), x.mm(y)


@autotest()
def test_bmm():
    b, k = random(1, 5), random(1, 12)
    x = random_tensor(ndim=3, dim0=b, dim2=k)
    y = random_tensor(ndim=3, dim0=b, dim1=k)
    return torch.bmm(x, y), x.bmm(y)


@autotest()
def test_dot():
    n = random(1, 20)
    x, y = random_tensor(ndim=1, dim0=n), random_tensor(ndim=1, dim0=n)
    return torch.dot(x, y), x.dot(y), torch.vdot(x, y), x.vdot(y)


@autotest()
def test_inner_complex():
    n = random(1, 20)
    x = random_tensor(ndim=1, dim0=n, dtype=torch.complex64)
    y = random_tensor(ndim=1, dim0=n, dtype=torch.complex64)
    return torch.inner(x, y), torch.outer(x, y)


@autotest()
def test_inner():
    k = random(1, 10)
    x = random_tensor(ndim=3, dim2=k)
    y = random_tensor(ndim=2, dim1=k)
    v = random_tensor(ndim=1, dim0=k)
    return torch.inner(x, y), y.inner(v), torch.inner(v, v), torch.inner(x, random_tensor(ndim=0))


@autotest()
def test_outer():
    x, y = random_tensor(ndim=1, dim0=random(1, 8)), random_tensor(ndim=1, dim0=random(1, 8))
    return torch.outer(x, y), x.ger(y), torch.ger(x, y), x.outer(y)


@autotest()
def test_tensordot():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim1=a, dim2=b)
    y = random_tensor(ndim=3, dim0=a | constant(1), dim1=b)
    return torch.tensordot(x, y), torch.tensordot(x, y, 2), torch.tensordot(x, y, dims=0)


@autotest()
def test_tensordot_lists():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=3, dim1=a, dim2=b)
    y = random_tensor(ndim=4, dim1=b, dim3=a)
    return torch.tensordot(x, y, ([1, 2], [3, 1])), torch.tensordot(x, y, dims=[[-1], [1]]), torch.tensordot(x, y, dims=([], []))


@autotest()
def test_addmm():
    m, k, n = random(1, 6), random(1, 10), random(1, 6)
    c = matrix(m | constant(1), n | constant(1))
    return torch.addmm(c, matrix(m, k), matrix(k, n), beta=random(-2.0, 2.0) | nothing(), alpha=random(-2.0, 2.0) | nothing())


@autotest()
def test_addmm_method():
    m, k, n = random(1, 6), random(1, 10), random(1, 6)
    return matrix(m, n).addmm(matrix(m, k), matrix(k, n), beta=random(0, 3).to(int), alpha=random(1, 3).to(int))


@autotest()
def test_addmv():
    m, k = random(1, 6), random(1, 10)
    c = random_tensor(ndim=1, dim0=m | constant(1))
    v = random_tensor(ndim=1, dim0=k)
    return torch.addmv(c, matrix(m, k), v, beta=random(-2.0, 2.0) | nothing(), alpha=random(-2.0, 2.0) | nothing())


@autotest()
def test_addmv_method():
    m, k = random(1, 6), random(1, 10)
    c = random_tensor(ndim=1, dim0=m)
    return c.addmv(matrix(m, k), random_tensor(ndim=1, dim0=k))


@autotest()
def test_addbmm():
    b, m, k, n = random(1, 4), random(1, 5), random(1, 8), random(1, 5)
    c = matrix(m | constant(1), n)
    x = random_tensor(ndim=3, dim0=b, dim1=m, dim2=k)
    y = random_tensor(ndim=3, dim0=b, dim1=k, dim2=n)
    return torch.addbmm(c, x, y, beta=random(-2.0, 2.0) | nothing(), alpha=random(-2.0, 2.0) | nothing()), c.addbmm(x, y)


@autotest()
def test_baddbmm():
    b, m, k, n = random(1, 4), random(1, 5), random(1, 8), random(1, 5)
    c = random_tensor(ndim=3, dim0=b | constant(1), dim1=m, dim2=n)
    x = random_tensor(ndim=3, dim0=b, dim1=m, dim2=k)
    y = random_tensor(ndim=3, dim0=b, dim1=k, dim2=n)
    return torch.baddbmm(c, x, y, beta=random(0.5, 2.0).to(float) | nothing(), alpha=random(0.5, 2.0).to(float) | nothing()), c.baddbmm(x, y)


@autotest(auto_backward=False)
def test_added_integers():
    m, k, n = random(1, 6), random(1, 8), random(1, 6)
    x = random_tensor(ndim=2, dim0=m, dim1=k, dtype=torch.int64)
    y = random_tensor(ndim=2, dim0=k, dim1=n, dtype=torch.int64)
    c = random_tensor(ndim=1, dim0=n, dtype=torch.int64)
    return torch.addmm(c, x, y, beta=random(0, 4).to(int), alpha=random(-3, 4).to(int)), torch.tensordot(x, y, 1)


@autotest()
def test_kron():
    x, y = random_tensor(ndim=random(0, 4)), random_tensor(ndim=random(0, 3))
    return torch.kron(x, y), x.kron(y)


@autotest()
def test_matrix_power():
    n = random(1, 6)
    x = random_tensor(ndim=3, dim1=n, dim2=n, low=-1, high=1)
    p = random(0, 6).to(int)
    return torch.matrix_power(x, p), x.matrix_power(p), torch.linalg.matrix_power(x, p)


@autotest()
def test_matrix_power_negative():
    return torch.matrix_power(regular(random(1, 6)), random(-3, 0).to(int))


@autotest()
def test_multi_dot():
    a, b, c, d, e = random(1, 6), random(1, 6), random(1, 6), random(1, 6), random(1, 6)
    return torch.linalg.multi_dot([matrix(a, b), matrix(b, c), matrix(c, d), matrix(d, e)])


@autotest()
def test_multi_dot_vectors():
    a, b = random(1, 6), random(1, 6)
    return torch.linalg.multi_dot([random_tensor(ndim=1, dim0=a), matrix(a, b), random_tensor(ndim=1, dim0=b)])


@autotest()
def test_chain_matmul():
    a, b, c = random(1, 6), random(1, 6), random(1, 6)
    return torch.chain_matmul(matrix(a, b), matrix(b, c), matrix(c, random(1, 6)))


@autotest()
def test_cross():
    x = random_tensor(ndim=3, dim1=3)
    return torch.cross(x, x + 1, dim=1), x.cross(x * x), torch.linalg.cross(x, x + 1, dim=-2)


@autotest(auto_backward=False)
def test_cross_integers():
    x = random_tensor(ndim=2, dim0=3, dtype=torch.int64)
    return torch.cross(x, x * x, dim=0)


@autotest()
def test_bilinear():
    i, j, o, b = random(1, 6), random(1, 6), random(1, 6), random(1, 5)
    x, y = matrix(b, i), matrix(b, j)
    w = random_tensor(ndim=3, dim0=o, dim1=i, dim2=j)
    bias = random_tensor(ndim=1, dim0=o)
    return torch.nn.functional.bilinear(x, y, w, bias=constant(bias) | nothing())


@autotest()
def test_bilinear_module():
    i, j = random(1, 6), random(1, 6)
    m = torch.nn.Bilinear(i, j, random(1, 6), bias=random_bool() | nothing())
    m.train(random())
    b = random(1, 5)
    return m(random_tensor(ndim=3, dim0=b, dim1=2, dim2=i), random_tensor(ndim=3, dim0=b, dim1=2, dim2=j))


@autotest()
def test_inverse():
    x = regular(random(1, 6))
    return torch.inverse(x), x.inverse(), torch.linalg.inv(x)


@autotest()
def test_det():
    x = regular(random(1, 6))
    return torch.det(x), x.det(), torch.linalg.det(x)


@autotest()
def test_slogdet():
    x = regular(random(1, 6))
    sign, log = torch.slogdet(x)
    return sign, log, torch.logdet(x), x.logdet()


@autotest()
def test_slogdet_negative():
    n = random(1, 6)
    x = -20 * torch.eye(n) - random_tensor(ndim=2, dim0=n, dim1=n, dtype=torch.float64)
    sign, log = torch.linalg.slogdet(x)
    return sign, torch.linalg.slogdet(torch.det(x) * x)[0]


@autotest()
def test_inverse_complex():
    n = random(1, 5)
    x = random_tensor(ndim=2, dim0=n, dim1=n, dtype=torch.complex64, low=-0.1, high=0.1)
    y = x + torch.matrix_power(x, 0)
    return torch.linalg.inv(y), torch.linalg.det(y)


@autotest(refusals=True)
def test_mm_refused():
    # sizes that often do not fit
    return matrix(random(1, 4), random(1, 4)).mm(matrix(random(1, 4), random(1, 4)))


@autotest(refusals=True)
def test_addmm_refused():
    x, y = matrix(random(1, 3), random(1, 3)), matrix(random(1, 3), random(1, 3))
    return torch.addmm(random_tensor(ndim=random(1, 4)), x, y)


@autotest(auto_backward=False, refusals=True)
def test_det_refused():
    return torch.det(random_tensor(ndim=random(1, 4), dim0=random(1, 4), dim1=random(1, 4)))


@autotest(refusals=True)
def test_cross_refused():
    r, c = random(1, 4), random(1, 4)
    return torch.cross(matrix(r, c), matrix(r, oneof(c, random(1, 4))), dim=oneof(0, 1, -1, 2))


@autotest()
def test_solve():
    n = random(2, 6).to(int)  # PyTorch 1.13 cannot differentiate by a matrix of one element, with a vector
    a = regular(n)
    b = random_tensor(ndim=2, dim0=n, dim1=random(1, 4))
    return torch.linalg.solve(a, b), torch.linalg.solve(a, b.t(), left=False), torch.linalg.solve(a, b[:, 0])


@autotest()
def test_cholesky():
    n = random(1, 6).to(int)
    m = random_tensor(ndim=2, dim0=n, dim1=n)
    a = m @ m.t() + torch.eye(n)
    return torch.linalg.cholesky(a, upper=random_bool()), torch.cholesky(a), a.cholesky(random_bool())


@autotest()
def test_cholesky_ex():
    n = random(1, 6).to(int)
    m = random_tensor(ndim=2, dim0=n, dim1=n)
    return torch.linalg.cholesky_ex(m @ m.t() + torch.eye(n), upper=random_bool())[0]


@autotest(auto_backward=False)
def test_cholesky_ex_info():
    n = random(1, 6).to(int)
    factor, info = torch.linalg.cholesky_ex(torch.eye(n) - random(0, 2))
    return info


@autotest()
def test_addr():
    n, m = random(1, 5), random(1, 5)
    x, v, w = matrix(n, m), random_tensor(ndim=1, dim0=n), random_tensor(ndim=1, dim0=m)
    return torch.addr(x, v, w, beta=random(-2.0, 2.0) | nothing(), alpha=random(-2.0, 2.0) | nothing()), x.addr(v, w), torch.addr(x, v, w, beta=0)


@autotest()
def test_linalg_names():
    x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=3)
    return torch.linalg.matmul(x, x), torch.linalg.diagonal(x, offset=oneof(-1, 0, 1)), torch.linalg.vecdot(x, x * 2, dim=oneof(0, -1)), torch.diagflat(x[0], random(-1, 2).to(int)), x.diagflat(), torch.positive(x) * 2, torch.special.softmax(x, 1), torch.special.log_softmax(x, -1), torch.conj_physical(x)


def well_spread(rows, columns):
    # singular values apart from 0 and from each other
    diagonal = torch.arange(1, rows + 1).reshape(rows, 1) * torch.eye(rows, columns)
    return 4 * diagonal + random_tensor(ndim=2, dim0=rows, dim1=columns, low=-0.5, high=0.5)


@autotest()
def test_solve_triangular():
    n, upper = random(1, 5).to(int), random_bool()
    a = regular(n)
    b = random_tensor(ndim=2, dim0=n, dim1=random(1, 4))
    return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=random_bool()), torch.linalg.solve_triangular(a, b.t(), upper=upper, left=False)


@autotest()
def test_cholesky_solve():
    n = random(1, 6).to(int)
    m = random_tensor(ndim=2, dim0=n, dim1=n)
    l = torch.linalg.cholesky(m @ m.t() + n * torch.eye(n))
    b = random_tensor(ndim=2, dim0=n, dim1=random(1, 4))
    return torch.cholesky_solve(b, l), b.cholesky_solve(l.t(), True)


@autotest()
def test_qr():
    q, r = torch.linalg.qr(well_spread(random(1, 6).to(int), random(1, 6).to(int)))
    return q, r


@autotest(auto_backward=False)
def test_qr_modes():
    q, r = torch.linalg.qr(well_spread(random(1, 6).to(int), random(1, 6).to(int)), mode=oneof("complete", "r"))
    return q, r


@autotest()
def test_svdvals():
    x = well_spread(random(1, 6).to(int), random(1, 6).to(int))
    return torch.linalg.svdvals(x), torch.linalg.matrix_norm(x, oneof(2, -2, "nuc")), torch.linalg.norm(x, oneof(2, "nuc"))


@autotest()
def test_eigvalsh():
    n = random(1, 6).to(int)
    x = well_spread(n, n)
    return torch.linalg.eigvalsh(x + x.t(), oneof("L", "U"))


@autotest()
def test_pinv():
    x = well_spread(random(1, 6).to(int), random(1, 6).to(int))
    return torch.linalg.pinv(x), torch.linalg.pinv(x, rtol=0.5), torch.linalg.pinv(x, 0.001), torch.pinverse(x), x.pinverse()


@autotest()
def test_cond():
    n = random(1, 6).to(int)
    return torch.linalg.cond(well_spread(n, n), p=oneof(2, -2, "nuc") | nothing())


@autotest(auto_backward=False)
def test_matrix_rank():
    n = random(1, 6).to(int)
    x = well_spread(n, n)
    return torch.linalg.matrix_rank(x), torch.linalg.matrix_rank(x, 10.0), torch.linalg.matrix_rank(x, atol=6.0, rtol=0.3), torch.linalg.matrix_rank(x[:1].t() @ x[:1]), torch.linalg.cond(x, oneof(1, "fro"))


@autotest()
def test_matrix_exp():
    n = random(1, 6).to(int)
    x = random_tensor(ndim=3, dim1=n, dim2=n, low=-1, high=1)
    return torch.matrix_exp(x), x.matrix_exp(), torch.linalg.matrix_exp(2 * x)
