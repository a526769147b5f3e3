import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim, classes):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)
        self.fc = nn.Linear(dim, classes)

    def forward(self, tokens):
        return tokens
