"""What is said of mistakes in an adapter: where they are, and what the kit asks for there."""

import ast
import difflib
import linecache
import os
import sys

from plumb_names import Refusal, Unsupported

MISTAKES = (AttributeError, NameError, TypeError)
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # where the kit and its adapters are
CLASS = "name and version; root, the module of the framework; tensor_class, the class of its tensors; table, what is in its file"


def raised_at(e):
    """Returns the innermost line of Python that raised an exception."""
    at = e.__traceback__
    while at.tb_next:
        at = at.tb_next
    return at


def explained(adapter, kit, values, e):
    """Returns, behind a space, what an exception in an adapter's module, or about a tensor that it made, tells of
    the adapter; "" of one of the framework. `kit` is the class that says what its methods are for."""
    at, module = raised_at(e), type(adapter).__module__
    if isinstance(e, Unsupported):
        return ""
    mistake = isinstance(e, MISTAKES)
    if at.tb_frame.f_globals.get("__name__") == module:
        return " (%s.py, line %d%s)" % (module, at.tb_lineno, asked(kit, entered(module, e)) if mistake else "")
    if mistake and at.tb_frame.f_code.co_filename.startswith(HERE):
        lacks = next(filter(None, (lacking(v) for v in values if adapter.is_tensor(v))), "")
        return lacks and " (%s.py: %s)" % (module, lacks)
    return ""


def absent(adapter):
    """Lists the calls of a table that name something by self which the adapter has not."""
    for name, entry in adapter.table.items():
        for e in entry if isinstance(entry, list) else [entry]:
            call = e if isinstance(e, str) else (e or {}).get("call") or "None"
            for node in ast.walk(ast.parse(call, mode="eval")):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" and not (
                        hasattr(adapter, node.attr) or hasattr(adapter, node.attr + "_")):  # which changes in place
                    near = difflib.get_close_matches(node.attr, dir(adapter), 1)
                    yield "%s: %s has no %s%s" % (name, type(adapter).__name__, node.attr, near and ": is it self.%s?" % near[0] or "")


def entered(module, e):
    """Returns the name of the function of a module in which an exception was, called from outside it."""
    name, at, before = "", e.__traceback__, None
    while at:
        here = at.tb_frame.f_globals.get("__name__")
        if here == module and before != module:
            name = at.tb_frame.f_code.co_name
        at, before = at.tb_next, here
    return name


def asked(kit, name):
    """Says what the kit asks of a method, by the first paragraph of what it says there."""
    text = getattr(getattr(kit, name, None), "__doc__", None)
    if not text:
        return ""
    text = " ".join(text.split("\n\n")[0].split()).rstrip(".")
    text = text[len("Returns "):] if text.startswith("Returns ") else text[0].lower() + text[1:]
    return "; the kit asks of %s(): %s" % (name, text)


def lacking(t):
    """Returns what the kit reads of a tensor that it has not; "" where it has all."""
    kind = type(t).__name__
    lacks = [name for name in ("shape", "dtype") if not hasattr(t, name)]
    if lacks:
        return "the kit reads .shape and .dtype of every tensor, and %s has no %s: give it %s.%s = property(...)" % (kind, " and no ".join(lacks), kind, lacks[0])
    try:
        whole = all(int(n) == n for n in t.shape)
    except TypeError:
        whole = False
    return "" if whole else "the kit reads the sizes in .shape of every tensor, and that of %s is a %s" % (kind, type(t.shape).__name__)


def refusal(name, e):
    """Returns the refusal that an exception is while a module with an adapter is imported; None where it is not about it."""
    at = raised_at(e)
    if at.tb_frame.f_globals.get("__name__") != name or not isinstance(e, (*MISTAKES, ImportError)):
        return None
    line = linecache.getline(at.tb_frame.f_code.co_filename, at.tb_lineno).strip()
    where = "%s.py, line %d: %s: %s\n    %s\n" % (name, at.tb_lineno, type(e).__name__, e, line)
    if isinstance(e, ImportError):
        return Refusal(where + "the Python that runs it is %s, which has to find this module" % sys.executable)
    return Refusal(where + "the kit asks of the adapter's class: %s (docs/subject.md)" % CLASS)
