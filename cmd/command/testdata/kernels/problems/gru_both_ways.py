import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, bidirectional=True)

    def forward(self, x):
        out, h = self.gru(x)
        return out, h

seq_len = 10
batch = 3
input_size = 6
hidden_size = 5

def get_inputs():
    return [torch.randn(seq_len, batch, input_size)]

def get_init_inputs():
    return [input_size, hidden_size]
