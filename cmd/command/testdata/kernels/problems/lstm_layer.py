import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_size, 3)

    def forward(self, x, h0, c0):
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1])

batch_size = 4
sequence_length = 12
input_size = 8
hidden_size = 16
num_layers = 2

def get_inputs():
    return [torch.rand(batch_size, sequence_length, input_size), torch.rand(num_layers, batch_size, hidden_size), torch.rand(num_layers, batch_size, hidden_size)]

def get_init_inputs():
    return [input_size, hidden_size, num_layers]
