import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.bn = nn.BatchNorm2d(filters)

    def forward(self, x):
        h = self.conv(x)
        h = F.batch_norm(h, None, None, self.bn.weight, self.bn.bias, True)
        return torch.relu(h)
