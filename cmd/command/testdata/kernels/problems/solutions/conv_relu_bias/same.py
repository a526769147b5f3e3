import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3)
        self.shift = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x):
        h = torch.relu(F.conv2d(x, self.conv.weight, self.conv.bias))
        return h + self.shift
