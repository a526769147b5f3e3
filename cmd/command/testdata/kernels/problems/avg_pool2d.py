import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 2)


batch_size = 3
channels = 4
side = 18


def get_inputs():
    return [torch.rand(batch_size, channels, side, side)]


def get_init_inputs():
    return []
