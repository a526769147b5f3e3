import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, warmup):
        super().__init__()
        self.warmup = warmup
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        return x.clone()
