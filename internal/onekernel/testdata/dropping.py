"""A norm before a dropout, in training."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, momentum=0.3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(self.norm(x)))


channels = 4


def get_inputs():
    return [torch.randn(6, channels)]


def get_init_inputs():
    return [channels]
