"""Sizes of a function in C are told by their names, by x.size(i), or by arithmetic of both."""

import torch
from plumb_forms import number
from plumb_names import Refusal

known = {"x": torch.zeros(3, 5), "N": 3}
for text, want in {"N": 3, "x.size(1)": 5, "x.size(-1) * N": 15, "x.shape[0] + 1": 4, "x.numel()": 15}.items():
    assert number(text, known) == want, text
for text in ("M", "x.stride(0)"):
    try:
        number(text, known)
    except Refusal as e:
        assert "is no size" in str(e), e
    else:
        raise AssertionError(text)
