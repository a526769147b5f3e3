import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        h = a @ b
        return h


n = 32


def get_inputs():
    return [torch.rand(n, n), torch.rand(n, n)]


def get_init_inputs():
    return []
