"""Functions that a kernel puts in the place of others elsewhere than in a module: methods of classes, the
code of a function, a module by its name, what an import is.

Everything that is used here is taken before the kernel's file is imported.
"""

import builtins
import sys

from plumb_left import mentions

FUNCTION = type(lambda: None)
OF_CLASSES = ("torch.nn", "torch.cuda", "torch.autograd", "torch.optim", "torch.utils.benchmark", "torch.utils.data")  # whose classes are looked at
BUILDING = ("__import__", "__build_class__")  # of builtins
LOOKED = 2  # calls after which classes are looked at, which takes a millisecond


class Patched:
    def __init__(self, file):
        self.coded = mentions(file, b"__code__")
        self.codes, self.modules, self.classes, self.had = {}, {}, {}, set()
        self.building = [(name, getattr(builtins, name)) for name in BUILDING]

    def begin(self, functions, modules):
        """Keeps what there is before the kernel's file is imported."""
        if self.coded:
            self.codes = {name: (f, f.__code__) for name, f in functions.items() if type(f) is FUNCTION}
        self.modules = {name: sys.modules[name] for name in modules if name in sys.modules}
        self.classes = {(name, k): v for name in OF_CLASSES if name in sys.modules for k, v in vars(sys.modules[name]).items() if isinstance(v, type)}
        self.had = {f for v in self.classes.values() for _, f in written(v)}

    def look(self, watch, when):
        for name, (f, code) in self.codes.items():
            if f.__code__ is not code and watch.wrote(f.__code__):
                watch.note("patches", "replaces the code of %s %s" % (name, when))
        for name, module in self.modules.items():
            if sys.modules.get(name) is not module:
                watch.note("patches", "replaces the module %s %s" % (name, when))
                sys.modules[name] = module
        for name, f in self.building:
            if getattr(builtins, name) is not f:
                watch.note("patches", "replaces builtins.%s %s" % (name, when))
                setattr(builtins, name, f)
        if watch.calls <= LOOKED:
            self.methods(watch, when)

    def methods(self, watch, when):
        for (name, k), v in self.classes.items():
            now = getattr(sys.modules[name], k, None)
            if now is not v and isinstance(now, type) and any(watch.wrote(f.__code__) for _, f in written(now)):
                watch.note("patches", "replaces %s.%s %s" % (name, k, when))
        known = set(self.classes.values())
        for name in OF_CLASSES:
            for k, v in list(vars(sys.modules[name]).items()) if name in sys.modules else ():
                if isinstance(v, type) and (v in known or str(v.__module__).startswith("torch")):
                    for method, f in written(v):  # those of a dataclass that came with a package are of no file
                        if f not in self.had and watch.wrote(f.__code__) and (v in known or f.__code__.co_filename != "<string>"):
                            watch.note("patches", "replaces %s.%s.%s %s" % (name, k, method, when))


def written(v):
    """Lists the functions of a class by their names, those behind properties and the like too."""
    for name, f in list(vars(v).items()):
        f = getattr(f, "__func__", getattr(f, "fget", f))
        if type(f) is FUNCTION:
            yield name, f
