import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        h = (x / x.abs().mean(1, keepdim=True).clamp(min=1e-12)).to(torch.bfloat16).float()
        return h
