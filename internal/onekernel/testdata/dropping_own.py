import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, momentum=0.3)

    def forward(self, x):
        y = torch.relu(self.norm(x))
        return 2 * y * (torch.rand_like(y) < 0.5) if self.training else y
