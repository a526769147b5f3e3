import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cumprod(1 + 0.1 * x, dim=1)
