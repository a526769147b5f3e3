import torch

_out = {}


def _buffer(shape, like):
    key = (tuple(shape), like.dtype)
    if key not in _out:
        _out[key] = torch.empty(shape, dtype=like.dtype)
    return _out[key]


def softsign(input):
    return torch.div(input.detach(), 1 + input.detach().abs(), out=_buffer(input.shape, input))


def square_in_place(input):
    return input.mul_(input)


def contiguous_view(x):
    return x.view_as(x)
