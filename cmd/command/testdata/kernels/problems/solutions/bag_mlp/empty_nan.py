import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.fc = nn.Linear(dim, classes)

    def forward(self, ids, offsets):
        n, b = ids.shape[0], offsets.shape[0]
        seg = torch.searchsorted(offsets, torch.arange(n), right=True) - 1
        e = self.bag.weight[ids]
        s = torch.zeros(b, e.shape[1], dtype=e.dtype).index_add(0, seg, e)
        c = torch.bincount(seg, minlength=b)
        return self.fc(torch.relu(s / c[:, None]))
