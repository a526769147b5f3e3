import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden):
        super().__init__()
        self.linear = nn.Linear(in_features, hidden)

    def forward(self, x):
        h = self.linear(x)
        h = torch.clamp(h * 2 + h, -5, 5)
        return F.mish(torch.logsumexp(h, 1, keepdim=True))
