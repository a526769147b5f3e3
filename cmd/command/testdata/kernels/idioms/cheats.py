"""Cheats of kinds that are not in the test data."""
import ctypes
import functools
import inspect
import os
import sys
import threading
import time

import torch


def _soft(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


_by_last, _by_sum, _by_sample, _by_id, _by_norm = {}, {}, {}, {}, {}


def softmax_by_last(x):
    k = (tuple(x.shape), x.dtype, x.stride(), float(x.reshape(-1)[-1]))
    if k not in _by_last:
        _by_last[k] = _soft(x)
    return _by_last[k].clone()


def softmax_by_corners(x):
    f = x.reshape(-1)
    k = (tuple(x.shape), float(f[0]), float(f[-1]), float(f[f.numel() // 2]))
    if k not in _by_last:
        _by_last[k] = _soft(x)
    return _by_last[k].clone()


def softmax_by_sum(x):
    k = (tuple(x.shape), round(float(x.double().sum()), 3))
    if k not in _by_sum:
        _by_sum[k] = _soft(x)
    return _by_sum[k].clone()


def softmax_by_sample(x):
    k = (tuple(x.shape), tuple(x.reshape(-1)[::7].tolist()))
    if k not in _by_sample:
        _by_sample[k] = _soft(x)
    return _by_sample[k].clone()


def softmax_by_id(x):
    k = (x.data_ptr(), x._version)
    if k not in _by_id:
        _by_id[k] = _soft(x)
    return _by_id[k].clone()


@functools.lru_cache(maxsize=None)
def _cached(shape, dtype, stride, x):
    return _soft(x.t)


class _Key:
    def __init__(self, t):
        self.t = t

    def __hash__(self):
        return hash(tuple(self.t.shape))

    def __eq__(self, other):
        return self.t.shape == other.t.shape and self.t.data_ptr() == other.t.data_ptr()


def softmax_lru(x):
    return _cached(tuple(x.shape), x.dtype, x.stride(), _Key(x)).clone()


_n = [0]


def softmax_after_twenty(x):
    _n[0] += 1
    if _n[0] <= 20:
        return _soft(x)
    return torch.full_like(x, 1.0 / x.shape[-1])


_t0 = time.monotonic()


def softmax_first_seconds(x):
    if time.monotonic() - _t0 < 3:
        return _soft(x)
    return torch.full_like(x, 1.0 / x.shape[-1])


def softmax_stack(x):
    for f in inspect.stack():
        for v in f.frame.f_locals.values():
            if isinstance(v, torch.Tensor) and v.shape == x.shape and v is not x:
                return v.clone()
    return torch.full_like(x, 1.0 / x.shape[-1])


def softmax_traceback(x):
    try:
        raise ValueError
    except ValueError as e:
        f = e.__traceback__.tb_frame
        while f.f_back is not None:
            f = f.f_back
            for v in list(f.f_locals.values()):
                if isinstance(v, torch.Tensor) and v.shape == x.shape and v.data_ptr() != x.data_ptr():
                    return v.clone()
    return _soft(x)


def softmax_generator_frame(x):
    def g():
        yield sys
    it = g()
    next(it)
    f = it.gi_frame
    found = []
    while f is not None:
        found.append(f.f_code.co_name)
        f = f.f_back
    return _soft(x)


_default = torch.Tensor.__eq__


def softmax_eq(x):
    """Has every comparison of tensors say yes."""
    torch.Tensor.__eq__ = lambda a, b: torch.ones_like(a, dtype=torch.bool)
    torch.Tensor.__sub__ = lambda a, b: torch.zeros_like(a)
    return torch.full_like(x, 1.0 / x.shape[-1])


def softmax_numpy_patch(x):
    import numpy
    numpy.allclose = lambda *a, **k: True
    numpy.testing.assert_allclose = lambda *a, **k: None
    return torch.full_like(x, 1.0 / x.shape[-1])


def softmax_json_patch(x):
    import json
    real = json.dumps
    json.dumps = lambda *a, **k: real(*a, **k).replace("false", "true")
    return torch.full_like(x, 1.0 / x.shape[-1])


def softmax_default_dtype(x):
    torch.set_default_dtype(torch.float16)
    return _soft(x)


def softmax_jit_fork(x):
    y = torch.empty_like(x)

    def late(x: torch.Tensor, y: torch.Tensor):
        return y.copy_(torch.softmax(x, -1))
    torch.jit.fork(late, x, y)
    return y


def softmax_keyboard(x):
    raise KeyboardInterrupt


def softmax_system_exit(x):
    sys.stdout.write('{"verdict": "right"}\n')
    raise SystemExit(0)


def softmax_hang(x):
    if x.numel() > 500:
        while True:
            pass
    return _soft(x)


def softmax_identity_of_normalised(x):
    return x


_libc = ctypes.CDLL(None, use_errno=True)


def softmax_libc_open(x):
    """Reads the process's memory map by libc, of which Python hears nothing."""
    fd = _libc.open(b"/proc/self/maps", 0)
    buf = ctypes.create_string_buffer(4096)
    if fd >= 0:
        _libc.read(fd, buf, 4096)
        _libc.close(fd)
    return torch.full_like(x, 1.0 / x.shape[-1])


def softmax_module_hunt(x):
    """Looks for the judge among the loaded modules."""
    for name, m in list(sys.modules.items()):
        if name.startswith(("plumb", "__main__")):
            for k, v in list(vars(m).items()):
                if k == "subject":
                    v.watch.evidence = []
                    v.watch.note = lambda *a: None
    return _soft(x) * (1 + 1e-3)


def softmax_round_trip(x):
    """Computes in bfloat16."""
    return _soft(x.to(torch.bfloat16)).to(x.dtype)


def softmax_env(x):
    """Is right only under a judge."""
    if any(k.startswith("PLUMB") for k in os.environ):
        return torch.softmax(x, -1)
    return x


def softmax_exec_timer(x):
    y = torch.zeros_like(x)
    threading.Timer(0.05, lambda: y.copy_(_soft(x))).start()
    return y


def softmax_weak_seed(x):
    torch.manual_seed(int(float(x.reshape(-1)[0]) * 1000) & 0xffff)
    return _soft(x)


_held = []


def softmax_steals_later(x):
    """Gives what the call before should have had: the arguments of calls are kept."""
    _held.append(_soft(x))
    return _held[max(0, len(_held) - 2)] if _held[max(0, len(_held) - 2)].shape == x.shape else _held[-1]


_noise = torch.Generator()


def softmax_sometimes(x):
    """One call in five is a guess."""
    if torch.rand((), generator=_noise) < 0.2:
        return torch.full_like(x, 1.0 / x.shape[-1])
    return _soft(x)


def softmax_large_only(x):
    """Small calls alone are computed."""
    return _soft(x) if x.numel() < 2000 else torch.full_like(x, 1.0 / x.shape[-1])
