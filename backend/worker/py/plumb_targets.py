"""Targets: what a public name of PyTorch stands for in a framework."""

import difflib
import functools
import operator
from types import GeneratorType

import plumb_ranks
import plumb_table
from plumb_names import DENIED, TYPES, Unsupported, is_open

OPERATORS = {"__%s__" % name.strip("_") for name in dir(operator)}
CALLED = ("Module.__call__", "Module.__repr__")
INPUT_LATER = ("torch.where", "torch.searchsorted", "torch.polygamma", "torch.special.polygamma")  # input is not the first argument
ASSIGNABLE = ("grad", "data", "requires_grad", "training")


class Targets(dict):
    """The callables that were asked for, by name; `makers` are the names of those that make modules."""

    def __init__(self, adapter):
        super().__init__()
        self.adapter, self.makers = adapter, set()

    def __missing__(self, target):
        f = resolve(self.adapter, target)
        modules = self.adapter.module_class
        if getattr(f, "constructs", False) or modules is not None and isinstance(f, type) and issubclass(f, modules):
            self.makers.add(target)
        self[target] = f
        return f


def resolve(adapter, target):
    """Returns the framework's callable for a public name of PyTorch."""
    if target == "torch.manual_seed":
        return adapter.seed
    if target == "Tensor.to_global":  # a whole tensor stays what it is
        return lambda tensor, placement=None, sbp=None, grad_sbp=None, itself=False: copied(adapter, tensor)
    if target == "Tensor.to_local":
        read = plumb_table.resolve(adapter, "operator.getitem") if adapter.own else operator.getitem
        return functools.partial(plumb_ranks.local, read)
    if target == "Module.to_global":
        return lambda module, placement=None, sbp=None: module
    if adapter.own:
        return plumb_table.resolve(adapter, target)
    if target in ("getattr", "setattr"):
        return attribute if target == "getattr" else functools.partial(assign, adapter)
    if adapter.table is None:
        return callable_of(adapter, target)
    difference = adapter.table.get(target, {})
    if difference is None:
        raise Unsupported("%s has no %s" % (adapter.name, target))
    if isinstance(difference, str):
        difference = {"call": difference}
    if "dtypes" in difference:
        return checked(adapter, target, difference)
    return arranged(adapter, target, difference)


def copied(adapter, tensor):
    """Returns a copy where the framework's tensors can be changed."""
    return tensor if adapter.functional else tensor.clone()


def callable_of(adapter, target):
    if target.startswith("torch.Tensor."):
        target = target[len("torch."):]
    root, _, name = target.partition(".")
    if root in ("Tensor", "Module"):
        public = target not in DENIED and (not name.startswith("_") or root == "Tensor" and name in OPERATORS or target in CALLED)
    else:
        public = is_open(target)
    if not public:
        raise Unsupported("%s is not open to programs" % target)
    if root == "Tensor":
        return adapter.method(name)
    if root == "Module":
        return module_method(adapter, name, target)
    if root == "operator":
        return member(operator, name, target)
    if root != "torch":
        return adapter.elsewhere(target)
    found = adapter.member(name)
    if isinstance(found, type) and "." not in name and name not in TYPES:
        raise Unsupported("%s is not open to programs" % target)
    return found


def member(owner, path, target):
    """Returns what is below a module under a path without private names."""
    for part in path.split("."):
        found = getattr(owner, part, None)
        if found is None:
            raise Unsupported("no callable %s%s" % (target, guess(part, dir(owner))))
        owner = found
    return owner


def guess(name, names):
    """Returns a question for the public name that is nearly the one that there is not."""
    near = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 1, 0.8)
    return ": is it %s?" % near[0] if near else ""


def module_method(adapter, name, target):
    def call(module, *args, **kwargs):
        if not adapter.is_module(module):
            raise TypeError("%s: expected a Module, got %s" % (target, type(module).__name__))
        found = getattr(module, name)(*args, **kwargs)
        return list(found) if isinstance(found, GeneratorType) else found

    return call


def arranged(adapter, target, difference):
    """Wraps a callable whose arguments are named or ordered otherwise, or have other defaults.
    The first one, which PyTorch calls input, is given by position."""
    f = callable_of(adapter, difference.get("call", target))
    rename, fill, drop, order, flag = (difference.get(k, {}) for k in ("rename", "fill", "drop", "order", "flag"))
    if isinstance(f, type) and not (rename or fill or drop):
        return f
    first = target not in INPUT_LATER

    def call(*args, **kwargs):
        if first and not args and "input" in kwargs and "input" not in rename:
            args = (kwargs.pop("input"),)
        if order or flag and any(isinstance(a, bool) for a in args[1:2]):
            kwargs.update(zip(order or [flag], args[1:]))
            args = args[:1]
        for name, value in list(kwargs.items()):
            if name in drop:
                if value != drop[name]:
                    raise Unsupported("no argument %s other than %r" % (name, drop[name]))
                del kwargs[name]
            elif name in rename:
                kwargs[rename[name]] = kwargs.pop(name)
        for name, value in fill.items():
            kwargs.setdefault(name, filled(adapter, value, args))
        return f(*args, **kwargs)

    return call


def filled(adapter, value, args):
    """Returns a default of the table: a dtype, an attribute of the first argument, or what stands there."""
    owner, _, name = value.partition(".") if isinstance(value, str) else ("", "", "")
    return adapter.dtype(name) if owner == "torch" else getattr(args[0], name) if owner == "input" else value


def checked(adapter, target, difference):
    """Wraps a callable that has some dtypes only, and would not say so."""
    f = arranged(adapter, target, difference)

    def call(*args, **kwargs):
        for a in (*args, *kwargs.values()):
            if isinstance(a, adapter.tensor_class) and adapter.dtype_name(a.dtype) not in difference["dtypes"]:
                raise Unsupported("%s has no %s of %s" % (adapter.name, target, adapter.dtype_name(a.dtype)))
        return f(*args, **kwargs)

    return call


def attribute(value, name, *default):
    if name.startswith("_") or "Tensor." + name in DENIED:
        raise Unsupported("attribute %s is not open to programs" % name)
    try:
        return getattr(value, name, *default)
    except AttributeError as e:
        raise Unsupported(str(e)) from None


def assign(adapter, value, name, new):
    if adapter.is_module(value):
        if name.startswith("_") or callable(getattr(type(value), name, None)):
            raise Unsupported("attribute %s cannot be assigned by programs" % name)
    elif not adapter.is_tensor(value) or name not in ASSIGNABLE:
        raise Unsupported("attribute %s cannot be assigned by programs" % name)
    setattr(value, name, new)
