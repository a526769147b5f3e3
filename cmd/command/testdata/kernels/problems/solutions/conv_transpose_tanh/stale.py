import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=1, padding=1)
        self.buffer = None

    def forward(self, x):
        h = self.conv(x)
        y = torch.tanh(h - 0.5)
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
