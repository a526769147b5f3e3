import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.bn = nn.BatchNorm2d(filters)

    def forward(self, x):
        h = self.conv(x)
        h = self.bn(h)
        return torch.relu(h)
