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


def triangle(x, h):
    """Of a mask and places that follow from no argument."""
    i = torch.arange(x.shape[-1])
    of = i[:, None] - i[None]
    return x @ torch.where(of >= 0, h[of.clamp(min=0)], torch.zeros((), dtype=h.dtype)).t()


def filtered(x, h):
    n = x.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(x, 2 * n) * torch.fft.rfft(h, 2 * n), 2 * n)[..., :n]


def filtered_around(x, h):
    """The end of a row comes in at its beginning."""
    n = x.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)
