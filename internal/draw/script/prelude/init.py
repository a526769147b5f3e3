# torch.nn.init in calls that programs record. The engine of test files runs
# this file; the bounds and deviations are those of PyTorch 1.13.
import math

import numpy as np
import torch


def calculate_gain(nonlinearity, param=None):
    if nonlinearity in ["linear", "sigmoid"] or nonlinearity.startswith("conv"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope * slope))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError("Unsupported nonlinearity " + str(nonlinearity))


def _fans(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = 1
    for size in tensor.shape[2:]:
        field *= size
    return tensor.shape[1] * field, tensor.shape[0] * field


def _kaiming_deviation(tensor, a, mode, nonlinearity):
    mode = mode.lower()
    if mode not in ["fan_in", "fan_out"]:
        raise ValueError("Mode " + mode + " not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _fans(tensor)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan_in if mode == "fan_in" else fan_out)


def constant_(tensor, val):
    with torch.no_grad():
        return tensor.fill_(val)


def zeros_(tensor):
    with torch.no_grad():
        return tensor.zero_()


def ones_(tensor):
    return constant_(tensor, 1.0)


def eye_(tensor):
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        return tensor.copy_(torch.eye(tensor.shape[0], tensor.shape[1]))


def dirac_(tensor, groups=1):
    if tensor.dim() not in [3, 4, 5]:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.shape
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    out = sizes[0] // groups
    with torch.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(out, sizes[1])):
                tensor[tuple([g * out + d, d] + [size // 2 for size in sizes[2:]])] = 1
    return tensor


def uniform_(tensor, a=0.0, b=1.0):
    with torch.no_grad():
        return tensor.uniform_(a, b)


def normal_(tensor, mean=0.0, std=1.0):
    with torch.no_grad():
        return tensor.normal_(mean, std)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    low = math.erf((a - mean) / std / math.sqrt(2.0))
    high = math.erf((b - mean) / std / math.sqrt(2.0))
    with torch.no_grad():
        tensor.uniform_(low, high)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0))
        tensor.add_(mean)
        return tensor.clamp_(min=a, max=b)


def xavier_uniform_(tensor, gain=1.0):
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain=1.0):
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity))


def orthogonal_(tensor, gain=1.0):
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    few, many = min(rows, columns), max(rows, columns)
    if few * many <= 4096:  # data of the program, as what other functions draw
        basis = np.random.randn(few, many)
        for i in range(few):
            for _ in range(2 if i > 0 else 0):
                basis[i] = basis[i] - np.matmul(np.matmul(basis[:i], basis[i]), basis[:i])
            basis[i] = basis[i] / np.sqrt(np.sum(basis[i] * basis[i]))
        q = torch.tensor(basis, dtype=tensor.dtype)
    else:
        q, r = torch.linalg.qr(torch.empty(many, few, dtype=tensor.dtype).normal_())
        q = (q * torch.diag(r).sign()).t()
    if rows > columns:
        q = q.t()
    with torch.no_grad():
        tensor.copy_(q.reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor, sparsity, std=0.01):
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape[0], tensor.shape[1]
    zeros = int(math.ceil(sparsity * rows))
    with torch.no_grad():
        tensor.normal_(0, std)
        for column in range(columns):
            tensor[torch.randperm(rows)[:zeros], column] = 0
    return tensor
