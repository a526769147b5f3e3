import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        h = torch.relu(x)
        return h
