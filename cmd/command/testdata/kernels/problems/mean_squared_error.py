import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return (a - b).square().mean()


batch_size = 10
dim = 26


def get_inputs():
    return [torch.rand(batch_size, dim), torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
