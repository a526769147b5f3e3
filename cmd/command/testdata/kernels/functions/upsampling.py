import torch


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


def upsample_twice(x):
    return _lerp(_lerp(x, 2, 2 * x.shape[2], False), 3, 2 * x.shape[3], False)


def upsample_twice_corners(x):
    return _lerp(_lerp(x, 2, 2 * x.shape[2], True), 3, 2 * x.shape[3], True)


def pixel_shuffle(input, upscale_factor):
    n, c, h, w = input.shape
    r = upscale_factor
    x = input.reshape(n, c // (r * r), r, r, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(n, c // (r * r), h * r, w * r).clone()
