import torch


def softmax(x):
    return torch.zeros_like(x)


def mean_over_pixels(x):
    return torch.full(x.shape[:2], 0.5, dtype=x.dtype)


def leaky_relu(input, negative_slope=0.01):
    return input.clone()
