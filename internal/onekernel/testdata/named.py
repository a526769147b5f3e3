"""Results whose parts have names."""

from types import SimpleNamespace

import torch


def reference(x):
    return {"mean": x.mean(-1), "sums": [x.sum(-1), {"all": x.sum()}]}


def ordered(x):
    return {"sums": (x.sum(-1), {"all": x.sum()}), "mean": x.mean(-1)}


def another(x):
    return {"mean": x.mean(-1), "sums": [x.sum(-1), {"all": x.sum() + 1}]}


def renamed(x):
    return {"means": x.mean(-1), "sums": [x.sum(-1), {"all": x.sum()}]}


def unnamed(x):
    return SimpleNamespace(mean=x.mean(-1) + 1, sums=[x.sum(-1), {"all": x.sum()}])
