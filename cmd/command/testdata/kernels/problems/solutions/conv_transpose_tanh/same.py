import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=1, padding=1)

    def forward(self, x):
        h = self.conv(x)
        return torch.tanh(h - 0.5)
