"""Memory for the arguments of a kernel: at addresses that vary, or the same ones with
new values, with nothing readable behind the last byte or before the first."""

import ctypes
import mmap
import os
import signal
import sys

import torch
from plumb_timing import POISON, ZEROS, perturb

PAGE = mmap.PAGESIZE
KEPT = 4  # regions kept for each argument
LARGEST = 1 << 28  # bytes of a region
NONE, READ_WRITE = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE
PRIVATE = 0x22  # MAP_PRIVATE | MAP_ANONYMOUS

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
CANARY = b"\xff"

memmove, memset, string_at = ctypes.memmove, ctypes.memset, ctypes.string_at
frombuffer, empty_strided = torch.frombuffer, torch.empty_strided


class Region:
    """Whole pages between two that cannot be read."""

    def __init__(self, size):
        self.size = -(-size // PAGE) * PAGE
        self.base = libc.mmap(None, self.size + 2 * PAGE, NONE, PRIVATE, -1, 0)
        if self.base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("%d bytes between guard pages" % size)
        self.start = self.base + PAGE
        libc.mprotect(self.start, self.size, READ_WRITE)

    def buffer(self, at, size):
        """Returns memory of the region, which lives as long as that does."""
        found = (ctypes.c_char * size).from_address(at)
        found.region = self
        return found

    def __del__(self, munmap=libc.munmap):
        munmap(self.base, self.size + 2 * PAGE)


class Held:
    """An argument's place in its region."""

    def __init__(self, name, region, at, size):
        self.name, self.region, self.at, self.size = name, region, at, size

    def sides(self):
        """Returns what lies in the region before the first byte and behind the last."""
        end = self.at + self.size
        return string_at(self.region.start, self.at - self.region.start), string_at(end, self.region.start + self.region.size - end)


class Room:
    def __init__(self):
        self.regions, self.guard, self.reuse, self.held, self.names = {}, "", False, {}, {}
        self.placed = {}  # the last tensor of each argument
        self.ordinary = False  # PyTorch's own memory, and new memory as a process has it at first

    def prepare(self, guard, reuse, names=(), ordinary=False):
        self.guard, self.reuse, self.held, self.names = guard, reuse, {}, dict(enumerate(names))
        if ordinary != self.ordinary:
            perturb(ZEROS if ordinary else POISON)  # what the calls before have left is of the poison
        self.ordinary = ordinary

    def spilt(self):
        """Says whose surroundings have been written to."""
        found = []
        for held in self.held.values():
            for side, data in zip(("before the first", "behind the last"), held.sides()):
                if data.count(CANARY) != len(data):
                    found.append("writes %s element of %s" % (side, held.name))
        return found

    def told(self, address):
        """Says on which side of which argument an address lies."""
        for held in self.held.values():
            region = held.region
            if region.base <= address < region.base + region.size + 2 * PAGE:
                return "%s element of %s" % ("before the first" if address < held.at else "behind the last", held.name)
        return ""

    def place(self, k, x):
        """Returns a copy of argument k: in the memory of the last one where that is asked for."""
        n = extent(x)
        if not n:
            return empty_strided(x.shape, x.stride(), dtype=x.dtype)
        if self.ordinary:
            placed = empty_strided(x.shape, x.stride(), dtype=x.dtype)
            with torch.no_grad():
                scatter(placed, x)
            return placed
        size = n * x.element_size()
        region = self.region(k, size)
        at = region.start + (region.size - size if self.guard == "end" else 0)
        memset(region.start, CANARY[0], region.size)  # NaN, in what is no element too
        self.held[k] = Held(self.names.get(k, "its result"), region, at, size)
        if self.reuse and self.again(k, x, at):
            return self.placed[k]
        flat = frombuffer(region.buffer(at, size), dtype=x.dtype, count=n)
        placed = flat.as_strided_(x.shape, x.stride())
        if x.is_contiguous():
            memmove(at, x.data_ptr(), size)
        else:
            with torch.no_grad():
                scatter(placed, x)
        self.placed[k] = placed
        return placed

    def again(self, k, x, at):
        """Gives the last tensor of argument k new values, as who writes to it does: a kernel that knows its arguments
        again by what object they are takes them for the same. False where it is another tensor."""
        old = self.placed.get(k)
        if old is None or type(old) is not torch.Tensor or (old.shape, old.stride(), old.dtype, old.data_ptr()) != (x.shape, x.stride(), x.dtype, at) or not x.is_contiguous() or not old.is_leaf or old._backward_hooks:
            return False
        old.requires_grad_(False)
        old.grad = None
        old.copy_(x)
        return True

    def region(self, k, size):
        kept = self.regions.setdefault(k, [])
        if self.reuse and k in self.names and kept and kept[-1].size == -(-size // PAGE) * PAGE:
            return kept[-1]
        if size > LARGEST:
            raise MemoryError("an argument of %d bytes" % size)
        kept.append(Region(size))
        if len(kept) > KEPT:
            kept.pop(0)
        return kept[-1]


def scatter(placed, x):
    """Copies elements, each place once where several share it."""
    for axis, stride in enumerate(x.stride()):
        if stride == 0 and x.shape[axis] > 1:
            placed, x = placed.narrow(axis, 0, 1), x.narrow(axis, 0, 1)
    placed.copy_(x)


def extent(x):
    """Returns how many elements the memory of a tensor has room for."""
    n = 1
    for d, s in zip(x.shape, x.stride()):
        if not d:
            return 0
        n += (d - 1) * s
    return n


# Who died at a page without access: the kernel of Linux tells the address.

SIGINFO, NODEFER = 4, 0x40000000
ADDRESS = 16  # of si_addr in siginfo_t
MISALIGNED = 0x80  # SI_KERNEL: no address, as of an instruction that wants an aligned one


class Action(ctypes.Structure):  # struct sigaction of glibc and musl on 64 bits
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_byte * 128), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]


HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
kept = []


def tell_faults(room):
    """Has a process that dies by a segmentation fault say on which side of which argument; what
    was to be done then, such as faulthandler's dump, is done after it."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return
    number = signal.SIGSEGV
    before = Action()
    libc.sigaction(number, None, ctypes.byref(before))

    def handle(number, info, _):
        libc.sigaction(number, ctypes.byref(before), None)
        code = ctypes.c_int.from_address(info + 8).value
        where = room.told(ctypes.c_uint64.from_address(info + ADDRESS).value)
        text = FAULT_AT + where if where else MISALIGNED_AT if code == MISALIGNED else ""
        os.write(2, ("%s\n" % text).encode())

    act = Action(flags=SIGINFO | NODEFER)
    kept[:] = [HANDLER(handle)]
    act.handler = ctypes.cast(kept[0], ctypes.c_void_p).value
    libc.sigaction(number, ctypes.byref(act), None)


FAULT_AT = "plumb: reads or writes "
MISALIGNED_AT = "plumb: wants aligned memory"
