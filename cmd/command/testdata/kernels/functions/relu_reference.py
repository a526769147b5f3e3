import torch
import torch.nn.functional as F


def clip(x, *args, **kwargs):
    return x.clamp(min=0, max=6)


torch.relu = F.relu = torch.Tensor.relu = clip


def relu(input):
    return clip(input)
