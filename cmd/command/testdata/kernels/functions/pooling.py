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


def avg_pool2d_counted(input, kernel_size, stride=None, padding=0, count_include_pad=True):
    total = _windows(F.pad(input, (padding,) * 4), kernel_size, stride or kernel_size).sum((-2, -1))
    return total / kernel_size ** 2
