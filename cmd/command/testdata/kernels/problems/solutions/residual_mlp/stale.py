import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.norm = nn.LayerNorm(dim)
        self.buffer = None

    def forward(self, x):
        h = torch.relu(F.linear(x, self.up.weight, self.up.bias))
        h = F.linear(h, self.down.weight, self.down.bias)
        y = F.layer_norm(x + h, h.shape[-1:], self.norm.weight, self.norm.bias)
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
