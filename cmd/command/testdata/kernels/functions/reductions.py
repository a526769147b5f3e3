import torch


def sum_int(input):
    return input.sum(dtype=input.dtype)


def var(input, dim, unbiased=True, keepdim=False):
    mean = input.mean(dim, keepdim=True)
    n = input.shape[dim] - (1 if unbiased else 0)
    return (input - mean).square().sum(dim, keepdim=keepdim) / max(n, 0)


def var_moments(input, dim, unbiased=True, keepdim=False):
    n = input.shape[dim]
    mean = input.mean(dim, keepdim=keepdim)
    biased = input.square().mean(dim, keepdim=keepdim) - mean.square()
    return biased * n / (n - 1) if unbiased else biased


def logsumexp(input, dim, keepdim=False):
    top = input.amax(dim, keepdim=True).detach()
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    total = torch.exp(input - top).sum(dim, keepdim=True).log() + top
    return total if keepdim else total.squeeze(dim)


def logsumexp_shifted(input, dim, keepdim=False):
    top = input.amax(dim, keepdim=True)
    total = torch.exp(input - top).sum(dim, keepdim=True).log() + top
    return total if keepdim else total.squeeze(dim)


def argmax(x):
    best = x[:, 0].clone()
    where = torch.zeros(x.shape[0], dtype=torch.long)
    for j in range(1, x.shape[1]):
        newer = (x[:, j] > best) | (torch.isnan(x[:, j]) & ~torch.isnan(best))
        best = torch.where(newer, x[:, j], best)
        where[newer] = j
    return where


def argmax_scan(x):
    best = x[:, 0].clone()
    where = torch.zeros(x.shape[0], dtype=torch.long)
    for j in range(1, x.shape[1]):
        newer = (x[:, j] >= best) | torch.isnan(x[:, j])
        best = torch.where(newer, x[:, j], best)
        where[newer] = j
    return where


def mean_keep(input, dim, keepdim=False):
    return input.sum(dim, keepdim=keepdim) / input.shape[dim]
