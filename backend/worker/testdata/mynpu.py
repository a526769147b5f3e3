"""A device "mynpu" in Python alone (PyTorch 2.15), for tests: what lies there is
kept in CPU tensors, and it has the CPU's kernels but for LACKS, one of them WRONG.
Its views are copies."""

import torch
from torch.utils import _pytree as tree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

LACKS = {"aten::erf"}
WRONG = {"aten::cosh": torch.ops.aten.sinh}

_setup_privateuseone_for_python_backend("mynpu")
held = {}  # CPU tensors by the storage of the device's


def storage(t):
    return t.untyped_storage()._cdata


def wrap(raw):
    t = torch._C._acc.create_empty_tensor(raw.shape, raw.dtype)
    held[storage(t)] = raw.contiguous()
    return t


def unwrap(v):
    if isinstance(v, torch.device) and v.type == "mynpu":
        return torch.device("cpu")
    return held[storage(v)].view(v.shape) if isinstance(v, torch.Tensor) and v.device.type == "mynpu" else v


def fallback(op, *args, **kwargs):
    name = op._schema.name
    if name in LACKS:
        raise NotImplementedError("Could not run '%s' with arguments from the 'mynpu' backend" % name)
    raws = {}
    for t in tree.tree_leaves((args, kwargs)):
        raw = unwrap(t)
        if raw is not t:
            raws[id(raw)] = raw, t
    by_tensor = {id(t): raw for raw, t in raws.values()}
    given = lambda v: by_tensor.get(id(v), unwrap(v))
    out = WRONG.get(name, op)(*tree.tree_map(given, args), **tree.tree_map(given, kwargs))
    return tree.tree_map(lambda r: r if not isinstance(r, torch.Tensor) else raws[id(r)][1] if id(r) in raws else wrap(r), out)


library = torch.library.Library("_", "IMPL")
library.fallback(fallback, "PrivateUse1")


@torch.library.impl("aten::_copy_from", "privateuseone")
def copy_from(source, target, non_blocking=False):
    unwrap(target).copy_(unwrap(source))
    return target


@torch.library.impl("aten::empty.memory_format", "privateuseone")
def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return wrap(torch.empty(size, dtype=dtype))


@torch.library.impl("aten::empty_strided", "privateuseone")
def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return wrap(torch.empty(size, dtype=dtype))
