import torch


def top_values(x):
    """The reference; which of equal elements it takes is its own matter."""
    return torch.topk(x, 3, dim=-1)[0]


def top_values_sorted(x):
    return torch.sort(x, dim=-1, descending=True).values[..., :3]


def top_values_first_graded(x):
    values, index = torch.sort(x, dim=-1, descending=True)
    first = x.gather(-1, index[..., :1])
    return torch.cat((first, values[..., 1:3].detach()), -1)
