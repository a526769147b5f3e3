import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, batch, channels, filters):
        super().__init__()
        self.conv = nn.Conv1d(channels, filters, 3)
        self.register_buffer("past", torch.zeros(batch, channels, 2))

    def forward(self, x):
        wide = torch.cat([self.past, x], 2)
        self.past.copy_(wide[:, :, -2:].detach())
        h = self.conv(wide)
        return F.softplus(h)
