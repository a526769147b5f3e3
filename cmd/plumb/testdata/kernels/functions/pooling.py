import torch
import torch.nn.functional as F


def _windows(x, size, stride):
    return x.unfold(2, size, stride).unfold(3, size, stride)


def max_pool2d(input, kernel_size, stride=None, padding=0):
    wide = F.pad(input, (padding,) * 4, value=float("-inf"))
    return _windows(wide, kernel_size, stride or kernel_size).flatten(4).max(-1).values


def max_pool2d_padded(input, kernel_size, stride=None, padding=0):
    wide = F.pad(input, (padding,) * 4)
    return _windows(wide, kernel_size, stride or kernel_size).amax((-2, -1))


def avg_pool2d(input, kernel_size, stride=None, padding=0, count_include_pad=True):
    stride = stride or kernel_size
    total = _windows(F.pad(input, (padding,) * 4), kernel_size, stride).sum((-2, -1))
    if count_include_pad:
        return total / kernel_size ** 2
    ones = F.pad(torch.ones_like(input[:1, :1]), (padding,) * 4)
    return total / _windows(ones, kernel_size, stride).sum((-2, -1))


def _sample(size_in, size_out, align_corners, like):
    i = torch.arange(size_out, dtype=like.dtype)
    if align_corners:
        at = i * ((size_in - 1) / (size_out - 1)) if size_out > 1 else i * 0
    else:
        at = ((i + 0.5) * (size_in / size_out) - 0.5).clamp(min=0)
    low = at.floor().long().clamp(max=size_in - 1)
    return low, (low + 1).clamp(max=size_in - 1), at - low


def _lerp(x, dim, size, align_corners):
    low, high, t = _sample(x.shape[dim], size, align_corners, x)
    shape = [1] * x.dim()
    shape[dim] = size
    t = t.reshape(shape)
    return x.index_select(dim, low) * (1 - t) + x.index_select(dim, high) * t


def upsample_bilinear(input, size):
    return _lerp(_lerp(input, 2, size[0], False), 3, size[1], False)


def upsample_bilinear_corners(input, size):
    return _lerp(_lerp(input, 2, size[0], True), 3, size[1], True)


def pixel_shuffle(input, upscale_factor):
    n, c, h, w = input.shape
    r = upscale_factor
    x = input.reshape(n, c // (r * r), r, r, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(n, c // (r * r), h * r, w * r)
