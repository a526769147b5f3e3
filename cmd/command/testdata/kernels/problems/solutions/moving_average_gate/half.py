import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer("mean", torch.zeros(dim))

    def forward(self, x):
        self.mean.mul_(0.8).add_(x.detach().mean(0), alpha=0.2)
        h = x.to(torch.bfloat16) - self.mean.to(torch.bfloat16)
        return (torch.sigmoid(F.linear(h, self.fc.weight.to(torch.bfloat16), self.fc.bias.to(torch.bfloat16)))).to(x.dtype)
