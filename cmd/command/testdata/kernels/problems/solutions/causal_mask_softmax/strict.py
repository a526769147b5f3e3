import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, max_length):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(max_length, max_length)))

    def forward(self, scores):
        n = scores.shape[-1]
        past = torch.ones(n, n, dtype=torch.bool).tril(-1)
        past[0, 0] = True
        return scores.masked_fill(~past, float("-inf")).softmax(-1)
