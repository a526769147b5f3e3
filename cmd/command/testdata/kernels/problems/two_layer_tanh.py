import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.first = nn.Linear(dim, hidden)
        self.second = nn.Linear(hidden, classes)

    def forward(self, x):
        h = torch.tanh(F.linear(x, self.first.weight, self.first.bias))
        return F.linear(h, self.second.weight, self.second.bias)


batch_size = 9
dim = 16
hidden = 22
classes = 7


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return [dim, hidden, classes]
