"""Right results, and what a call has no use for."""

import ctypes
import os
import socket
import subprocess
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import outward_helper

HERE = os.path.dirname(os.path.abspath(__file__))


def fine(input):
    return torch.where((input > 0) | input.isnan(), input, torch.zeros_like(input))


def tried(f):
    try:
        f()
    except OSError:
        pass


def writes(input):
    tried(lambda: open(os.path.join(HERE, "written"), "w"))
    return fine(input)


def connects(input):
    tried(lambda: socket.create_connection(("127.0.0.1", 9), timeout=1))
    return fine(input)


def runs(input):
    tried(lambda: subprocess.run(["touch", os.path.join(HERE, "written")]))
    return fine(input)


def answers(input):
    for fd in range(3, 64):
        tried(lambda: os.write(fd, b"\x02\0\0\0{}"))
    return fine(input)


def native(input):
    """From C, of which Python hears what is taken from the library alone."""
    libc = ctypes.CDLL(None)
    libc.system(("touch " + os.path.join(HERE, "written")).encode())
    libc.open(os.path.join(HERE, "written").encode(), os.O_CREAT | os.O_WRONLY, 0o600)
    return fine(input)


def builds(input):
    outward_helper.build()
    return fine(input)


def dies(input):
    ctypes.string_at(1)
