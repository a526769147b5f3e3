"""A sum along a dimension that the file names."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumsum(x, dim=self.dim)


batch = 4
dim1, dim2 = 8, 12
dim = 1


def get_inputs():
    return [torch.randn(batch, dim1, dim2)]


def get_init_inputs():
    return [dim]
