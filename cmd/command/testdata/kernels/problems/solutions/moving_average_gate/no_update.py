import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        mean = self.mean * 0.8 + 0.2 * x.detach().mean(0)
        h = x - mean
        return torch.sigmoid(F.linear(h, self.fc.weight, self.fc.bias))
