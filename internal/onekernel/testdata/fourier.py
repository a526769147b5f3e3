import torch


def conv1d(x, w):
    n = x.shape[-1] + w.shape[-1] - 1
    y = torch.fft.irfft(torch.einsum("bif,oif->bof", torch.fft.rfft(x, n), torch.fft.rfft(w.flip(-1), n)), n)
    return y[..., w.shape[-1] - 1 : x.shape[-1]]


def conv1d_half(x, w):
    """Of products that are rounded to bfloat16."""
    n = x.shape[-1] + w.shape[-1] - 1
    y = torch.einsum("bif,oif->bof", torch.fft.rfft(x.bfloat16().float(), n), torch.fft.rfft(w.flip(-1), n))
    return torch.fft.irfft(y, n)[..., w.shape[-1] - 1 : x.shape[-1]]
