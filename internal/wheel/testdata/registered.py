"""Operators as PyTorch's, by torch.library.opcheck's tests and by PyTorch's own functions."""

import torch
import torch.nn.functional as F
from userlib import ops as direct
from userlib import torch as registered

ops = registered.ops


def leaf(*shape, **kw):
    return torch.randn(*shape, requires_grad=True, **kw)


x, w = leaf(3, 4), leaf(4)
cases = [
    ("leaky_relu_yzh", "default", (x, 0.2), {}, lambda: F.leaky_relu(x, 0.2)),
    ("leaky_relu_yzh", "default", (leaf(4, 3).detach().t().requires_grad_(),), {}, None),
    ("bent_identity", "default", (x,), {}, lambda: ((x * x + 1).sqrt() - 1) / 2 + x),
    ("peaks", "default", (x, torch.zeros(3, 4, dtype=torch.int64), 2), {}, lambda: x.unfold(-1, 2, 1).max(-1)[0]),
    ("add", "default", (x, w), {"alpha": 2}, lambda: torch.add(x, w, alpha=2)),
    ("mul", "v1", (x, 2.5), {}, lambda: x * 2.5),
    ("max", "dim", (x, 1), {}, lambda: x.max(1)[0]),
    ("cat", "default", ([leaf(2, 3), leaf(1, 3)], 0), {}, None),
    ("split", "sections_v1", (leaf(5, 2), 2), {}, None),
    ("linear", "default", (x, leaf(5, 4), leaf(5)), {}, None),
    ("conv2d", "default", (leaf(1, 2, 5, 5), leaf(3, 2, 3, 3)), {}, None),
    ("transpose", "default", (x, 0, 1), {}, lambda: x.t()),
    ("layer_norm", "default", (x, [4]), {}, lambda: F.layer_norm(x, [4])),
    ("softmax", "default", (x, 1), {}, lambda: x.softmax(1)),
]
for name, overload, args, kwargs, want in cases:
    op = getattr(getattr(ops, name), overload)
    found = torch.library.opcheck(op, args, kwargs, raise_exception=False)
    bad = {test: str(result) for test, result in found.items() if result != "SUCCESS"}
    assert not bad and len(found) == 4, (name, bad or found)
    if want is not None:
        out, want = op(*args, **kwargs), want()
        out = out[0] if isinstance(out, tuple) else out
        torch.testing.assert_close(out, want)
        leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
        if "!" in str(op._schema):  # PyTorch registers no gradient of what changes an argument
            continue
        g = torch.randn_like(want)
        for a, b in zip(torch.autograd.grad(out, leaves, g), torch.autograd.grad(want, leaves, g)):
            torch.testing.assert_close(a, b)
print(len(cases), "calls pass the four tests of opcheck")

d = leaf(3, 4, dtype=torch.float64)
assert torch.autograd.gradcheck(lambda x: ops.leaky_relu_yzh(x, 0.2), (d,))
assert torch.autograd.gradgradcheck(lambda x: ops.softmax(x, 1), (d,))
assert torch.autograd.gradgradcheck(lambda x: ops.bent_identity(x), (d,))
third = lambda x: ops.sum(ops.mul(ops.mul(ops.mul(x, x), x), x))
g = d
y = third(d)
for _ in range(3):
    (g,) = torch.autograd.grad(y, d, create_graph=True)
    y = g.sum()
torch.testing.assert_close(g, 24 * d)  # the third derivative of x⁴

half = torch.randn(5, dtype=torch.bfloat16)
torch.testing.assert_close(ops.leaky_relu_yzh(half, 0.5), F.leaky_relu(half, 0.5))
assert isinstance(direct.add(x, x), torch.Tensor) and direct.add(x, x).requires_grad
compiled = torch.compile(lambda x: ops.leaky_relu_yzh(x, 0.2) * 2, backend="aot_eager", fullgraph=True)
torch.testing.assert_close(compiled(x), F.leaky_relu(x, 0.2) * 2)
c = torch.randn(3, dtype=torch.complex64)
torch.testing.assert_close(ops.neg(c.conj()), -c.conj())
mean = torch.zeros(2)
ops.batch_norm(torch.randn(4, 2), mean, torch.ones(2), training=True)
assert mean.any()
try:
    ops.dropout(x, 0.5).sum().backward()
    raise AssertionError("a gradient of what is drawn")
except NotImplementedError as e:
    assert "drawn" in str(e)
try:
    ops.equal
    raise AssertionError("a number is no tensor")
except NotImplementedError as e:
    assert "Python number" in str(e)
