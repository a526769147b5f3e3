import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool1d(x, 3, stride=2, padding=1)


batch_size = 4
channels = 5
length = 34


def get_inputs():
    return [torch.rand(batch_size, channels, length)]


def get_init_inputs():
    return []
