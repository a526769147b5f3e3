"""Searches that count, which are those of a sorted row alone."""
import torch


def buckets(x, edges):
    return (x[..., None] > edges).sum(-1)


def buckets_right(x, edges):
    """A number on an edge is above it."""
    return (x[..., None] >= edges).sum(-1)


def interpolated(x, xp, fp):
    i = torch.clamp((x[..., None] > xp).sum(-1) - 1, 0, xp.shape[0] - 2)
    return torch.lerp(fp[i], fp[i + 1], (x - xp[i]) / (xp[i + 1] - xp[i]))


def interpolated_flat(x, xp, fp):
    """Level beyond the ends."""
    return interpolated(torch.minimum(torch.maximum(x, xp[:1]), xp[-1:]), xp, fp)
