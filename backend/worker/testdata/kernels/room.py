"""Memory for a kernel's arguments: what lies behind and before it, and what tells of it."""

import ctypes
import os
import signal

import plumb_room
import torch

PAGE = plumb_room.PAGE


def placed(room, x, guard, reuse=False):
    room.prepare(guard, reuse, ("x",))
    return room.place(0, x)


def ends(f, room):
    """Returns by which signal a fork ends that calls f, and what it has said."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(writing, 2)
        plumb_room.tell_faults(room)
        f()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    return os.WTERMSIG(os.waitpid(pid, 0)[1]), text


room = plumb_room.Room()
x = torch.arange(37, dtype=torch.float32)
for guard, far, side in (("end", 37 * 4, "behind the last"), ("start", -4, "before the first")):
    y = placed(room, x, guard)
    assert torch.equal(x, y) and y.data_ptr() != x.data_ptr()
    for reach in (lambda: ctypes.string_at(y.data_ptr() + far, 1), lambda: ctypes.memset(y.data_ptr() + far, 0, 1)):
        number, text = ends(reach, room)
        assert number == signal.SIGSEGV and "plumb: reads or writes %s element of x" % side in text, (guard, number, text)
    number, text = ends(lambda: ctypes.string_at(y.data_ptr(), 37 * 4), room)
    assert number == 0 and not text, (guard, number, text)

# What is written beside it where that can be written to.
for guard, off, side in (("end", -1, "before the first"), ("start", 37 * 4, "behind the last")):
    y = placed(room, x, guard)
    assert room.spilt() == []
    ctypes.memset(y.data_ptr() + off, 0, 1)
    assert room.spilt() == ["writes %s element of x" % side], room.spilt()

# The same memory with new values, and other memory.
a = placed(room, x, "end")
b = placed(room, x + 1, "end", reuse=True)
assert a.data_ptr() == b.data_ptr() and torch.equal(b, x + 1)
assert placed(room, x, "end").data_ptr() != b.data_ptr()

# Every dtype and layout.
for dtype in (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex64):
    v = torch.arange(12).reshape(3, 4).to(dtype)
    sliced = torch.zeros(3, 8, dtype=dtype)[:, ::2]
    sliced.copy_(v)
    for t in (v, v.t(), sliced, v[:, :1].expand(3, 4), v[:0], v[0, 0]):
        for guard in ("end", "start"):
            y = placed(room, t, guard)
            assert torch.equal(t, y) and t.stride() == y.stride() and t.shape == y.shape, (dtype, guard, t.shape, t.stride())
            assert guard != "end" or not y.numel() or (y.data_ptr() + plumb_room.extent(y) * y.element_size()) % PAGE == 0
# What lies between elements is no number.
gaps = torch.empty_strided((3,), (2,)).fill_(1)
y = placed(room, gaps, "end")
assert torch.isnan(y.as_strided((2,), (2,), 1)).all()
