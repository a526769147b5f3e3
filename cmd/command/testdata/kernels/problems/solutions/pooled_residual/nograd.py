import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(groups, channels)
        self.scale = nn.Parameter(torch.ones(channels, 1, 1))

    @torch.no_grad()
    def forward(self, x):
        return (x + self.scale * torch.nn.functional.gelu(self.norm(self.conv(x)))).mean((2, 3))
