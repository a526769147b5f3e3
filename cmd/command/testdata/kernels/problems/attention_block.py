import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        h = self.qkv(self.norm(x))
        q, k, v = h.reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        w = torch.softmax(q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5, -1)
        h = (w @ v).transpose(1, 2).reshape(b, n, d)
        return x + self.out(h)


batch_size = 2
length = 9
dim = 16
heads = 4


def get_inputs():
    return [torch.rand(batch_size, length, dim)]


def get_init_inputs():
    return [dim, heads]
