import torch


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dims = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    y = centred * torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def layer_norm_onepass(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dims = tuple(range(-len(normalized_shape), 0))
    mean = input.mean(dims, keepdim=True)
    var = input.square().mean(dims, keepdim=True) - mean.square()
    y = (input - mean) * torch.rsqrt(var.clamp(min=0) + eps)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def layer_norm_std(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dims = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    y = centred / (centred.square().mean(dims, keepdim=True).sqrt() + eps)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def layer_norm_var(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    dims = tuple(range(-len(normalized_shape), 0))
    mean = input.mean(dims, keepdim=True)
    y = (input - mean) / torch.sqrt(input.var(dims, keepdim=True) + eps)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def rms_norm(x, weight, eps=1e-6):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rms_norm_no_eps(x, weight):
    return x / x.square().mean(-1, keepdim=True).sqrt() * weight
