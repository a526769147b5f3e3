import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.bn = nn.BatchNorm2d(filters)

    def forward(self, x):
        h = self.conv(x)
        h = self.bn(h)
        return torch.relu(h)


batch_size = 4
channels = 3
filters = 8
height, width = 12, 10


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
