import torch
import torch.nn.functional as F


def binary_cross_entropy_with_logits(input, target):
    return ((1 - target) * input - F.logsigmoid(input)).mean()


def bce_with_logits_clamped(input, target):
    loss = input.clamp(min=0) - input * target + torch.log1p(torch.exp(-input.abs()))
    return loss.mean()


def bce_from_sigmoid(input, target):
    p = torch.sigmoid(input)
    return -(target * torch.log(p) + (1 - target) * torch.log(1 - p)).mean()
