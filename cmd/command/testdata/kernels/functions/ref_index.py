"""References with integer arguments."""
import torch
import torch.nn.functional as F


def gather_rows(input, index):
    return torch.gather(input, 1, index)


def lookup(table, ids):
    return F.embedding(ids, table)


def scatter_rows(x, index, out_rows: int = 8):
    return torch.zeros(out_rows, x.shape[1], dtype=x.dtype).index_add(0, index, x)


def index_add(input, index, source):
    return torch.index_add(input, 0, index, source)
