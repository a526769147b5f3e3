"""References for images; sizes are fixed where the kernel fixes them."""
import torch
import torch.nn.functional as F


def max_pool2(x):
    return F.max_pool2d(x, 3, stride=2, padding=1)


def upsample_twice(x):
    return F.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[3]), mode="bilinear", align_corners=False)


def conv2d_same(x, w, b):
    return F.conv2d(x, w, b, padding=(w.shape[2] // 2, w.shape[3] // 2))


def depthwise_conv2d(x, w):
    return F.conv2d(x, w[:, None], padding=(w.shape[1] // 2, w.shape[2] // 2), groups=x.shape[1])


def conv2d_two_groups(x, w):
    return F.conv2d(x, w, groups=2)


def causal_conv1d(x, w):
    return F.conv1d(F.pad(x, (w.shape[2] - 1, 0)), w)


def channel_scale(x, scale):
    return x * scale[:, None, None]


def mean_over_pixels(x):
    return x.mean((2, 3))


def cross_entropy_rows(logits, target):
    return F.cross_entropy(logits, target, ignore_index=-1, reduction="none")


def matmul(a, b):
    return a @ b
