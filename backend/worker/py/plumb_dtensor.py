"""PyTorch's DTensor: a case over the ranks of a mesh.

How an input lies on the mesh is drawn from the case's seed; a parameter is replicated.
The ranks are in this process, where LocalTensorMode stands for them: what one tensor is
on each of them is one LocalTensor. The mesh has two ranks then, or what PLUMB_WORKER_MESH
says, such as 2x2. Or they are processes that meet over gloo (plumb_group.py), and this is
one of them.
"""

import contextlib
import ctypes
import functools
import importlib.util
import os
import random
import re
import zlib

import plumb_group
import plumb_table
import plumb_torch
import torch
from plumb_names import Unsupported

GAPS = ("Sharding propagation failed", "unevenly sharded", "got mixed torch.Tensor and DTensor", "does not have a sharding strategy", "Invalid scalar type")  # in messages; the last of gloo
ENTRY = re.compile(r"S\((\d+)\)|[BP]")


def modes():
    """Returns the modes that this version of PyTorch has."""
    if not torch.distributed.is_available() or importlib.util.find_spec("torch.distributed.tensor") is None:
        return {}
    real = plumb_group.modes("dtensor-gloo") if torch.distributed.is_gloo_available() else ()
    known = dict.fromkeys(real, plumb_group.forwarded(__name__))
    with contextlib.suppress(ImportError):
        from torch.distributed._local_tensor import LocalTensorMode  # noqa: F401
        from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: F401

        known["dtensor"] = Distributed
    return known


def simulated(e):
    """Whether LocalTensorMode itself asserts: one number of ranks that hold several.

    Real ranks would go on, so that it is no fault of DTensor; any other assertion is.
    """
    frame = e.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    return isinstance(e, AssertionError) and "_local_tensor" in frame.tb_frame.f_code.co_filename


def agreed(t):
    """Returns what all ranks have; reconcile, which compares numbers, finds no two NaNs equal."""
    apiece = list(t._local_tensors.values())
    raw = [a.detach().contiguous().reshape(-1).view(torch.uint8) for a in apiece]
    if all(a.shape == apiece[0].shape and torch.equal(r, raw[0]) for a, r in zip(apiece, raw)):
        return apiece[0]
    return t.reconcile()


class Simulated:
    """The ranks of the process, made with the first case."""

    mesh = mode = None

    @classmethod
    def start(cls):
        if cls.mesh is not None:
            return
        from torch.distributed import init_process_group
        from torch.distributed._local_tensor import LocalTensor, LocalTensorMode, maybe_disable_local_tensor_mode
        from torch.distributed.device_mesh import init_device_mesh
        from torch.testing._internal.distributed.fake_pg import FakeStore

        shape = tuple(int(n) for n in (os.environ.get("PLUMB_WORKER_MESH") or "2").split("x"))
        world = 1
        for n in shape:
            world *= n
        init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
        cls.mode, cls.apart = LocalTensorMode(world), staticmethod(maybe_disable_local_tensor_mode)
        cls.apiece = staticmethod(lambda t: LocalTensor({rank: t.clone() for rank in range(world)}))  # ranks share no memory
        with cls.mode:
            cls.mesh = init_device_mesh("cpu", shape)


class Real:
    """The ranks of a group of processes."""

    mesh, mode, apart, apiece = None, contextlib.nullcontext(), contextlib.nullcontext, staticmethod(torch.clone)

    @classmethod
    def start(cls):
        pass


