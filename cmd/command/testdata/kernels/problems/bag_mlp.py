import torch
import torch.nn as nn


class Model(nn.Module):
    """Bags of ids with offsets, then a layer."""

    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.fc = nn.Linear(dim, classes)

    def forward(self, ids, offsets):
        return self.fc(torch.relu(self.bag(ids, offsets)))


vocab = 1000
dim = 32
classes = 10
bags = 16
length = 100


def get_inputs():
    off = torch.sort(torch.randint(0, length, (bags,))).values
    off[0] = 0
    return [torch.randint(0, vocab, (length,)), off]


def get_init_inputs():
    return [vocab, dim, classes]
