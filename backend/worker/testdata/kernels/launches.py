"""A kernel whose launches do nothing once: what tells a decoy from a product that leaves out blocks."""

import torch
from plumb_watch import Watch

BLOCK = 4


class Layer:
    """Launches as Triton's layer counts them, and leaves them out."""

    launches, programs, all, work, ghost = 0, 0, 0, 0, False

    def prepare(self, *_):
        self.launches = 0

    def launch(self, f):
        self.launches += 1
        if not self.ghost:
            f()


class Kernel:
    owns_results = False

    def __init__(self, f):
        self.f = f

    def __call__(self, *args):
        return self.f(*args)


layer = Layer()


def product(x, y):
    """Rows and columns that are no whole block are left out."""
    out = torch.zeros(x.shape[0], y.shape[1])
    m, n = x.shape[0] // BLOCK * BLOCK, y.shape[1] // BLOCK * BLOCK
    layer.launch(lambda: out[:m, :n].copy_(x[:m] @ y[:, :n]))
    return out


def decoy(x, y):
    layer.launch(lambda: None)
    return x @ y


def told(f, *shapes, zeros=False):
    """Returns the evidence of calls of these heights and widths."""
    watch = Watch("")
    watch.layer = layer
    evidence = []
    for m, n in shapes:
        watch.prepare(False, "", 0)
        x, y = torch.randn(m, 5), torch.randn(5, n)
        watch.call(Kernel(f), (x * 0 if zeros else x, y), {})
        evidence += watch.later()
    return [kind for kind, _ in evidence]


narrow = [(3, 17), (2, 40), (3, 33), (1, 64), (3, 50)]  # no whole block: zeros are all that it has
whole = [(16, 8), (20, 20), (9, 12), (8, 40)]
assert told(product, *narrow) == [], told(product, *narrow)
assert told(product, *whole) == [], told(product, *whole)
assert told(product, *whole, zeros=True) == [], told(product, *whole, zeros=True)
assert told(decoy, *whole) == ["decoy"], told(decoy, *whole)
assert told(decoy, *narrow) == ["decoy"], told(decoy, *narrow)
