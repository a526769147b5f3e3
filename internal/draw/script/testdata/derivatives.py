import numpy as np
from plumb import *
F = torch.autograd.functional

def close(a, b):
    return np.allclose(a.detach().numpy(), b, 1e-4, 1e-5)

@autotest(n=3, auto_backward=False)
def test_products(test_case):
    x = random_tensor(ndim=1, dim0=3)
    v = random_tensor(ndim=1, dim0=3)
    a, b = x.detach().numpy(), v.detach().numpy()
    j = F.jacobian(torch.exp, x)
    assert close(j, np.eye(3) * np.exp(a))
    cube = lambda t: t.pow(3).sum()
    h = F.hessian(cube, x)
    assert close(h, np.eye(3) * 6 * a)
    out, g = F.vjp(torch.exp, x, v)
    assert close(out, np.exp(a)) and close(g, np.exp(a) * b)
    out, g = F.jvp(torch.exp, x, v)
    assert close(out, np.exp(a)) and close(g, np.exp(a) * b)
    out, g = F.vhp(cube, x, v)
    assert close(g, 6 * a * b)
    out, g = F.hvp(cube, x, v)
    assert close(g, 6 * a * b)
    assert not g.requires_grad and not j.requires_grad
    two = F.jacobian(lambda s, t: (s * t.sum(), s), (x, v))
    assert close(two[0][0], np.eye(3) * b.sum()) and close(two[0][1], a.reshape(3, 1) * np.ones((1, 3))) and close(two[1][0], np.eye(3)) and close(two[1][1], np.zeros((3, 3)))
    both = F.hessian(lambda s, t: (s * t).sum(), (x, v))
    assert close(both[0][1], np.eye(3)) and close(both[0][0], np.zeros((3, 3)))
    return j, h, two, both

@autotest(n=3)
def test_onward(test_case):
    x = random_tensor(ndim=2, dim0=2, dim1=2)
    j = F.jacobian(lambda t: (t * t).sum(1), x, create_graph=True)
    assert j.shape == (2, 2, 2) and j.requires_grad
    return j.pow(2).sum()
