import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, scores, targets):
        return torch.clamp(1 - scores * targets, min=0).mean()


batch_size = 40


def get_inputs():
    return [torch.rand(batch_size), torch.randint(0, 2, (batch_size,)).float() * 2 - 1]


def get_init_inputs():
    return []
