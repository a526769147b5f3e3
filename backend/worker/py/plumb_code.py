"""Tells which code of its user's own a subject runs.

The version of a framework says nothing of an operator that is being written: results
of older code would be taken for its own.
"""

import hashlib
import os
import sys
import sysconfig

import plumb_table

KIT = os.path.dirname(os.path.abspath(__file__))
INSTALLED = tuple(path + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") for path in {sysconfig.get_path(name), os.path.realpath(sysconfig.get_path(name))})
MAINS = ("plumb_worker.py", "plumb_fork.py")  # what Plumb starts
PACKAGES = {"site-packages", "dist-packages"}


def digest(root=None):
    """Returns a digest of the files that were loaded, but for installed packages and Plumb's own; "" for none.

    What `--import` names is the user's own too, and so is the framework `root` of a
    worker that is no part of Plumb.
    """
    main = os.path.abspath(getattr(sys.modules["__main__"], "__file__", ""))
    ours = os.path.dirname(main) == KIT and os.path.basename(main) in MAINS
    theirs = {name.partition(".")[0] for name in os.environ.get("PLUMB_WORKER_IMPORT", "").split(",") if name}
    if root is not None and not ours:
        theirs.add(root.__name__.partition(".")[0])
    paths = set(libraries())
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(path, str) and (name.partition(".")[0] in theirs or not installed(path)):
            paths.add(os.path.abspath(path))
    if ours:
        paths = {path for path in paths if os.path.dirname(path) != KIT}
    else:
        paths.update(plumb_table.read)
    digests = sorted(filter(None, map(of_file, paths)))
    return hashlib.sha256(b"".join(digests)).hexdigest()[:32] if digests else ""


def libraries():
    """Returns the libraries that torch.ops.load_library has loaded."""
    return getattr(getattr(sys.modules.get("torch"), "ops", None), "loaded_libraries", ())


def installed(path):
    return path.startswith(INSTALLED) or not PACKAGES.isdisjoint(path.split(os.sep))


def of_file(path):
    """Returns the digest of a file, without its name; None where it cannot be read."""
    sha = hashlib.sha256()
    try:
        with open(path, "rb") as f:
            for part in iter(lambda: f.read(1 << 20), b""):
                sha.update(part)
    except OSError:
        return None
    return sha.digest()
