import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale
        self.buffer = None

    def forward(self, x):
        h = self.linear(x)
        y = F.gelu(h) * self.scale
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
