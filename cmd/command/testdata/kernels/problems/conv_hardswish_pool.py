import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        h = F.hardswish(F.conv2d(x, self.conv.weight, self.conv.bias, padding=1))
        return F.max_pool2d(h, 2)


batch_size = 2
channels = 3
filters = 5
side = 12


def get_inputs():
    return [torch.rand(batch_size, channels, side, side)]


def get_init_inputs():
    return [channels, filters]
