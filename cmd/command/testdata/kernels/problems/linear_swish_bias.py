import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.fc = nn.Linear(in_features, out_features)
        self.shift = nn.Parameter(torch.randn(out_features))

    def forward(self, x):
        h = F.linear(x, self.fc.weight, self.fc.bias)
        h = h * torch.sigmoid(h)
        return h + self.shift


batch_size = 10
in_features = 22
out_features = 12


def get_inputs():
    return [torch.rand(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
