import torch
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, p, t):
        return (1 - torch.where(t > 0, p, -p)).clamp_min(0).mean()
