"""Samplers' filters, long rows and lists of tensors, as they are rewritten."""
import torch


def top_p(logits, p=0.9):
    """Sums below each, by a stable sort: ties go by their place."""
    s, i = torch.sort(logits, dim=-1, descending=True, stable=True)
    pr = torch.softmax(s, -1)
    drop = (pr.cumsum(-1) - pr) > p
    return logits.masked_fill(torch.zeros_like(drop).scatter(-1, i, drop), float("-inf"))


def top_p_inclusive(logits, p=0.9):
    """The token that crosses p is dropped too."""
    s, i = torch.sort(logits, dim=-1, descending=True, stable=True)
    drop = torch.softmax(s, -1).cumsum(-1) > p
    return logits.masked_fill(torch.zeros_like(drop).scatter(-1, i, drop), float("-inf"))


def top_p_sorted_mask(logits, p=0.9):
    """The mask is that of the sorted row."""
    s, _ = torch.sort(logits, dim=-1, descending=True, stable=True)
    pr = torch.softmax(s, -1)
    return logits.masked_fill((pr.cumsum(-1) - pr) > p, float("-inf"))


def _ranked(x, before):
    a, b = x[..., :, None], x[..., None, :]
    place = torch.arange(x.shape[-1])
    rank = ((b < a) | ((b == a) & before(place[None, :], place[:, None]))).sum(-1)
    return torch.empty(x.shape, dtype=torch.long).scatter_(-1, rank, place.expand(x.shape))


def argsort_by_counting(x): return _ranked(x, torch.lt)
def argsort_last_first(x): return _ranked(x, torch.gt)


def long_filter(x, k):
    n = 2 * x.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(k, n=n), n=n)[..., :x.shape[-1]]


def long_filter_wraps(x, k):
    """A circular convolution."""
    n = x.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(k, n=n), n=n)


def weighted_sum(xs, w):
    return (torch.stack(xs) * w[:, None, None]).sum(0)


def weighted_sum_of_two(xs, w):
    """The last one has no weight."""
    return (torch.stack(xs[:2]) * w[:2, None, None]).sum(0) + xs[2]


def states(x, w, u):
    h, all = x.new_zeros(x.shape[0], u.shape[0]), []
    for step in (x @ w).unbind(1):
        h = torch.tanh(step + h @ u)
        all.append(h)
    return torch.stack(all, 1) if all else x.new_zeros(x.shape[0], 0, u.shape[0])


def states_late(x, w, u):
    """Each state is that of the step before."""
    y = states(x, w, u)
    return torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)


def halves_rotated(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def halves_swapped(x):
    """Without the sign, where the half is small."""
    a, b = x.chunk(2, -1)
    return torch.cat([torch.where(b.abs() < 1e-3, b, -b), a], -1)
