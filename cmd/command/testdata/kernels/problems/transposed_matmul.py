import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a.t() @ b


m = 22
k = 20
n = 16


def get_inputs():
    return [torch.rand(k, m), torch.rand(k, n)]


def get_init_inputs():
    return []
