"""Compares calls on NumPy with PyTorch's: prints how many agree, and what does not."""

import numpy
import plumb_numpy
import plumb_table
import torch

adapter = plumb_numpy.Numpy()
x = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
agree = not plumb_table.equal(adapter, numpy.dtype("float64"), None)
for target, want, args in [
    ("torch.rot90", torch.rot90(x, 1, [1, 0]), (1, [1, 0])),
    ("torch.linalg.qr", torch.linalg.qr(x, "r"), ("r",)),
]:
    try:
        got = plumb_table.call(adapter, target, x.numpy(), *args)
    except Exception as e:
        print(target, repr(e))
        continue
    pairs = list(zip(got, want)) if isinstance(want, tuple) else [(got, want)]
    same = all(g.dtype == w.numpy().dtype and g.shape == w.shape and numpy.allclose(g, w) for g, w in pairs)
    agree += same
    if not same:
        print(target, got, want)
print(agree)
