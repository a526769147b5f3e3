import torch


def softplus(x):
    return torch.empty_like(x)
