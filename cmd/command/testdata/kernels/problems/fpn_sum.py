import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Top-down sum of feature maps of three scales."""

    def __init__(self, c1, c2, c3, out):
        super().__init__()
        self.lateral = nn.ModuleList([nn.Conv2d(c, out, 1) for c in (c1, c2, c3)])
        self.smooth = nn.Conv2d(out, out, 3, padding=1)

    def forward(self, feats):
        lat = [m(f) for m, f in zip(self.lateral, feats)]
        for i in range(len(lat) - 1, 0, -1):
            lat[i - 1] = lat[i - 1] + F.interpolate(lat[i], scale_factor=2, mode="nearest")
        return [self.smooth(f) for f in lat]


batch, c1, c2, c3, out, side = 2, 16, 32, 64, 24, 8


def get_inputs():
    return [[torch.rand(batch, c1, side * 4, side * 4), torch.rand(batch, c2, side * 2, side * 2), torch.rand(batch, c3, side, side)]]


def get_init_inputs():
    return [c1, c2, c3, out]
