# What torch_npu's own tests import of its testing package.
import numpy as np
import torch


def create_common_tensor(item, minValue, maxValue, device="npu"):
    values = np.random.uniform(minValue, maxValue, item[2]).astype(item[0])
    return torch.from_numpy(values), torch.from_numpy(values).to(device)


def get_npu_device():
    return "npu"


def npu_format_cast(input, acl_format):
    return input


def assertRtolEqual(x, y, prec=1e-4, prec16=1e-3, auto_trans_dtype=False, message=None):
    if isinstance(x, (list, tuple)):
        for a, b in zip(x, y):
            assertRtolEqual(a, b, prec, prec16)
        return
    if not isinstance(x, torch.Tensor):
        x, y = np.array(x), np.array(y)
        limit = prec16 if x.dtype == np.float16 else prec
        np.testing.assert_allclose(y, x, rtol=limit, atol=limit)
        return
    limit = prec16 if x.dtype in [torch.float16, torch.bfloat16] else prec
    torch.testing.assert_close(y, x, rtol=limit, atol=limit)
