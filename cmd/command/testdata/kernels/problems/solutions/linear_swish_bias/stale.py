import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.fc = nn.Linear(in_features, out_features)
        self.shift = nn.Parameter(torch.randn(out_features))
        self.buffer = None

    def forward(self, x):
        h = F.linear(x, self.fc.weight, self.fc.bias)
        h = h * torch.sigmoid(h)
        y = h + self.shift
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
