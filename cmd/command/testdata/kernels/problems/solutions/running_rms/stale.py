import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(features))
        self.register_buffer("power", torch.ones(features))
        self.buffer = None

    def forward(self, x):
        self.power.mul_(0.9).add_(x.detach().square().mean(0), alpha=0.1)
        h = x * torch.rsqrt(self.power + 1e-5)
        y = F.silu(h * self.gain)
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
