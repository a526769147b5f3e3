import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        self.mean.mul_(0.8).add_(x.detach().mean(0), alpha=0.2)
        h = x - self.mean
        return torch.sigmoid(F.linear(h, self.fc.weight, self.fc.bias))


batch_size = 8
dim = 14


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return [dim]
