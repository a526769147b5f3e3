"""Keeps the process of a kernel to itself, as the machine allows.

In two phases: `begin`, before the kernel is imported, leaves it a compiler and one folder
to write to; `seal`, before it is called, takes both. What neither could take is told.
"""

import builtins
import ctypes
import faulthandler
import os
import platform
import resource
import signal
import struct
import sys
import types

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# Of the system calls, by machine; one that a machine lacks is not there.
NUMBERS = {
    "x86_64": dict(open=2, socket=41, connect=42, bind=49, listen=50, clone=56, fork=57, vfork=58, execve=59, kill=62, rename=82, mkdir=83, rmdir=84, creat=85,
                   link=86, unlink=87, symlink=88, truncate=76, ptrace=101, mknod=133, rt_sigqueueinfo=129, tkill=200, tgkill=234, openat=257, mkdirat=258, mknodat=259,
                   unlinkat=263, renameat=264, linkat=265, symlinkat=266, rt_tgsigqueueinfo=297, perf_event_open=298, process_vm_readv=310,
                   process_vm_writev=311, renameat2=316, seccomp=317, bpf=321, execveat=322, mount=165, umount2=166, pivot_root=155, setns=308, unshare=272),
    "aarch64": dict(socket=198, connect=203, bind=200, listen=201, clone=220, execve=221, kill=129, truncate=45, ptrace=117, rt_sigqueueinfo=138, tkill=130,
                    tgkill=131, openat=56, mkdirat=34, mknodat=33, unlinkat=35, renameat=38, linkat=37, symlinkat=36, rt_tgsigqueueinfo=240,
                    perf_event_open=241, process_vm_readv=270, process_vm_writev=271, renameat2=276, seccomp=277, bpf=280, execveat=281, mount=40,
                    umount2=39, pivot_root=41, setns=268, unshare=97),
}
COMMON = dict(pidfd_send_signal=424, io_uring_setup=425, pidfd_open=434, clone3=435, openat2=437, pidfd_getfd=438, landlock_create_ruleset=444, landlock_add_rule=445, landlock_restrict_self=446)
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

MACHINE = platform.machine()
NUMBER = dict(NUMBERS.get(MACHINE, {}), **COMMON)


def call(name, *args):
    """Makes a system call; OSError where it fails."""
    done = libc.syscall(ctypes.c_long(NUMBER[name]), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if done < 0:
        raise OSError(ctypes.get_errno(), name)
    return done


PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38


def prctl(*args):
    if libc.prctl(*[ctypes.c_ulong(a) for a in args + (0,) * (5 - len(args))]) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


# Seccomp: a program of BPF, made of a few lines for each call.

LOAD, JUMP_EQUAL, JUMP_ABOVE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38
X32 = 0x40000000  # numbers of another table on x86-64
CLONE_THREAD = 0x10000
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
AF_UNIX = 1


def argument(i):
    """Returns where the low half of a call's argument lies."""
    return 16 + 8 * i


def refuse(name, error=EPERM):
    return [(JUMP_EQUAL, 0, 1, NUMBER[name]), (RETURN, 0, 0, ERRNO | error)] if name in NUMBER else []


def refuse_if(name, i, test, wanted, otherwise=ALLOW):
    """Refuses a call where a test of its argument i is not what is wanted."""
    if name not in NUMBER:
        return []
    then = (1, 0) if wanted else (0, 1)
    return [(JUMP_EQUAL, 0, 4, NUMBER[name]), (LOAD, 0, 0, argument(i)), (test[0], *then, test[1]), (RETURN, 0, 0, ERRNO | EPERM), (RETURN, 0, 0, otherwise)]


def install(rules):
    """Installs rules in all threads."""
    program = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, AUDIT_ARCH[MACHINE]), (RETURN, 0, 0, ERRNO | EPERM), (LOAD, 0, 0, 0)]
    if MACHINE == "x86_64":
        program += [(JUMP_ABOVE, 0, 1, X32), (RETURN, 0, 0, ERRNO | EPERM)]
    program += [line for rule in rules for line in rule] + [(RETURN, 0, 0, ALLOW)]
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    lines = ctypes.create_string_buffer(code)
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(lines)))
    call("seccomp", 1, 1, ctypes.c_void_p(ctypes.addressof(head)))  # SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC


def network_rules():
    return [refuse_if("socket", 0, (JUMP_EQUAL, AF_UNIX), True), *map(refuse, ("connect", "bind", "listen", "bpf", "perf_event_open")), refuse("io_uring_setup", ENOSYS)]


def other_rules():
    """What reaches other processes."""
    me = (JUMP_EQUAL, os.getpid())
    return [*[refuse_if(name, 0, me, True) for name in ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")],
            *map(refuse, ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "mount", "umount2", "pivot_root", "setns", "unshare"))]


