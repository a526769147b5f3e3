import torch
import torch.nn.functional as F


def conv_batchnorm(x, w, b, weight, bias, mean, var):
    return F.batch_norm(F.conv2d(x, w, b), mean.detach(), var.detach(), weight, bias, False, 0.1, 1e-5)


def matmul(a, b):
    return a @ b


def gate(x, y):
    return torch.sigmoid(x) * y + torch.tanh(y)


def concat_scale(x, y, w):
    return torch.cat([x, y], 1) * w


def column_sums(x):
    return x.sum(0)


def row_lengths(x):
    return x.abs().sum(-1)


def scaled_gate(x, g, s):
    return x * torch.sigmoid(g) * s


def ranks(x):
    return torch.argsort(x, dim=-1, stable=True)


def pooled(x, w):
    a = torch.softmax(x @ w, dim=1)
    return (a[..., None] * x).sum(1)


def divergence(logp, logq):
    return torch.nn.functional.kl_div(logp, logq.detach(), reduction="batchmean", log_target=True)
