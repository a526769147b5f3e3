import torch


def _wide(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def softmax(input, dim, dtype=None):
    x = input if dtype is None else input.to(dtype)
    if x.numel() == 0:
        return x.clone()
    wide = _wide(x)
    e = torch.exp(wide - wide.amax(dim, keepdim=True).detach())
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


def softmax_simple(input, dim, dtype=None):
    x = input if dtype is None else input.to(dtype)
    e = torch.exp(_wide(x))
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


def log_softmax(input, dim, dtype=None):
    x = input if dtype is None else input.to(dtype)
    if x.numel() == 0:
        return x.clone()
    wide = _wide(x)
    shifted = wide - wide.amax(dim, keepdim=True).detach()
    return (shifted - torch.log(torch.exp(shifted).sum(dim, keepdim=True))).to(x.dtype)


def log_softmax_via_softmax(input, dim, dtype=None):
    return torch.log(softmax(input, dim, dtype))
