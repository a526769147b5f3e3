import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.down = nn.Linear(channels, reduced)
        self.up = nn.Linear(reduced, channels)
        self.buffer = None

    def forward(self, x):
        s = x.mean(dim=(2, 3))
        s = torch.relu(F.linear(s, self.down.weight, self.down.bias))
        s = torch.sigmoid(F.linear(s, self.up.weight, self.up.bias))
        y = x * s[:, :, None, None]
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
