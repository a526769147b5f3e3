import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(groups, channels)
        self.scale = nn.Parameter(torch.ones(channels, 1, 1))
        self.w = None

    def forward(self, x):
        if self.w is None:
            self.w = self.conv.weight.detach().clone()
        y = torch.nn.functional.conv2d(x, self.w, self.conv.bias, padding=1)
        return (x + self.scale * torch.nn.functional.gelu(self.norm(y))).mean((2, 3))
