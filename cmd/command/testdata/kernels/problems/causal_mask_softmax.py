import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, max_length):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(max_length, max_length)))

    def forward(self, scores):
        n = scores.shape[-1]
        return scores.masked_fill(self.mask[:n, :n] == 0, float("-inf")).softmax(-1)


batch_size = 3
max_length = 32
length = 12


def get_inputs():
    return [torch.rand(batch_size, length, length)]


def get_init_inputs():
    return [max_length]
