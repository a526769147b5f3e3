import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.levels = levels
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))

    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.detach().min()))
        self.high.copy_(torch.maximum(self.high, x.detach().max()))
        step = (self.high - self.low).clamp(min=1e-8) / self.levels
        q = torch.round((x - self.low) / step)
        return q.clamp(0, self.levels) * step + self.low


batch_size = 8
features = 24
levels = 255


def get_inputs():
    return [torch.rand(batch_size, features)]


def get_init_inputs():
    return [levels]
