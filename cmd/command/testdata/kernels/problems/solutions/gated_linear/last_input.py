import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc = nn.Linear(dim, 2 * hidden)

    def forward(self, x):
        return x
