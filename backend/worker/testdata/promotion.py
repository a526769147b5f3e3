"""Compares the dtypes to which the kit promotes with torch.result_type: prints how many agree, and what does not."""

import plumb_table
import plumb_torchown
import torch

adapter = plumb_torchown.TorchOwn()
SHORT = {"bcomplex32": "complex64"}  # PyTorch 2.15's type for bfloat16 with complex numbers, which Plumb has not
tensors = [torch.ones(shape, dtype=adapter.dtype(dtype)) for dtype in plumb_table.RANKS for shape in ((), (2,))]
agree = 0
for x in tensors:
    for y in tensors + [True, 3, 2.5, 1j]:
        want, got = adapter.dtype_name(torch.result_type(x, y)), plumb_table.promoted(adapter, (x, y))
        want = SHORT.get(want, want)
        agree += got == want
        if got != want:
            print(x.dtype, x.dim(), y, want, got)
print(agree)
