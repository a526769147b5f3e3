import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels, affine=True, track_running_stats=True)

    def forward(self, x):
        h = F.instance_norm(x, None, None, self.norm.weight, self.norm.bias, True)
        return h
