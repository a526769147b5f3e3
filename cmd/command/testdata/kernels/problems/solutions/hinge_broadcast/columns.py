import torch
import torch.nn as nn

class ModelNew(nn.Module):
    """A target a row, in place of a column."""
    def forward(self, p, t):
        return (1 - p * t[:, None]).clamp_min(0).mean()
