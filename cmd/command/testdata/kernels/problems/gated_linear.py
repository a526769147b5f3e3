import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc = nn.Linear(dim, 2 * hidden)

    def forward(self, x):
        a, b = F.linear(x, self.fc.weight, self.fc.bias).chunk(2, -1)
        return F.silu(a) * b


batch_size = 8
dim = 18
hidden = 20


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return [dim, hidden]
