import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.inner = nn.Linear(features, 4 * hidden)
        self.state = nn.Linear(hidden, 4 * hidden)

    def forward(self, x, h, c):
        z = F.linear(x, self.inner.weight, self.inner.bias) + F.linear(h, self.state.weight, self.state.bias)
        i, f, g, o = z.chunk(4, -1)
        new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(new)


batch_size = 6
features = 9
hidden = 11


def get_inputs():
    return [torch.rand(batch_size, features), torch.rand(batch_size, hidden), torch.rand(batch_size, hidden)]


def get_init_inputs():
    return [features, hidden]
