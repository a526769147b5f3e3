"""A recurrence of thousands of steps: of its graph as much is looked at as PyTorch 2 can free again."""

import torch
from plumb_watch import SEEN, Watch, nodes

STEPS = 5000


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Kernel:
    owns_results = False

    def __init__(self, last):
        self.last = last

    def __call__(self, x):
        for _ in range(STEPS):
            x = x + 1
        return self.last(x)


for last, formulas in ((Twice.apply, True), (torch.sin, False)):
    watch = Watch("")
    watch.prepare(False, "", 0)
    x = torch.zeros(1, requires_grad=True)
    y = watch.call(Kernel(last), (x,), {})
    assert watch.formulas == formulas, watch.formulas
    assert sum(1 for _ in nodes(y)) == SEEN < STEPS
    y.backward()

x = torch.zeros(1, requires_grad=True)
assert [type(f).__name__ for f in nodes(torch.sin(x) * 2)] == ["MulBackward0", "SinBackward0"]
