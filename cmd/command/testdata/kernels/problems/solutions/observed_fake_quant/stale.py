import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.levels = levels
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))
        self.buffer = None

    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.detach().min()))
        self.high.copy_(torch.maximum(self.high, x.detach().max()))
        step = (self.high - self.low).clamp(min=1e-8) / self.levels
        q = torch.round((x - self.low) / step)
        y = q.clamp(0, self.levels) * step + self.low
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
