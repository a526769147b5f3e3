import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        h = torch.softmax(x, 1)
        return h


batch_size = 8
dim = 96


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
