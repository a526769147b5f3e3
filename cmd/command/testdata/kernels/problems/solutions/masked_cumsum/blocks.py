import torch
import torch.nn as nn

BLOCK = 1024


class ModelNew(nn.Module):
    """Each block begins with what all before it came to."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x, mask):
        parts, carry = [], 0
        for block in torch.split(x * mask, BLOCK, self.dim):
            parts.append(block.cumsum(self.dim) + carry)
            carry = carry + block.sum(self.dim, keepdim=True)
        return torch.cat(parts, self.dim)
