"""PyTorch as if it had an interface of its own, with its tape and changes in place."""

import functools
import os
import threading

import plumb_group
import plumb_subject
import torch
from plumb_graphs import Graphed
from plumb_targets import Targets


def refuse(program, tensors, modules):
    raise RuntimeError("In code:\n\n    no such program")


def grad(adapter, outputs, inputs, grad_outputs=None):
    return torch.autograd.grad(outputs, inputs, grad_outputs)


class TorchTape(plumb_subject.Adapter):
    name, version = "torch", torch.__version__
    thread = None
    root, tensor_class = torch, torch.Tensor
    own = watches = True
    modes = {
        "once": lambda program, tensors, modules: program(tensors, modules),
        "wrong": lambda program, tensors, modules: [2 * t for t in program(tensors, modules)],
        "refused": refuse,
    }
    runs = {"ranks": plumb_group.forwarded("plumb_torchtape")}
    forms = (ValueError,)
    calls = {"torch.autograd.grad": grad}
    table = {
        "add": "add(*self.alike(input, other))",
        "exp": "exp(input)",
        "mv": "mv(input, vec)",
        "linear": "nn.functional.linear(input, weight, bias)",
        "einsum": "einsum(equation, *operands)",
        "embedding": "nn.functional.embedding(input, weight, padding_idx, max_norm)",
        "embedding.renorm": "nn.functional.embedding(input, weight, padding_idx, max_norm)",
        "uniform": "Tensor.uniform_(input, from_, to)",
        "max.dim": "(max(input, dim, keepdim)[0], argmax(input, dim, keepdim))",
        "relu": "self.copied(input)",
        "threshold": "nn.functional.threshold(input, threshold, value)",
        "eq": "self.equal(input, other)",
        "zero": "Tensor.zero_(input)",
        "fill": "fill_(input, value)",
        "binary_cross_entropy": "nn.functional.binary_cross_entropy(input, target, weight, reduction=reduction)",
        "unsqueeze": "unsqueeze(input, dim)",
        "neg": "self.refused(input)",
        "abs": "self.kinked(input)",
        "float": "input.to(float32)",
        "tan": "self.abandoned(input)",
        "setitem": "self.setitem_(input, index, value)",
    }

    def cast(self, t, dtype):
        return t.to(self.dtype(dtype))

    def device(self, name):
        return name

    def copied(self, t):
        return torch.relu(t)

    def equal_(self, t, other):
        t.data = t == other
        return t

    def setitem_(self, t, index, v):
        t[index] = v

    def refused(self, t):
        if t.requires_grad:
            return Refusing.apply(t)
        raise ValueError("no such form")

    def abandoned(self, t):
        self.thread = threading.Timer(0.2, os.abort)
        self.thread.start()
        raise RuntimeError("what was begun goes on")

    def settle(self):
        if self.thread is not None:
            self.thread.join()

    def kinked(self, t):
        return Kinked.apply(t)


class Kinked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t.abs()

    @staticmethod
    def backward(ctx, g):
        raise NotImplementedError("no gradient of abs")


class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return -t

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no such form")


class OfRank(Graphed):
    """One case on a rank, which knows of no others."""

    rank, sums = 0, ()

    def store(self, t):
        return ["x", "of another rank"] if self.rank else super().store(t)


def ranked(rank, hierarchy):
    OfRank.rank = rank
    tape = TorchTape()
    tape.arrays, tape.encode, tape.decode  # imported while the files are there
    return functools.partial(OfRank, tape, Targets(tape))


adapter = TorchTape
