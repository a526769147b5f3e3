import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        h = self.norm(x)
        return h


batch_size = 4
length = 10
features = 24


def get_inputs():
    return [torch.rand(batch_size, length, features)]


def get_init_inputs():
    return [features]
