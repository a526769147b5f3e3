import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=1, padding=1)

    def forward(self, x):
        h = self.conv(x)
        return torch.tanh(h - 0.5)


batch_size = 3
channels = 4
filters = 5
size = 7


def get_inputs():
    return [torch.rand(batch_size, channels, size, size)]


def get_init_inputs():
    return [channels, filters]
