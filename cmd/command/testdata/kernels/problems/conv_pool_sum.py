import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        h = self.conv(x)
        h = self.pool(h)
        return h.sum((2, 3))


batch_size = 4
channels = 3
filters = 6
size = 14


def get_inputs():
    return [torch.rand(batch_size, channels, size, size)]


def get_init_inputs():
    return [channels, filters]
