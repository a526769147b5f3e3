import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(features))
        self.register_buffer("power", torch.ones(features))

    def forward(self, x):
        power = self.power * 0.9 + 0.1 * x.detach().square().mean(0)
        h = x * torch.rsqrt(power + 1e-5)
        return F.silu(h * self.gain)
