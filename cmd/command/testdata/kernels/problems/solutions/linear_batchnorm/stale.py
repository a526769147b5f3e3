import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features)
        self.buffer = None

    def forward(self, x):
        h = self.linear(x)
        h = self.bn(h)
        y = torch.relu(h)
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
