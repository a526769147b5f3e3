import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, y):
        h = x + 0.5 * y
        return F.layer_norm(h, h.shape[-1:], self.norm.weight, self.norm.bias)


batch_size = 5
tokens = 6
dim = 24


def get_inputs():
    return [torch.rand(batch_size, tokens, dim), torch.rand(batch_size, tokens, dim)]


def get_init_inputs():
    return [dim]
