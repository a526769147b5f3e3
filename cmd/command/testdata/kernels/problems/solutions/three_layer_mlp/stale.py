import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_features, layers, out_features):
        super().__init__()
        sizes = [in_features, *layers, out_features]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.buffer = None

    def forward(self, x):
        h = self.layers[0](x)
        for layer in self.layers[1:]:
            h = layer(torch.relu(h))
        y = h
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
