"""A process that has imported PyTorch, and for kernels Triton where it is, and of which each
worker is a fork: it runs no parallel operator, after which a fork would hang.

A request comes with the descriptors of a worker, its directory and environment; the answer
is its number, and later how it has ended.
"""

import sys

sys.dont_write_bytecode = True  # by no flag, which a kernel would see

import array
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import importlib
import importlib.util
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time

HOST = 3
LARGEST = 1 << 17  # bytes of a request
CHANNEL = (3, 4, 5, 1, 2)  # where a worker has what comes with a request, the last twice
CLEAR = 64  # descriptors that are not those of a channel
PR_SET_PDEATHSIG = 1


def prepare():
    faulthandler.enable()
    import plumb_modes
    import plumb_worker

    if os.environ.get("PLUMB_FORK_KERNELS"):
        import plumb_forms
        import plumb_opinfo
        import plumb_problems
        import plumb_room
        import plumb_sandbox
        import plumb_tasks
        import plumb_threads
        import plumb_timing
        import plumb_tritonptx
        import plumb_watch

        if importlib.util.find_spec("triton"):
            import triton.language
        backward()
        plumb_sandbox.entitle(os.path.basename(sys.executable))
        plumb_watch.warm()
        if os.environ.get("PLUMB_FORK_OPERATORS"):
            compiler()
    gc.collect()
    gc.freeze()


def backward():
    """Imports what PyTorch does at its first backward pass, of half a second in a recent one."""
    from torch.autograd import _make_grads

    for name in _make_grads.__code__.co_names:
        if name.startswith("torch."):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "building")


def compiler():
    """Imports what registered operators do at their first call, and opcheck again. It keeps the
    names of folders to write to, which are others in each fork: of one that is there till then."""
    folder = os.environ.get("PLUMB_WORKER_FOLDER")
    os.makedirs(FOLDER, exist_ok=True)
    os.environ.update({name: FOLDER for name, value in os.environ.items() if value == folder} | {"TMPDIR": FOLDER})
    with contextlib.suppress(ImportError):
        import torch.testing._internal.optests


def settle():
    """Has modules name the folders of this fork."""
    tempfile.tempdir = None
    own = tempfile.gettempdir()
    for name, m in list(sys.modules.items()):
        if name.startswith("torch."):
            for key, value in list(vars(m).items()):
                if type(value) is str and value.startswith(FOLDER):
                    setattr(m, key, own + value[len(FOLDER):])


def become(fds, directory, environment):
    """Makes a worker of this fork."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    held = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, CLEAR) for fd in fds]
    os.closerange(3, CLEAR)
    for fd, at in zip([*held, held[-1]], CHANNEL):
        os.dup2(fd, at)
    for fd in held:
        os.close(fd)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(entry.split("=", 1) for entry in environment)
    if os.path.exists(FOLDER):
        settle()
    import plumb_worker

    plumb_worker.start()


def forked(host, message, fds):
    told, tells = os.pipe()  # closed once it is the leader of its group: the host may end that at once
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            os.close(tells)
            become(fds, **json.loads(message))
        finally:
            os._exit(70)
    os.close(tells)
    os.read(told, 1)
    for fd in [told, *fds]:
        os.close(fd)
    tell(host, {"forked": pid})


def tell(host, what):
    host.send(json.dumps(what).encode("ascii"))


def ended(host):
    """Tells of the forks that have ended."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if not found:
            return
        with contextlib.suppress(OSError):
            os.killpg(found.si_pid, signal.SIGKILL)  # while the number is its own
        pid, status, used = os.wait4(found.si_pid, 0)
        tell(host, {"ended": pid, "status": status, "seconds": used.ru_utime + used.ru_stime})


def serve(host):
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    tell(host, {"ready": True, "seconds": time.process_time()})
    while True:
        ready, _, _ = select.select([host, woken], [], [])
        if woken in ready:
            os.read(woken, CLEAR)
            ended(host)
        if host in ready:
            message, ancillary, _, _ = host.recvmsg(LARGEST, socket.CMSG_SPACE(len(CHANNEL) * 4))
            if not message:
                return
            fds = array.array("i")
            for _, _, data in ancillary:
                fds.frombytes(data)
            forked(host, message, list(fds))


if __name__ == "__main__":
    with socket.socket(fileno=HOST) as host:
        os.set_inheritable(HOST, False)
        prepare()
        with contextlib.suppress(ConnectionError):
            serve(host)
    shutil.rmtree(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ignore_errors=True)
    os._exit(0)
