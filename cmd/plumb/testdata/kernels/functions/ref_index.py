"""References with integer arguments."""
import torch
import torch.nn.functional as F


def gather_rows(input, index):
    return torch.gather(input, 1, index)


def lookup(table, ids):
    return F.embedding(ids, table)


def scatter_rows(x, index, out_rows: int = 8):
    return torch.zeros(out_rows, x.shape[1], dtype=x.dtype).index_add(0, index, x)


def topk4(x):
    return torch.topk(x, min(4, x.shape[-1]), -1).values


def histogram(ids):
    return torch.bincount(ids, minlength=16).to(torch.float32)
