import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, dim, codes, decay):
        super().__init__()
        self.book = nn.Parameter(torch.rand(codes, dim))
        self.decay = decay
        self.register_buffer("usage", torch.zeros(codes))

    def forward(self, x):
        gap = (x[:, None, :] - self.book[None]).to(torch.bfloat16).float()
        x = x.to(torch.bfloat16).float()
        nearest = gap.square().sum(-1).argmin(-1)
        counts = F.one_hot(nearest, self.book.shape[0]).sum(0).to(self.usage.dtype)
        self.usage.mul_(self.decay).add_(counts, alpha=1 - self.decay)
        return self.book[nearest] - x
