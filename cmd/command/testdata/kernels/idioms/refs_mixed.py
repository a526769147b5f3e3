import torch
import torch.nn.functional as F


def segment_softmax(x, segment):
    same = segment[:, None] == segment[None]
    most = x[None].expand(x.shape[0], -1).masked_fill(~same, -torch.inf).amax(1)
    e = torch.exp(x - most)
    return e / (same.to(x.dtype) * e[None]).sum(1)


def dilated_groups(x, w):
    return F.conv1d(x, w, padding=2, dilation=2, groups=2)


def w8_linear(x, q, scale):
    return x @ (q.to(x.dtype) * scale[:, None]).t()


def smoothed(x, target):
    return F.cross_entropy(x, target, label_smoothing=0.1)


def silu_mul(x, y):
    return F.silu(x) * y


def nearest(x, codes):
    return (x[:, None] - codes).square().sum(-1).argmin(-1)


def gated_rows(x, gate):
    return x * torch.sigmoid(gate.max(-1, keepdim=True)[0])
