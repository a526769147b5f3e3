"""A Plumb worker: runs programs for the host at the other end of two pipes.

This file knows the protocol of docs/worker-protocol.md: handshake, frames and
shared memory. What a program means is the subject's business (plumb_modes.py).
"""

import sys

sys.dont_write_bytecode = True  # by no flag, which a kernel would see

import ctypes
import faulthandler
import functools
import json
import mmap
import os
import signal
import struct
import time

import plumb_code
from plumb_names import Refusal

REQUESTS, REPLIES, MEMORY = 3, 4, 5
ROOM = 1 << 16  # for descriptors that are out of the way
FAULT, REFUSAL = 70, 69
ALIGN = 64
KEEP = 256 << 20  # what a large request leaves behind beyond this is given back


class Memory:
    """The region that worker and host both map.

    Bytes 0 to 7 say which case (from 1) and which call is running; the host
    fills the rest from below, results follow from `top` on.
    """

    def __init__(self):
        self.fd = MEMORY
        self.map(os.fstat(MEMORY).st_size)
        self.top = ALIGN

    def map(self, size):
        self.bytes = mmap.mmap(MEMORY, size)
        self.size = size
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))
        self.mark = memoryview(self.bytes)[:8].cast("I")

    def reserve(self, n):
        """Returns the offset of n fresh bytes; the region grows when needed.

        Many of them take the place of what was freed before."""
        if n > KEEP:
            give_back()
        at = self.top
        end = at + n
        if end > self.size:
            self.grow(end)
        self.top = (end + ALIGN - 1) & -ALIGN
        return at

    def grow(self, end):
        size = max(2 * self.size, (end + 0xFFFFF) & ~0xFFFFF)
        if size > largest_file():
            raise MemoryError("shared memory of %d bytes" % size)
        try:
            if os.fstat(MEMORY).st_size < size:
                os.ftruncate(MEMORY, size)
        except (OSError, OverflowError) as e:
            raise MemoryError("shared memory of %d bytes: %s" % (size, e)) from None
        self.follow(size)

    def follow(self, size):
        """Maps the region again, all that it has, when that many bytes are not mapped.

        Pages of a new mapping cost nearly as much as fresh ones: it is made smaller
        again only where address space is bounded."""
        bounded = address_space() > 0
        if size <= self.size and (not bounded or self.size <= max(KEEP, 2 * size)):
            return
        try:
            self.map(size if bounded else max(size, os.fstat(MEMORY).st_size))
        except (OSError, ValueError, OverflowError) as e:
            raise MemoryError("shared memory of %d bytes: %s" % (size, e)) from None


def read_frame():
    """Returns the payload of the next request, or None at the end."""
    data = os.read(REQUESTS, 1 << 16)
    while len(data) < 4:
        more = os.read(REQUESTS, 1 << 16)
        if not more:
            return None
        data += more
    (n,) = struct.unpack_from("<I", data)
    parts, have = [data[4:]], len(data) - 4
    while have < n:
        more = os.read(REQUESTS, min(n - have, 1 << 20))
        if not more:
            return None
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def write_frame(text):
    payload = text.encode("ascii")
    write_all(struct.pack("<I", len(payload)) + payload)


def write_all(data):
    done = os.write(REPLIES, data)
    while done < len(data):
        done += os.write(REPLIES, data[done:])


def withdraw():
    """Moves the channel to descriptors that nothing else can name."""
    global REQUESTS, REPLIES, MEMORY
    import fcntl
    import random
    import resource

    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], ROOM)
    moved = []
    for fd in (REQUESTS, REPLIES, MEMORY):
        moved.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, random.SystemRandom().randrange(most // 2, most - len("channel"))))
        os.close(fd)
    REQUESTS, REPLIES, MEMORY = moved


def largest_file():
    import resource

    if hasattr(resource, "prlimit"):  # a kernel's process answers getrlimit otherwise
        most = resource.prlimit(0, resource.RLIMIT_FSIZE)[0]
    else:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return sys.maxsize if most == resource.RLIM_INFINITY else most


@functools.lru_cache(None)  # a kernel's environment does not say it
def address_space():
    """Returns how many bytes of it the process may have; 0 for any number."""
    return int(os.environ.get("PLUMB_WORKER_MEMORY", "0"))


def limit_memory():
    limit = address_space()
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def give_back():
    """Returns what the allocator keeps, after a large request, where it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def answer(subject, memory, request):
    if "signatures" in request:
        return {"signatures": subject.signatures(request["signatures"])}
    if "opinfo" in request:
        return {"opinfo": subject.opinfo(request["opinfo"]) if hasattr(subject, "opinfo") else {"error": "it has no sample inputs"}}
    if "kernel" in request:
        return {"id": request.get("id"), "kernel": subject.kernel(request["kernel"]) if hasattr(subject, "kernel") else {"error": "it is no kernel"}}
    memory.top = request["out"]
    try:
        memory.follow(request["size"])
        cases = subject.run(memory, request["cases"])
    except MemoryError as e:
        cases = [{"status": "oom", "class": "MemoryError", "message": str(e)} for _ in request["cases"]]
    if memory.top > KEEP:
        give_back()
    return {"id": request["id"], "size": memory.size, "cpu": time.process_time(), "cases": cases}


def main():
    for fd in (REQUESTS, REPLIES, MEMORY):
        os.set_inheritable(fd, False)
    limit_memory()
    if os.environ.get("PLUMB_WORKER_KERNEL"):
        withdraw()
    name = os.environ.get("PLUMB_WORKER_FRAMEWORK") or "torch"
    if name != "torch":
        try:
            import plumb_host
        except ModuleNotFoundError as e:
            raise Refusal("the kit needs %s beside %s: %s -m pip install %s" % (e.name, name, sys.executable, e.name)) from None
        subject = plumb_host.of(name)
    elif os.environ.get("PLUMB_WORKER_KERNEL"):
        import plumb_kernel

        subject = plumb_kernel.Kernel()
    else:
        import plumb_modes

        subject = plumb_modes.PyTorch()
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
    hello = subject.hello()
    code = plumb_code.digest(subject.adapter.root)
    if code:
        hello["features"] = {**hello["features"], "code": code}
    hello["cpu"] = time.process_time()
    write_all(b"plumb-worker 1 " + encode(hello).encode("ascii") + b"\n")
    memory = Memory()
    while True:
        frame = read_frame()
        if frame is None:
            return
        write_frame(encode(answer(subject, memory, json.loads(frame))))


def start():
    """Serves until the host has gone, and ends the process."""
    code = 0
    faulthandler.enable()
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # a file beyond the host's limit is its end, as in other languages
    try:
        main()
    except Refusal as e:
        sys.stderr.write("%s\n" % e)
        code = REFUSAL
    except BaseException:
        import traceback

        traceback.print_exc()
        code = FAULT
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # without torch's slow teardown


if __name__ == "__main__":
    start()
