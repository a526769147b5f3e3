import torch


def _apply(x, mean, var, weight, bias, eps):
    shape = (1, x.shape[1]) + (1,) * (x.dim() - 2)
    y = (x - mean.reshape(shape)) * torch.rsqrt(var.reshape(shape) + eps)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _moments(x):
    dims = [d for d in range(x.dim()) if d != 1]
    count = x.numel() // x.shape[1]
    if count == 1:
        raise ValueError("Expected more than 1 value per channel when training")
    mean = x.mean(dims)
    shape = (1, x.shape[1]) + (1,) * (x.dim() - 2)
    return mean, (x - mean.reshape(shape)).square().mean(dims), count


def batch_norm(input, running_mean, running_var, weight=None, bias=None,
               training=False, momentum=0.1, eps=1e-5):
    if not training:
        return _apply(input, running_mean, running_var, weight, bias, eps)
    mean, var, count = _moments(input)
    if running_mean is not None:
        with torch.no_grad():
            running_mean.mul_(1 - momentum).add_(momentum * mean)
            running_var.mul_(1 - momentum).add_(momentum * var * (count / (count - 1)))
    return _apply(input, mean, var, weight, bias, eps)


def batch_norm_train(input, running_mean, running_var, weight=None, bias=None,
                     training=False, momentum=0.1, eps=1e-5):
    if not training:
        return _apply(input, running_mean, running_var, weight, bias, eps)
    mean, var, _ = _moments(input)
    if running_mean is not None:
        with torch.no_grad():
            running_mean.mul_(1 - momentum).add_(momentum * mean)
            running_var.mul_(1 - momentum).add_(momentum * var)
    return _apply(input, mean, var, weight, bias, eps)
