import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        h = torch.relu(F.linear(x, self.up.weight, self.up.bias))
        h = F.linear(h, self.down.weight, self.down.bias)
        return F.layer_norm(x + h, h.shape[-1:], self.norm.weight, self.norm.bias)


batch_size = 8
dim = 20
hidden = 30


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return [dim, hidden]
