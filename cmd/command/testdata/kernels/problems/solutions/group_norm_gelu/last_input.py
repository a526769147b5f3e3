import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return x
