import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels, affine=True, track_running_stats=True)

    def forward(self, x):
        h = self.norm(x)
        return h
