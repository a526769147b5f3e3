import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.bn = nn.BatchNorm1d(out_features)

    def forward(self, x):
        h = self.linear(x)
        h = F.batch_norm(h, None, None, self.bn.weight, self.bn.bias, True)
        return torch.relu(h)
