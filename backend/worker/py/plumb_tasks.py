"""GPU MODE's form: a folder with generate_input and ref_kernel, and a submission with custom_kernel."""

import base64
import importlib.machinery
import os
import sys

import plumb_forms
import plumb_triton
import torch
from plumb_names import Refusal
from plumb_problems import encoded

POISON = b"\x7e"  # what malloc fills new memory with under MALLOC_PERTURB_=129


class Moved(importlib.machinery.SourceFileLoader):
    """A module whose tensors lie on the CPU."""

    def source_to_code(self, data, path, *, _optimization=-1):
        return plumb_forms.on_cpu(data, path)


class Folder:
    """Finds the modules of a task's folder, before any others of their names."""

    def __init__(self, path):
        self.files = importlib.machinery.FileFinder(path, (Moved, [".py"]))

    def find_spec(self, name, path=None, target=None):
        return None if path else self.files.find_spec(name, target)


class Task:
    """A call of a task is one of the tensors in the data; all else that the data hold is told with their shape."""

    owns_results = False

    def __init__(self, spec):
        self.on_trial, path = spec["role"] == "candidate", os.path.realpath(spec["file"])
        sys.meta_path.insert(0, Folder(os.path.dirname(path)))
        if not self.on_trial:
            plumb_triton.stand_in()
        self.module, self.data = plumb_forms.module_of(path), None
        for name in ("custom_kernel",) if self.on_trial else ("ref_kernel", "generate_input"):
            if not callable(getattr(self.module, name, None)):
                raise AttributeError("%s has no function %s" % (os.path.basename(path), name))
        self.f = self.module.custom_kernel if self.on_trial else self.module.ref_kernel

    def describe(self):
        return {} if self.on_trial else {"parameters": plumb_forms.parameters(self.module.generate_input)}

    def shape(self, told):
        if self.on_trial:
            self.data = told["data"]
            return {}
        found = []
        self.data = outline(self.module.generate_input(**told["args"]), found)
        if sum(t.numel() for t in found) > told["most"]:
            raise Refusal("inputs of more than %d elements" % told["most"])
        return {"data": self.data, "tensors": [written(t) for t in found]}

    def prepare(self, told):
        pass

    def bind(self, args, kwargs):
        return args, kwargs

    def __call__(self, *args):
        return self.launch((), args, {})

    def launch(self, out, args, kwargs):
        return self.f(filled(self.data, args))


def outline(v, found):
    """Returns data with the places of its tensors, which are added to a list."""
    if isinstance(v, torch.Tensor):
        found.append(v.detach())
        return {"tensor": len(found) - 1}
    if isinstance(v, (list, tuple)):
        return {"list" if isinstance(v, list) else "tuple": [outline(e, found) for e in v]}
    if isinstance(v, dict):
        return {"dict": [[k, outline(e, found)] for k, e in v.items()]}
    if v is None or isinstance(v, (bool, int, float, str, torch.dtype)):
        return encoded(v)
    raise Refusal("the data hold a %s: tensors, numbers, texts, lists, tuples and dicts can be told" % type(v).__name__)


def filled(v, tensors):
    if not isinstance(v, dict):
        return v
    (kind, held), = v.items()
    if kind == "tensor":
        return tensors[held]
    if kind == "dict":
        return {k: filled(e, tensors) for k, e in held}
    if kind == "dtype":
        return getattr(torch, held)
    return (list if kind == "list" else tuple)(filled(e, tensors) for e in held)


def written(t):
    """Tells a tensor with its elements, in the order of its shape, and whether nothing was written to it."""
    flat = t.contiguous()
    raw = flat.view(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
    if t.dtype not in plumb_forms.NAME_OF:
        raise Refusal("the data hold a tensor of %s" % t.dtype)
    return {"dtype": plumb_forms.NAME_OF[t.dtype], "shape": list(t.shape), "strides": list(t.stride()), "bytes": base64.b64encode(raw).decode(),
            "unwritten": bool(raw) and raw.count(POISON) == len(raw)}


plumb_forms.FORMS["task"] = Task
