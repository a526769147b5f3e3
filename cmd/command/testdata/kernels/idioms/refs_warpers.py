"""References that change what they have made in place, and one of a list of tensors."""
import torch
import torch.nn.functional as F


def top_p(logits, p=0.9):
    """As Hugging Face's warper has it: the first token beyond p stays."""
    s, i = torch.sort(logits, descending=True)
    drop = torch.softmax(s, -1).cumsum(-1) > p
    drop[..., 1:] = drop[..., :-1].clone()
    drop[..., 0] = False
    return logits.masked_fill(drop.scatter(-1, i, drop), float("-inf"))


def argsort_rows(x):
    return torch.argsort(x, dim=-1, stable=True)


def long_filter(x, k):
    """x [B,L], k [L]: each output sees what came before."""
    n = x.shape[-1]
    return F.conv1d(F.pad(x, (n - 1, 0))[:, None], k.flip(0)[None, None])[:, 0]


def states(x, w, u):
    h = torch.zeros(x.shape[0], u.shape[0], dtype=x.dtype)
    out = torch.empty(x.shape[0], x.shape[1], u.shape[0], dtype=x.dtype)
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] @ w + h @ u)
        out[:, t] = h
    return out


def halves_rotated(x):
    half = x.shape[-1] // 2
    y = torch.empty_like(x)
    y[..., :half] = -x[..., half:]
    y[..., half:] = x[..., :half]
    return y
