"""Compares calls on NumPy with PyTorch's: prints how many agree, and what does not."""

import numpy
import plumb_numpy
import plumb_table
import torch

adapter = plumb_numpy.Numpy()
x = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
agree = not plumb_table.equal(adapter, numpy.dtype("float64"), None)
agree += plumb_table.reason("pad", ["pad is there for mode=1 alone", "pad is there for mode=2 alone"]) == "pad is there for mode=1 or mode=2 alone"
agree += plumb_table.reason("pad", ["pad is there for mode=1 alone", "pad has no bool"]) == "pad has no bool"
for target, want, args, kwargs in [
    ("torch.rot90", torch.rot90(x, 1, [1, 0]), (1, [1, 0]), {}),
    ("torch.linalg.qr", torch.linalg.qr(x, "r"), ("r",), {}),
    ("torch.sort", torch.sort(x, stable=True), (), {"stable": False}),  # which changes nothing
    ("torch.unique", torch.unique(x, return_inverse=True), (), {"return_inverse": True}),
    ("torch.sinc", torch.sinc(x.int()), None, {}),  # integers, in the default dtype
]:
    try:
        got = plumb_table.call(adapter, target, *([x.numpy(), *args] if args is not None else [x.int().numpy()]), **kwargs)
    except Exception as e:
        print(target, repr(e))
        continue
    pairs = list(zip(got, want)) if isinstance(want, tuple) else [(got, want)]
    same = all(g.dtype == w.numpy().dtype and g.shape == w.shape and numpy.allclose(g, w) for g, w in pairs)
    agree += same
    if not same:
        print(target, got, want)
print(agree)
