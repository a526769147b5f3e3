import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm1d(channels, affine=True, track_running_stats=True)

    def forward(self, x):
        h = self.norm(x)
        return h


batch_size = 4
channels = 6
length = 18


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return [channels]
