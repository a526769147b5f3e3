import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.buffer = None

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in F.linear(x, self.qkv.weight, self.qkv.bias).chunk(3, -1))
        w = torch.softmax(q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5, -1)
        h = (w @ v).transpose(1, 2).reshape(b, t, d)
        y = F.linear(h, self.out.weight, self.out.bias)
        if self.buffer is None or self.buffer.shape != y.shape:
            self.buffer = torch.empty_like(y)
        self.buffer.copy_(y)
        return self.buffer
