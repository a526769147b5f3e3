import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, channels, reduced):
        super().__init__()
        self.down = nn.Linear(channels, reduced)
        self.up = nn.Linear(reduced, channels)

    def forward(self, x):
        s = x.mean(dim=(2, 3))
        s = torch.relu(F.linear(s, self.down.weight, self.down.bias))
        s = torch.sigmoid(F.linear(s, self.up.weight, self.up.bias))
        return x * s[:, :, None, None]
