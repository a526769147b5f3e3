import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, batch, channels, filters):
        super().__init__()
        self.conv = nn.Conv1d(channels, filters, 3)
        self.register_buffer("past", torch.zeros(batch, channels, 2))

    def forward(self, x):
        wide = torch.cat([self.past, x], 2)
        self.past.copy_(wide[:, :, -2:].detach())
        h = self.conv(wide)
        return F.softplus(h)


batch_size = 4
channels = 5
filters = 7
chunk = 16


def get_inputs():
    return [torch.rand(batch_size, channels, chunk)]


def get_init_inputs():
    return [batch_size, channels, filters]
