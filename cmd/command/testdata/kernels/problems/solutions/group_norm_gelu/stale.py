import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.norm = nn.GroupNorm(groups, channels)
        self.buffer = None

    def forward(self, x):
        h = F.group_norm(x, self.groups, self.norm.weight, self.norm.bias)
        y = F.gelu(h)
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
