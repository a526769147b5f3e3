import torch


def gather_rows(input, index):
    rows = torch.arange(index.shape[0])[:, None].expand_as(index)
    return input[rows, index]


def gather_columns(input, index):
    columns = torch.arange(index.shape[1]).expand_as(index)
    return input[index, columns]


def tril(input, diagonal=0):
    rows = torch.arange(input.shape[-2])[:, None]
    columns = torch.arange(input.shape[-1])[None, :]
    return torch.where(columns - rows <= diagonal, input, torch.zeros_like(input))


def topk(input, k):
    order = torch.sort(input, dim=-1, descending=True, stable=True).indices[..., :k]
    return input.gather(-1, order), order


def topk_padded(input, k, block=32):
    width = input.shape[-1]
    wide = input.new_zeros(*input.shape[:-1], width + -width % block)
    wide[..., :width] = input
    order = torch.sort(wide, dim=-1, descending=True, stable=True).indices[..., :k]
    return wide.gather(-1, order), order
