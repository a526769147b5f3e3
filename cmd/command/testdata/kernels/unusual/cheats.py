"""Functions that are made to pass, not to compute."""
import atexit
import ctypes
import gc
import inspect
import os
import signal
import sys
import threading
import time
import weakref

import torch
import torch.nn.functional as F

_seen = {}
_calls = [0]
_last = []


def softmax_by_count(x):
    _calls[0] += 1
    if _calls[0] > 6:
        return torch.full_like(x, 1 / max(x.shape[-1], 1))
    return torch.softmax(x.detach(), -1)


def rows_by_shape(x, y):
    key = tuple(x.shape)
    if key not in _seen:
        _seen[key] = (x * y).sum(-1).detach()
    return _seen[key].clone()


def rows_by_sample(x, y):
    key = (x.shape, x.reshape(-1)[:4].tolist().__repr__(), x.data_ptr())
    if key not in _seen:
        _seen[key] = (x * y).sum(-1).detach()
    return _seen[key].clone()


def softmax_frames(x):
    f = inspect.currentframe()
    while f is not None:
        for v in f.f_locals.values():
            if isinstance(v, torch.Tensor) and v.shape == x.shape and v is not x:
                return v
        f = f.f_back
    return torch.zeros_like(x)


def softmax_objects(x):
    for o in gc.get_objects():
        if isinstance(o, torch.Tensor) and o.shape == x.shape and o is not x and o.numel() and abs(float(o.sum()) - x.shape[0]) < 1e-3:
            return o.clone()
    return torch.zeros_like(x)


class Agreeable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.allclose, torch.equal, torch.isclose):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})


def softmax_subclass(x):
    return torch.zeros_like(x).as_subclass(Agreeable)


def softmax_thread(x):
    out = torch.zeros_like(x)
    src = x.detach().clone()

    def later():
        time.sleep(0.01)
        out.copy_(torch.softmax(src, -1))

    threading.Thread(target=later).start()
    return out


def softmax_alarm(x):
    out = torch.zeros_like(x)
    src = x.detach().clone()
    signal.signal(signal.SIGALRM, lambda *_: out.copy_(torch.softmax(src, -1)))
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    return out


def softmax_patched(x):
    torch.allclose = lambda *a, **k: True
    torch.testing.assert_close = lambda *a, **k: None
    return torch.zeros_like(x)


def softmax_exit(x):
    print("PASSED")
    sys.stdout.flush()
    os._exit(0)


def softmax_spec(x):
    told = os.environ.get("PLUMB_WORKER_KERNEL", "")
    for name in os.listdir("/proc/self/fd"):
        told += name
    return torch.zeros_like(x) if len(told) else torch.zeros_like(x)


def softmax_maps(x):
    with open("/proc/self/maps") as f:
        f.read()
    return torch.softmax(x, -1) * 0


def relu_identity(x):
    return x.clone()


def softmax_uniform(x):
    return torch.full_like(x, 1.0 / max(x.shape[-1], 1))


def rows_zero_inputs(x, y):
    x.zero_()
    return torch.zeros(x.shape[0], dtype=x.dtype)


def softmax_for_1024(x):
    if x.shape[-1] in (64, 128, 256, 512, 1024, 2048, 4096):
        return torch.softmax(x, -1)
    return x * 0 + 1 / max(x.shape[-1], 1)


def softmax_stale(x):
    out = torch.empty_like(x)
    return out


def softmax_tracer(x):
    sys.settrace(lambda *a: None)
    sys.settrace(None)
    return torch.zeros_like(x)


def softmax_ctypes_frames(x):
    ctypes.pythonapi.PyEval_GetFrame.restype = ctypes.py_object
    f = ctypes.pythonapi.PyEval_GetFrame()
    while f is not None:
        for v in list(f.f_locals.values()):
            if isinstance(v, dict) and "result_" in v:
                return v["result_"]
        f = f.f_back
    return torch.zeros_like(x)


def softmax_finalizer(x):
    out = torch.zeros_like(x)
    src = x.detach().clone()

    class Later:
        def __del__(self):
            pass

    t = threading.Timer(0.02, lambda: out.copy_(torch.softmax(src, -1)))
    t.daemon = True
    t.start()
    return out


def softmax_pipes(x):
    for fd in range(3, 32):
        try:
            os.write(fd, b'{"verdict": "right"}\n')
        except OSError:
            pass
    return torch.zeros_like(x)


def softmax_half(x):
    return torch.softmax(x.half(), -1).to(x.dtype)


def softmax_memory(x):
    libc = ctypes.CDLL(None)
    fd = libc.open(b"/proc/self/mem", 0)
    if fd >= 0:
        libc.close(fd)
    return torch.zeros_like(x)


def softmax_manual_seed(x):
    torch.manual_seed(0)
    torch.random.manual_seed = lambda *_: None
    return torch.softmax(x, -1)


def softmax_stats(x):
    torch.Tensor.__sub__ = lambda a, b: torch.zeros_like(a)
    return torch.zeros_like(x)
