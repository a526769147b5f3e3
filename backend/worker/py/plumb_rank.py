"""A rank of a group (plumb_group.py): it runs the cases that all ranks run, each as the module
says that the group names, and tells a sum of what it has whole then.
"""

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import signal
import sys

import plumb_worker

PR_SET_PDEATHSIG = 1


class Others(plumb_worker.Memory):
    """The memory of a rank that writes nothing: the first does."""

    def __init__(self, mark):
        super().__init__()
        self.mark = mark

    def map(self, size):
        mark = getattr(self, "mark", None)
        super().map(size)
        self.mark = mark


class First(plumb_worker.Memory):
    """That of the first rank, whose place the host and the group see."""

    def __init__(self, mark):
        super().__init__()
        self.both = mark
        self.mark = Both(self.mark, mark)

    def map(self, size):
        super().map(size)
        if hasattr(self, "both"):
            self.mark = Both(self.mark, self.both)


class Both:
    """A mark in two places."""

    def __init__(self, host, group):
        self.host, self.group = host, group

    def __setitem__(self, i, v):
        self.host[i] = v
        self.group[i] = v

    def __getitem__(self, i):
        return self.host[i]


def main():
    module, mesh, *fds = sys.argv[1:]
    requests, replies, memory_fd, marks_fd = map(int, fds)
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(0)
    plumb_worker.limit_memory()
    rank = int(os.environ["RANK"])
    mark = memoryview(mmap.mmap(marks_fd, mmap.PAGESIZE)).cast("I")
    plumb_worker.MEMORY = memory_fd
    memory = Others(Mark(mark, rank)) if rank else First(Mark(mark, 0))
    ranked = importlib.import_module(module).ranked(rank, json.loads(mesh))
    with os.fdopen(requests, "rb") as lines, os.fdopen(replies, "wb", buffering=0) as out:
        out.write(b"{}\n")
        for line in lines:
            request = json.loads(line)
            memory.follow(request["size"])
            memory.top = request["top"]
            memory.mark[1] = 0
            one = ranked(memory, request["case"])
            try:
                reply = one.run()
            except Exception as e:
                reply = one.failed(e)
            one.adapter.settle()
            answer = {"reply": reply, "sums": one.sums, "top": memory.top, "size": memory.size, "elapsed": one.elapsed, "cpu": one.cpu}
            data = memoryview(json.dumps(answer).encode("ascii") + b"\n")
            while data:
                data = data[out.write(data):]


class Mark:
    """Where a rank says which call it makes."""

    def __init__(self, all_ranks, rank):
        self.all, self.rank = all_ranks, rank

    def __setitem__(self, i, v):
        if i == 1:
            self.all[self.rank] = v

    def __getitem__(self, i):
        return self.all[self.rank]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
    os._exit(0)