def process_rules():
    return [*map(refuse, ("execve", "execveat", "fork", "vfork")), refuse_if("clone", 0, (JUMP_SET, CLONE_THREAD), True), refuse("clone3", ENOSYS)]


def file_rules():
    return [refuse_if("open", 1, (JUMP_SET, WRITES), False), refuse_if("openat", 2, (JUMP_SET, WRITES), False), refuse("openat2", ENOSYS),
            *map(refuse, ("creat", "mkdir", "mkdirat", "mknod", "mknodat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "truncate"))]


# Landlock: the folders that are written to.

FIRST_WRITES = 0x1FF2  # WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_* of its first version
REFER, TRUNCATE = 1 << 13, 1 << 14  # of the second and the third
SCOPES = 3  # abstract sockets and signals, of the sixth
ON_FILES = 0x2 | TRUNCATE  # the rights that a rule for a file may have


def landlock(folders):
    """Lets nothing be written but below folders."""
    version = call("landlock_create_ruleset", ctypes.c_void_p(None), 0, 1)
    rights = FIRST_WRITES | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    given = struct.pack("QQQ", rights, 0, SCOPES)[:24 if version >= 6 else 8]
    rules = call("landlock_create_ruleset", ctypes.create_string_buffer(given, len(given)), len(given), 0)
    for folder in folders:
        try:
            at = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = rights if os.path.isdir(folder) else rights & ON_FILES
        call("landlock_add_rule", rules, 1, ctypes.create_string_buffer(struct.pack("=Qi", allowed, at), 12), 0)
        os.close(at)
    call("landlock_restrict_self", rules, 0)
    os.close(rules)


# The rest.

KEPT_CAPABILITIES = (0, 1, 2, 3)  # CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER: of root's own files
LAST_CAPABILITY = 40
CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000
PROCESSOR_SECONDS, FILE_BYTES = 3600, 8 << 30


def namespaces():
    """A network and shared memory of its own: of root's, or in a user namespace."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0:
        return
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "%d %d 1" % (user, user)), ("gid_map", "%d %d 1" % (group, group))):
        with open("/proc/self/" + name, "w") as f:
            f.write(text)


def drop_capabilities():
    for c in range(LAST_CAPABILITY + 1):
        if c not in KEPT_CAPABILITIES:
            libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(c), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    head, kept = struct.pack("Ii", 0x20080522, 0), sum(1 << c for c in KEPT_CAPABILITIES)
    now = ctypes.create_string_buffer(24)
    if libc.capget(head, now) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    effective, permitted, inheritable = struct.unpack("III12x", now.raw)
    if libc.capset(head, struct.pack("IIIIII", effective & kept, permitted & kept, inheritable & kept, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def limits(lasting):
    most = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: FILE_BYTES}
    if not lasting:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        most.update({resource.RLIMIT_CPU: PROCESSOR_SECONDS, resource.RLIMIT_AS: memory})
    for which, most in most.items():
        soft, hard = resource.getrlimit(which)
        if hard == resource.RLIM_INFINITY or hard > most:
            resource.setrlimit(which, (most, most))


def end_children():
    """Ends what the import has started, which the process has adopted where it was left behind."""
    for _ in range(100):
        mine = children()
        if not mine:
            return
        for pid in mine:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for pid in mine:
            try:
                os.waitpid(pid, 0)
            except OSError:
                pass


def children():
    me, found = str(os.getpid()), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                if f.read().rpartition(")")[2].split()[1] == me:
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Sandbox:
    """What was taken of the process, and what could not be."""

    def __init__(self, folder):
        self.folder, self.held, self.missing = folder, [], []

    def take(self, what, *how):
        """Does what takes something; the first way that works is enough."""
        errors = []
        for f in how:
            try:
                f()
            except Exception as e:
                errors.append("%s: %s" % (what, e))
            else:
                self.held.append(what)
                return
        self.missing.append(errors[0])

    def begin(self, lasting=False):
        """Leaves a compiler and the folder; one that runs for days is not held to a kernel's time and memory,
        and has no part of the files that kernels share."""
        if sys.platform != "linux" or MACHINE not in NUMBERS:
            self.missing.append("all: there is one for Linux on x86-64 and aarch64")
            return
        self.take("limits", lambda: limits(lasting))
        self.take("namespaces", namespaces)
        self.take("privileges", lambda: (drop_capabilities(), prctl(PR_SET_NO_NEW_PRIVS, 1), prctl(PR_SET_CHILD_SUBREAPER, 1)))
        self.take("network", lambda: install(network_rules()))
        given = os.environ.get("TORCH_EXTENSIONS_DIR")
        if given and not lasting:
            os.makedirs(given, exist_ok=True)
        shared = [] if lasting else ["/dev/shm", *([given] if given else [])]
        self.take("folders", lambda: landlock([self.folder, "/dev/null", *shared]))

    def seal(self, builds):
        """Takes what calls need not have; a kernel that builds when it is called keeps the compiler."""
        if not self.held:
            return
        end_children()
        self.take("others", lambda: install(other_rules()))
        if builds:
            self.missing.append("files, processes: in a call " + builds)
            return
        self.take("processes", lambda: install(process_rules()))
        self.take("files", lambda: install(file_rules()))

    def told(self):
        return {"held": self.held, "missing": self.missing}


def hide():
    """Lets no other process of this user look into this one."""
    if sys.platform == "linux":
        prctl(PR_SET_DUMPABLE, 0)


def unnamed(files, modules):
    """Takes the judge's marks from where a kernel that behaves while it is judged would find them: it runs as by
    python FILE. Its modules stay in use: what they need of each other they have imported."""
    for name in [n for n in os.environ if n.startswith(("PLUMB", "MALLOC_"))]:
        del os.environ[name]
    for name in THREADS:
        os.environ._data.pop(os.environ.encodekey(name), None)  # libraries that are loaded later are to have it
    resource.getrlimit = unlimited
    main = type(sys.modules["__main__"])("__main__")  # which tells of who looks into it
    for name, module in list(sys.modules.items()):
        if any(module is m for m in modules):
            del sys.modules[name]
    sys.modules["__main__"] = main
    main.__builtins__ = builtins
    if files:
        main.__file__ = files[0]
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    sys.argv[:] = files[:1] or [""]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.executable, *files[:1]]
    sys.dont_write_bytecode = False
    faulthandler.is_enabled = "".isidentifier  # a function of C's that says no
    entitle(os.path.basename(sys.executable), *map(os.path.basename, files[:1]))


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
getrlimit = resource.getrlimit


def unlimited(which, /):
    """Returns a limit as processes have it that nobody holds to one."""
    most = resource.RLIM_INFINITY
    known = {resource.RLIMIT_CORE: (0, most), **dict.fromkeys((resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE), (most, most))}
    return known.get(which) or getrlimit(which)


unlimited.__name__ = unlimited.__qualname__ = "getrlimit"


class Flags:
    """Those of Python, some of them others."""

    def __init__(self, flags, **others):
        vars(self).update({name: getattr(flags, name) for name in dir(flags) if not name.startswith("_")}, **others)


def named():
    """Has the process look as a judge's does that hides nothing."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plumb_worker.py")
    os.environ.update(PLUMB_WORKER_KERNEL="{}", MALLOC_PERTURB_="129", PYTHONDONTWRITEBYTECODE="1", PYTHONFAULTHANDLER="1", PYTEST_CURRENT_TEST=here, CI="true")
    for name in ("plumb_worker", "plumb_kernel", "plumb_watch", "plumb", "pytest"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["__main__"].__file__ = sys.argv[0] = here
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = [sys.executable, "-B", "-X", "faulthandler", here]
    sys.path.insert(0, os.path.dirname(here))
    sys._xoptions["faulthandler"] = True
    sys.flags, sys.dont_write_bytecode = Flags(sys.flags, dont_write_bytecode=1), True
    faulthandler.is_enabled = "1".isdigit  # it says yes


FIRST_FIELD, ARGUMENTS = 3, slice(48, 50)  # of /proc/PID/stat: after the name; where the command's words begin and end


def entitle(*words):
    """Has ps show a command of other words."""
    try:
        with open("/proc/self/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        start, end = map(int, fields[ARGUMENTS.start - FIRST_FIELD:ARGUMENTS.stop - FIRST_FIELD])
    except (OSError, ValueError):
        return
    if 0 < start < end:
        room = end - start
        ctypes.memmove(start, b"\0".join(map(os.fsencode, words))[:room - 1].ljust(room, b"\0"), room)


def confine(program):
    """Runs a program as a kernel is imported: with a compiler, and one folder to write to."""
    import runpy

    Sandbox(os.environ.pop("PLUMB_WORKER_FOLDER")).begin()
    sys.argv[:], sys.path[0] = [program], os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")


def become(folder, command):
    """Becomes a subject that has no network and writes to one folder alone, or says why it cannot."""
    parent = os.getppid()
    box = Sandbox(folder)
    box.begin(lasting=True)
    if not {"network", "folders"} <= set(box.held):
        sys.exit("this machine has no sandbox for it: " + "; ".join(box.missing))
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of privileges has unset it
    if os.getppid() == parent:
        os.execvp(command[0], command)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        confine(sys.argv[1])
    else:
        become(sys.argv[1], sys.argv[2:])
