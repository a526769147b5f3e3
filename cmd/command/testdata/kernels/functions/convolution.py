import torch
import torch.nn.functional as F


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1):
    wide = F.pad(input, (padding, padding))
    taps = weight.shape[2]
    length = (wide.shape[2] - dilation * (taps - 1) - 1) // stride + 1
    out = input.new_zeros(input.shape[0], weight.shape[0], length)
    for k in range(taps):
        start = k * dilation
        part = wide[:, :, start:start + (length - 1) * stride + 1:stride]
        out = out + torch.einsum("oc,ncl->nol", weight[:, :, k], part)
    return out if bias is None else out + bias[:, None]


def causal_conv1d(x, w):
    taps = w.shape[2]
    wide = F.pad(x, (taps - 1, 0))
    return sum(torch.einsum("oc,ncl->nol", w[:, :, k], wide[:, :, k:k + x.shape[2]]) for k in range(taps))


def causal_conv1d_tiled(x, w, tile=16):
    taps = w.shape[2]
    wide = F.pad(x, (taps - 1, 0))
    out = x.new_zeros(x.shape[0], w.shape[0], x.shape[2])
    for t in range(x.shape[2] // tile or 1):
        at = slice(t * tile, min((t + 1) * tile, x.shape[2]))
        part = wide[:, :, at.start:at.stop + taps - 1].unfold(2, taps, 1)
        out[:, :, at] = torch.einsum("ock,nclk->nol", w, part)
    return out


def conv2d_same(x, w, b):
    o, c, kh, kw = w.shape
    cols = F.unfold(x, (kh, kw), padding=(kh // 2, kw // 2))
    return (w.reshape(o, -1) @ cols + b[:, None]).reshape(x.shape[0], o, x.shape[2], x.shape[3])


def conv2d_two_groups(x, w):
    half = w.shape[1]
    parts = [F.conv2d(x[:, g * half:(g + 1) * half], w[:w.shape[0] // 2]) for g in range(2)]
    return torch.cat(parts, 1)


def depthwise_conv2d(x, w):
    kh, kw = w.shape[1:]
    wide = F.pad(x, (kw // 2, kw // 2, kh // 2, kh // 2))
    h, width = x.shape[2:]
    return sum(w[:, i, j, None, None] * wide[:, :, i:i + h, j:j + width] for i in range(kh) for j in range(kw))


def depthwise_conv2d_flipped(x, w):
    kh, kw = w.shape[1:]
    wide = F.pad(x, (kw // 2, kw // 2, kh // 2, kh // 2))
    h, width = x.shape[2:]
    return sum(w[:, kh - 1 - i, kw - 1 - j, None, None] * wide[:, :, i:i + h, j:j + width]
               for i in range(kh) for j in range(kw))
