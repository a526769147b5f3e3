import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        h = F.group_norm(x, self.groups, self.norm.weight, self.norm.bias)
        return F.gelu(h)


batch_size = 3
channels = 12
groups = 4
length = 15


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return [groups, channels]
