"""What the subject of plumb bench campaign --torture does to whoever multiplies by -1000 - n:
the n-th deed. Where PLUMB_UNRULY is "tell" it only gives a wrong number there."""

import mmap
import os
import random
import signal
import sys
import tempfile
import threading
import time

REPLIES, MEMORY = 4, 5


def frame(text):
    os.write(REPLIES, len(text).to_bytes(4, "little") + text.encode())
    time.sleep(3600)


def segfault(y):
    os.kill(os.getpid(), signal.SIGSEGV)


def abort(y):
    os.abort()


def leave(y):
    os._exit(0)


def hang(y):
    time.sleep(3600)


def spin(y):
    while True:
        pass


def swell(y):
    kept = []
    while True:
        kept.append(b"x" * (128 << 20))


def bomb(y):
    while True:
        os.fork()


def crowd(y):
    for _ in range(8):
        threading.Thread(target=spin, args=(y,), daemon=True).start()
    spin(y)


def fill(y):
    with tempfile.TemporaryFile() as f:
        while True:
            f.write(b"x" * (1 << 20))


def pour(y):
    while True:
        sys.stdout.write("spam " * (1 << 18))


def orphan(y):
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
    os.kill(os.getpid(), signal.SIGKILL)


def scribble(y):
    if os.fork() == 0:
        os.setsid()
        ours = mmap.mmap(MEMORY, 0)
        while True:
            ours[64:4096] = b"\xff" * 4032
    return y


def flood(y):
    for _ in range(64):
        sys.stdout.write("\x1b[2J spam " * (1 << 13))
    return y


def garbage(y):
    os.write(REPLIES, b"\xff" * 100)
    time.sleep(3600)


def truncate(y):
    try:
        os.ftruncate(MEMORY, 0)
    except OSError:
        pass
    return y


def lie(y):
    frame('{"id":1,"cpu":0,"size":1,"cases":[{"status":"ok","values":[["t","float32",64,[1099511627776],null,false]]}]}')


def close(y):
    os.close(REPLIES)
    os.close(3)
    time.sleep(3600)


def late(y):
    time.sleep(6)
    return y


def waver(y):
    return y + random.random() + 1


DEEDS = [segfault, abort, leave, hang, spin, swell, bomb, crowd, fill, pour, orphan, scribble, flood, garbage, truncate, lie, close, late, waver]


def deed(y, other):
    if not isinstance(other, float) or other > -1000:
        return y
    if os.environ.get("PLUMB_UNRULY") == "tell":
        return y + 1
    return DEEDS[int(-1000 - other)](y)


class Unruly(adapter):
    def deed(self, y, other):
        return deed(y, other)


adapter = Unruly
