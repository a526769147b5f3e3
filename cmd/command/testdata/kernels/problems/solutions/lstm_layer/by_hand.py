import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_size, 3)
        self.n = num_layers

    def forward(self, x, h0, c0):
        seq = x
        for l in range(self.n):
            wi, wh = getattr(self.lstm, f"weight_ih_l{l}"), getattr(self.lstm, f"weight_hh_l{l}")
            b = getattr(self.lstm, f"bias_ih_l{l}") + getattr(self.lstm, f"bias_hh_l{l}")
            pre = seq @ wi.t() + b
            h, c = h0[l], c0[l]
            outs = []
            for t in range(seq.shape[1]):
                i, f, g, o = (pre[:, t] + h @ wh.t()).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                outs.append(h)
            seq = torch.stack(outs, 1)
        return self.fc(seq[:, -1])
