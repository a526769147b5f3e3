"""Prints what the table of a framework with an interface of its own names that is not there."""

import ast
import operator
import sys

import plumb_host
import plumb_table
from plumb_names import DTYPES


def paths(node):
    """Lists the paths and names of an expression; what follows a call is not known before it is made."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        path = ast.unparse(node)
        if all(part.isidentifier() for part in path.split(".")):
            return [path]
    return [path for child in ast.iter_child_nodes(node) for path in paths(child)]


def missing(adapter, ident, entry):
    if ident not in plumb_table.KNOWN["operators"]:
        return ["the operator"]
    params = {p.name for text in plumb_table.KNOWN["operators"][ident]["signatures"] for p in plumb_table.signature(text)}
    found = [name for name in (*entry.when, *entry.ignores) if name not in params]
    found += [type(n).__name__ for n in ast.walk(entry.tree) if not isinstance(n, plumb_table.KINDS)]
    for path in paths(entry.tree):
        head = path.partition(".")[0]
        if head in params or path in DTYPES or head in getattr(adapter, "absent", ()):
            continue
        try:
            operator.attrgetter(path[5:])(adapter) if head == "self" else adapter.member(path)
        except Exception:
            found.append(path)
    return found + sorted(entry.dtypes - set(DTYPES))


adapter = plumb_host.of(sys.argv[1]).adapter
for ident in adapter.table if adapter.own else ():
    for entry in plumb_table.entries(adapter, ident):
        for name in missing(adapter, ident, entry):
            print("%s: there is no %s" % (ident, name))
