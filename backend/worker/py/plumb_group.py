"""Cases over ranks that are processes, on the loopback: this process hands each case to
all of them and replies what the first says, if the others agree.

A rank is plumb_rank.py. Where one ends or hangs, its group is ended, with a text that names the
rank and the call in which each other waits.
"""

import atexit
import contextlib
import json
import mmap
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from plumb_names import Unsupported

WAITING = 50  # seconds for a case, and for the start of the ranks before it
MESHES = ("", "-3", "-4", "-2x2")  # of the names of modes; the first has two ranks

# The files of the worker, which the host removes once it has greeted.
FILES = {p.name: p.read_bytes() for p in pathlib.Path(__file__).parent.iterdir() if p.suffix in (".py", ".json")}


def modes(name):
    """Lists a mode by its meshes."""
    return [name + mesh for mesh in MESHES]


def mesh_of(mode):
    """Returns the mode without its mesh, and the mesh."""
    name, _, mesh = mode.rpartition("-")
    if not mesh[:1].isdigit():
        name, mesh = mode, "2"
    return name, [int(n) for n in mesh.split("x")]


class Ended(Exception):
    """What became of a group, and the status of its case."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Group:
    """The ranks that run now."""

    key = ranks = sources = None

    @classmethod
    def of(cls, module, mesh, memory_fd, until):
        """Returns the group of a mesh, started where another runs."""
        if cls.ranks is None or cls.key != mesh:
            cls.close()
            cls.start(module, mesh, memory_fd, until)
        return cls

    @classmethod
    def start(cls, module, mesh, memory_fd, until):
        world = 1
        for n in mesh:
            world *= n
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        marks = os.memfd_create("marks")
        os.ftruncate(marks, mmap.PAGESIZE)
        cls.marks = memoryview(mmap.mmap(marks, mmap.PAGESIZE)).cast("I")
        cls.key, cls.ranks, cls.sources = mesh, [], tempfile.mkdtemp(prefix="plumb-ranks-")
        for name, text in FILES.items():
            pathlib.Path(cls.sources, name).write_bytes(text)
        for rank in range(world):
            there, ours = os.pipe(), os.pipe()
            env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(world), RANK=str(rank), LOCAL_RANK=str(rank))
            args = [sys.executable, os.path.join(cls.sources, "plumb_rank.py"), module, json.dumps(mesh)]
            fds = [there[0], ours[1], memory_fd, marks]
            process = subprocess.Popen(args + [str(fd) for fd in fds], env=env, pass_fds=fds, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            os.close(there[0])
            os.close(ours[1])
            cls.ranks.append(Member(process, there[1], ours[0]))
        os.close(marks)
        cls.gather("the start", until)
        cls.forget()

    @classmethod
    def forget(cls):
        """Removes the files, which the ranks have read."""
        if cls.sources:
            shutil.rmtree(cls.sources, ignore_errors=True)
        cls.sources = None

    @classmethod
    def close(cls):
        cls.forget()
        for r in cls.ranks or ():
            r.close()
        cls.ranks = None

    @classmethod
    def run(cls, request, targets, until):
        for r in cls.ranks:
            r.send(request)
        return cls.gather(targets, until)

    @classmethod
    def gather(cls, targets, until):
        """Returns what each rank answers."""
        answers = {}
        while len(answers) < len(cls.ranks):
            silent = {r.reads: i for i, r in enumerate(cls.ranks) if i not in answers}
            ready, _, _ = select.select(list(silent), [], [], max(0, until - time.monotonic()))
            if not ready:
                raise Ended("timeout", cls.told(sorted(silent.values()), targets, "did not answer within %d s" % WAITING))
            for fd in ready:
                answer = cls.ranks[silent[fd]].receive()
                if answer is None:
                    dead = silent[fd]
                    status = cls.ranks[dead].process.wait()
                    how = "by " + signal.Signals(-status).name if status < 0 else "with status %d" % status
                    raise Ended("crash", cls.told([dead], targets, "ended " + how))
                if answer:
                    answers[silent[fd]] = json.loads(answer)
        return [answers[i] for i in range(len(cls.ranks))]

    @classmethod
    def told(cls, ranks, targets, what):
        """Says what became of ranks, and where all of them are."""
        def at(i):
            return targets if isinstance(targets, str) else "call %d, %s" % (cls.marks[i], targets[cls.marks[i]])

        others = ["rank %d is at %s" % (i, at(i)) for i in range(len(cls.ranks)) if i not in ranks]
        return "; ".join(["rank %d %s at %s" % (i, what, at(i)) for i in ranks] + others)


class Member:
    """A rank, seen from here."""

    def __init__(self, process, writes, reads):
        self.process, self.writes, self.reads, self.text = process, writes, reads, b""

    def send(self, request):
        data = memoryview(request)
        with contextlib.suppress(BrokenPipeError):  # it has ended, which gather tells
            while data:
                data = data[os.write(self.writes, data):]

    def receive(self):
        """Returns an answer, nothing while it is not whole, None where the rank has ended."""
        more = os.read(self.reads, 1 << 20)
        if not more:
            return None
        self.text += more
        if not self.text.endswith(b"\n"):
            return b""
        text, self.text = self.text, b""
        return text

    def close(self):
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.writes)
        os.close(self.reads)


atexit.register(Group.close)


class Forwarded:
    """One case, which the ranks run, each as the module says."""

    module = None
    elapsed = cpu = call = 0

    def __init__(self, adapter, targets, memory, case):
        self.adapter, self.memory, self.case = adapter, memory, case

    def run(self):
        mode, mesh = mesh_of(self.case["mode"])
        until = time.monotonic() + WAITING
        group = Group.of(self.module, mesh, self.memory.fd, until)
        case = dict(self.case, mode="graph" if mode.endswith("graph") else "eager")
        request = {"case": case, "index": self.memory.mark[0], "top": self.memory.top, "size": self.memory.size}
        answers = group.run(json.dumps(request).encode("ascii") + b"\n", [call[0] for call in self.case["calls"]] + ["the backward pass"], until)
        first = answers[0]
        self.memory.follow(first["size"])
        self.memory.top = first["top"]
        self.elapsed, self.cpu = first["elapsed"], sum(a["cpu"] for a in answers)
        self.call = first["reply"].get("call", 0)
        for i, a in enumerate(answers):
            if (a["reply"]["status"], a["reply"].get("call")) != (first["reply"]["status"], first["reply"].get("call")):
                group.close()  # what the ranks of one case do not agree on may reach the next
                if "unsupported" in (a["reply"]["status"], first["reply"]["status"]):
                    raise Unsupported("ranks 0 and %d: %s and %s" % (i, outcome(first["reply"]), outcome(a["reply"])))
                raise RuntimeError("ranks disagree: rank 0 %s, rank %d %s" % (outcome(first["reply"]), i, outcome(a["reply"])))
            differ = [one[0] for one, other in zip(first["sums"], a["sums"]) if one != other]
            if differ:
                self.call = differ[0]
                raise RuntimeError("rank %d has other elements than rank 0 of a tensor that both have whole" % i)
        return first["reply"]

    def failed(self, e):
        status = e.status if isinstance(e, Ended) else "unsupported" if isinstance(e, Unsupported) else "raised"
        if status in ("crash", "timeout"):
            Group.close()
        return {"status": status, "class": "" if isinstance(e, Ended) else type(e).__name__, "message": str(e), "call": self.call}


def forwarded(module):
    """Returns the runs of cases that each rank runs as the module says."""
    return type("Forwarded", (Forwarded,), {"module": module})


def outcome(reply):
    return "%s %s: %s" % (reply["status"], reply.get("class", ""), reply.get("message", "").partition("\n")[0])
