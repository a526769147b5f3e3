import torch


def softmax(x):
    if x.shape[-1] > 64:
        raise ValueError("rows of at most 64 columns")
    e = torch.exp(x - x.amax(-1, keepdim=True).detach())
    return e / e.sum(-1, keepdim=True)


def matmul(a, b):
    if a.shape[0] % 8 or a.shape[1] % 8 or b.shape[1] % 8:
        raise NotImplementedError("sizes are multiples of 8")
    m, k, n = a.shape[0] // 8, a.shape[1] // 8, b.shape[1] // 8
    x = a.reshape(m, 8, k, 8).permute(0, 2, 1, 3)
    y = b.reshape(k, 8, n, 8).permute(0, 2, 1, 3)
    return torch.einsum("mkab,knbc->manc", x, y).reshape(m * 8, n * 8)


def rms_norm(x, weight):
    if not x.is_contiguous():
        raise RuntimeError("x must be contiguous")
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def cumsum(x):
    if x.dtype != torch.float32:
        raise TypeError("float32 only")
    n = x.shape[-1]
    before = torch.arange(n)[:, None] >= torch.arange(n)[None, :]
    wide = torch.where(before, x.double()[..., None, :], torch.zeros((), dtype=torch.float64))
    return wide.sum(-1).float()
