import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3)

    def forward(self, x):
        return x
