import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, y):
        h = x + 0.5 * y
        return F.layer_norm(h, h.shape[-1:], self.norm.weight, self.norm.bias)
