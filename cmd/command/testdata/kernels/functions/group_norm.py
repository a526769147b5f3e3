import torch


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    n, c = input.shape[:2]
    g = input.reshape(n, num_groups, -1)
    centred = g - g.mean(-1, keepdim=True)
    y = (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)).reshape(input.shape)
    shape = (1, c) + (1,) * (input.dim() - 2)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def group_norm_channels_inner(input, num_groups, weight=None, bias=None, eps=1e-5):
    n, c = input.shape[:2]
    g = input.reshape(n, c // num_groups, num_groups, -1)
    centred = g - g.mean((1, 3), keepdim=True)
    var = centred.square().mean((1, 3), keepdim=True)
    y = (centred * torch.rsqrt(var + eps)).reshape(input.shape)
    shape = (1, c) + (1,) * (input.dim() - 2)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    size = torch.linalg.vector_norm(input, p, dim, keepdim=True)
    return input / size.clamp(min=eps)


def normalize_plus_eps(input, p=2.0, dim=1, eps=1e-12):
    return input / (torch.linalg.vector_norm(input, p, dim, keepdim=True) + 1e-6)
