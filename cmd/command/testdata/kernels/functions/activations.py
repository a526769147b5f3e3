import math

import torch


def gelu(input, approximate="none"):
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (input + 0.044715 * input ** 3)
        return 0.5 * input * (1 + torch.tanh(inner))
    return 0.5 * input * (1 + torch.erf(input * math.sqrt(0.5)))


def gelu_fast(input, approximate="none"):
    inner = math.sqrt(2 / math.pi) * input * (1 + 0.044715 * input * input)
    return 0.5 * input * (1 + torch.tanh(inner))


def silu(input):
    return input * torch.sigmoid(input)


def silu_exp(input):
    e = torch.exp(input)
    return input * e / (1 + e)


def softplus(input, beta=1, threshold=20):
    scaled = input * beta
    soft = torch.log1p(torch.exp(torch.clamp(scaled, max=threshold))) / beta
    return torch.where(scaled > threshold, input, soft)


def softplus_log(input, beta=1, threshold=20):
    return torch.log(1 + torch.exp(input * beta)) / beta


def relu(input):
    return torch.where(input <= 0, torch.zeros_like(input), input)


def relu_where(input):
    return torch.where(input > 0, input, torch.zeros_like(input))


def softsign(input):
    return input / (1 + input.abs())


def softsign_positive(input):
    return input / (1 + input)


def hardswish(input):
    return input * torch.clamp(input + 3, 0, 6) / 6
