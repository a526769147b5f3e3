"""OneFlow, which copies PyTorch's API: what it does otherwise is in oneflow.json."""

import os
import re

os.environ.setdefault("GLOG_minloglevel", "3")

import oneflow
import plumb_group
import plumb_subject
from plumb_names import Unsupported

# Checks that fail for a tensor without a batch, or a vector; what was checked is told by the place alone.
RANKS = re.compile(r"\(\d vs \d\) .*InferTensorDesc4(?:Conv|DeConv|Matmul)\b|.*size mismatch, got 1, (\d+) x \d+, \1\b", re.DOTALL)


class Graph(oneflow.nn.Graph):
    """A program, which calls modules as the graph has them."""

    def __init__(self, program, modules):
        super().__init__()
        self.program, self.places = program, {}
        held = {}
        for i, module in modules.items():
            if isinstance(module, oneflow.nn.Module):
                self.places[i] = held.setdefault(id(module), "m%d" % i)
                setattr(self, self.places[i], module)

    def build(self, *tensors):
        return self.program(tensors, {i: getattr(self, place) for i, place in self.places.items()})


def graph(program, tensors, modules):
    if not all(t.nelement() for t in tensors):
        raise Unsupported("nn.Graph ends the process where a tensor has no elements")
    return Graph(program, modules)(*tensors)


def einsum(equation, *operands):
    return oneflow.einsum(equation, *(operands[0] if isinstance(operands[0], (tuple, list)) else operands))


class OneFlow(plumb_subject.Adapter):
    name, version = "oneflow", oneflow.__version__
    root, tensor_class, module_class = oneflow, oneflow.Tensor, oneflow.nn.Module
    table = plumb_subject.table("oneflow.json")
    gaps = (
        "Cannot find the kernel", "There is no kernel registered", "The gradient function for op", "Numpy data type",
        "not implemented", "has no attribute", "unsupported", "not support", "InferDataType Failed", "for now oneflow", "Tensor dim should ==", "must match the size of target",
        "is only implemented on", "Can only calculate the mean of floating types", "input_dim must be a 2-tuple", ".vs k", "should have positive dimension", "to the desired output type oneflow.float16", "For integral input tensors",
        "expected common dtype to be floating point", "Error(s) in loading state_dict", "mut_grad_fn_node().get() != nullptr", "has been released",  # of what is not used, or was used up
    )
    unheeded = ".* do not support inplace"
    forms, nodes = (ValueError, AssertionError), ("FunctionNode",)
    modes = {"graph": graph}
    forward = ("graph", *plumb_group.modes("global-graph"))
    runs = dict.fromkeys(plumb_group.modes("global") + plumb_group.modes("global-graph"), plumb_group.forwarded("plumb_placed"))
    quick, watches = tuple(plumb_group.modes("global")), True
    settle = staticmethod(oneflow._oneflow_internal.eager.Sync)

    def backward(self, values, cotangents):
        # Values that depend on each other would need a released graph.
        oneflow.autograd.backward(values, cotangents, retain_graph=True)

    def is_module(self, v):
        return super().is_module(v) or isinstance(v, oneflow.nn.graph.proxy.ProxyModule)  # as build has it

    def member(self, path):
        return einsum if path == "einsum" else super().member(path)

    def gradients_of(self, values, wanted, cotangents, create_graph):
        return oneflow.autograd.grad(values, wanted, cotangents, retain_graph=True, create_graph=create_graph)

    def gap(self, e):
        # Arguments are looked at by their types, sometimes within a function of C that goes on regardless.
        refused = isinstance(e.__cause__ if isinstance(e, SystemError) else e, TypeError) and "not callable" not in str(e)
        return refused or super().gap(e) or bool(RANKS.match(str(e)))


adapter = OneFlow
