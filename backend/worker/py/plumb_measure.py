"""How long a call of PyTorch's takes."""

from time import perf_counter_ns as now

import torch
from torch import Tensor
from torch.nn import Module


def measured(run, times, backward, device):
    """Makes the last call again, with its gradients where asked, after once that
    does not count; returns the nanoseconds."""
    call, wanted = run.case["calls"][-1], []
    f, args, kwargs = run.prepared(call)
    if backward:
        args, kwargs = fresh(args, wanted), {name: fresh(a, wanted) for name, a in kwargs.items()}
    with run.entered(call[3] if len(call) > 3 else ()):
        cotangents = [torch.ones_like(x) for x in results(f(*args, **kwargs))] if backward else ()
        if backward and not cotangents:
            return -1
        finish(device)
        t = now()
        for _ in range(times):
            v = f(*args, **kwargs)
            if backward:
                torch.autograd.grad(results(v), wanted, cotangents, allow_unused=True)
        finish(device)
        return now() - t


def fresh(a, wanted):
    """Returns an argument whose float tensors are leaves, which it adds to `wanted`
    as it does parameters of modules."""
    if isinstance(a, (list, tuple)):
        return type(a)([fresh(x, wanted) for x in a])
    if isinstance(a, Module):
        wanted.extend(p for p in a.parameters() if p.requires_grad)
    if isinstance(a, Tensor) and (a.is_floating_point() or a.is_complex()):
        a = a.detach().requires_grad_()
        wanted.append(a)
    return a


def results(v):
    """Lists the tensors of a result that can be differentiated."""
    if isinstance(v, Tensor):
        return [v] if v.requires_grad else []
    if isinstance(v, (list, tuple)):
        return [x for e in v for x in results(e)]
    return []


def finish(device):
    """Waits for a device that is not the CPU."""
    synchronize = getattr(device, "synchronize", None)
    if synchronize:
        synchronize()