class Distributed(plumb_torch.Run):
    """One case whose tensors are DTensors."""

    ranks = Simulated
    filling = False  # while a module gets its state

    def run(self):
        if any(plumb_table.changes(call[0]) or len(call) > 2 and call[2].get("inplace") for call in self.case["calls"]):
            raise Unsupported("DTensor: a view of one need not share its memory, so that a change does not reach it")
        self.ranks.start()
        from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor

        self.kind, self.replicate, self.shard = DTensor, Replicate, Shard
        self.distribute, self.distribute_module = distribute_tensor, distribute_module
        self.draws = random.Random(self.case["seed"])
        with self.ranks.mode:
            try:
                return super().run()
            except (RuntimeError, AssertionError, NotImplementedError, AttributeError) as e:
                if isinstance(e, NotImplementedError) or any(gap in str(e) for gap in GAPS) or simulated(e):
                    raise Unsupported("DTensor: %s" % (str(e).partition("\n")[0] or type(e).__name__)) from None
                raise

    # Tensors.

    def load(self, entry, requires_grad=False):
        with self.ranks.apart():
            t = super().load(entry).clone()
        if self.filling:
            return t
        t = self.distribute(self.ranks.apiece(t), self.ranks.mesh, [self.drawn(len(entry[2])) for _ in range(self.ranks.mesh.ndim)])
        return t.detach().requires_grad_() if requires_grad else t

    def drawn(self, axes):
        """Draws how the ranks along a dimension of the mesh share a tensor."""
        axis = self.draws.randrange(axes + 1)
        return self.replicate() if axis == axes else self.shard(axis)

    def store(self, t):
        try:
            t = self.whole(t)
        except Exception as e:
            return ["x", "a DTensor whose parts make no tensor: %s: %s" % (type(e).__name__, str(e).partition("\n")[0])]
        with self.ranks.apart():
            return self.put(t)

    def put(self, t):
        return super().store(t)

    def whole(self, t):
        """Returns the tensor that the ranks hold together, laid out as they say."""
        grad = t.requires_grad
        with torch.no_grad():
            strides = None
            if isinstance(t, self.kind):
                strides = t.stride()
                t = t.detach().full_tensor()
            if hasattr(t, "reconcile"):
                t = agreed(t)
        with torch.no_grad(), self.ranks.apart():
            t = t.detach()
            if strides is not None and t.stride() != strides and len(strides) == t.dim() and 0 not in strides:
                t = torch.empty_strided(t.shape, strides, dtype=t.dtype).copy_(t)
        return t.requires_grad_() if grad else t

    # Calls.

    def prepared(self, call):
        f, args, kwargs = super().prepared(call)
        if call[0] == "Tensor.to_global":
            return self.placed, args, kwargs
        return f, args, kwargs

    def placed(self, t, placement=None, sbp=None, grad_sbp=None, itself=False):
        """Brings a tensor to an sbp of as many dimensions as the mesh has."""
        entries = [m.group(0) for m in ENTRY.finditer(sbp or "")]
        if len(entries) != self.ranks.mesh.ndim or "P" in entries:
            return t
        return t.clone().redistribute(self.ranks.mesh, [self.shard(int(e[2:-1])) if e[0] == "S" else self.replicate() for e in entries])

    def fill(self, i, module):
        self.filling = True
        super().fill(i, module)
        self.filling = False

    def constructed(self, i, module):
        super().constructed(i, module)
        self.distribute_module(module, self.ranks.mesh)

    def unnoticed(self, f, args):
        return ()

    # Gradients.

    def cotangent(self, v, offset, n):
        with self.ranks.apart():
            c = super().cotangent(self.whole(v), offset, n)
        return self.distribute(c, self.ranks.mesh, [self.replicate()] * self.ranks.mesh.ndim) if isinstance(v, self.kind) else c


class OfRank(Distributed):
    """One case on a rank of a group."""

    ranks, rank = Real, 0

    def __init__(self, *args):
        super().__init__(*args)
        self.sums = []

    def put(self, t):
        raw = t.detach().resolve_conj().resolve_neg().contiguous()
        self.sums.append([self.call, zlib.crc32(ctypes.string_at(raw.data_ptr(), raw.numel() * raw.element_size()) if raw.numel() else b"")])
        return ["x", "of another rank"] if self.rank else super().put(t)


def ranked(rank, hierarchy):
    """Returns what makes a run of a memory and a case, on a rank of so many."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    from torch.distributed.device_mesh import init_device_mesh

    Real.mesh, OfRank.rank = init_device_mesh("cpu", tuple(hierarchy)), rank
    return functools.partial(OfRank, plumb_torch.adapter, plumb_torch.targets)
