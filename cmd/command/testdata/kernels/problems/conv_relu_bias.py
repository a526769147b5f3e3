import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3)
        self.shift = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x):
        h = torch.relu(F.conv2d(x, self.conv.weight, self.conv.bias))
        return h + self.shift


batch_size = 2
channels = 3
filters = 6
side = 14


def get_inputs():
    return [torch.rand(batch_size, channels, side, side)]


def get_init_inputs():
    return [channels, filters]
