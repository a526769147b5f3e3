"""Writes a case as a function in TorchScript's language.

The text is made of the case's calls alone: names of targets that resolve, value
numbers and literals.
"""

import math

import torch
from plumb_names import Unsupported
from plumb_torch import targets

INFIX = {"lshift": "<<", "rshift": ">>", "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
         "and_": "&", "or_": "|", "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
PREFIX = {"neg": "-", "invert": "~"}
ITEMS = {"Tensor.__getitem__": "operator.getitem", "Tensor.__setitem__": "operator.setitem"}
AUGMENTED = {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/="}


def source(case, plan):
    n = plan.n
    lines = ["def forward(%s):" % ", ".join(["self"] * bool(plan.static) + ["v%d: Tensor" % i for i in range(n)])]
    for i, call in enumerate(case["calls"]):
        if i in plan.static:
            continue
        lines += statements("v%d" % (n + i), call, plan)
        for at, path in plan.results:
            if at == i:
                lines.append("%s = %s%s" % (name("r", at, path), pick(n + i, path), ".clone()" if plan.changed else ""))
        lines += ["c%d_%d = v%d.clone()" % (at, k, k) for at, k in plan.changed if at == i]
    outputs = [name("r", at, path) for at, path in plan.results] + ["c%d_%d" % c for c in plan.changed] + ["v%d" % k for k in plan.ends]
    lines.append("return (%s,)" % ", ".join(outputs))
    return "\n    ".join(lines) + "\n"


def name(kind, at, path):
    return kind + "_".join(map(str, (at,) + path))


def pick(k, path):
    return "v%d%s" % (k, "".join("[%d]" % i for i in path))


def statements(result, call, plan):
    """Returns the lines that make a call and name its result."""
    root, _, last = call[0].rpartition(".")
    if root == "operator" and last in AUGMENTED:
        targets[call[0]]
        x = text(call[1][0], plan)
        return ["%s %s %s" % (x, AUGMENTED[last], text(call[1][1], plan)), "%s = %s" % (result, x)]
    if ITEMS.get(call[0], call[0]) == "operator.setitem":
        x, at, v = call[1]
        return ["%s[%s] = %s" % (text(x, plan), index(at, plan), text(v, plan)), "%s = None" % result]
    return ["%s = %s" % (result, expression(call, plan))]


def expression(call, plan):
    def literal(a):
        return text(a, plan)

    target = ITEMS.get(call[0], call[0])
    targets[target]
    if target == "operator.getitem" and call[1][1] in (["e"], ["u", [["e"]]]):
        return "%s.alias()" % literal(call[1][0])  # the language has no x[...]
    if target == "operator.getitem":
        return "%s[%s]" % (literal(call[1][0]), index(call[1][1], plan))
    args = [literal(a) for a in call[1]]
    named = ["%s=%s" % (identifier(key), literal(a)) for key, a in call[2].items()] if len(call) > 2 else []
    root, _, last = target.rpartition(".")
    if target == "operator.abs":
        return "abs(%s)" % args[0]
    if root == "operator" and last in INFIX and len(args) == 2:
        return "%s %s %s" % (args[0], INFIX[last], args[1])
    if root == "operator" and last in PREFIX and len(args) == 1:
        return "%s%s" % (PREFIX[last], args[0])
    if target == "getattr" and len(args) == 2:
        return "%s.%s" % (args[0], identifier(call[1][1]))
    if target == "Module.__call__":
        return "%s(%s)" % (args[0], ", ".join(args[1:] + named))
    if root in ("Tensor", "torch.Tensor"):
        return "%s.%s(%s)" % (args[0], identifier(last), ", ".join(args[1:] + named))
    if target.startswith("torch."):
        return "%s(%s)" % (".".join(identifier(part) for part in target.split(".")), ", ".join(args + named))
    raise Unsupported("TorchScript's language has no %s" % target)


def identifier(s):
    if not (isinstance(s, str) and s.isidentifier()):
        raise Unsupported("no name %r" % (s,))
    return s


def index(a, plan):
    if type(a) is list and a[0] == "u":
        return ", ".join(index(e, plan) for e in a[1])
    if type(a) is list and a[0] == "s":
        return ":".join("" if part is None else text(part, plan) for part in a[1:4])
    return text(a, plan)


def text(a, plan):
    if a is None or a is True or a is False or type(a) is int:
        return repr(a) if type(a) is not int or a >= 0 else "(%d)" % a
    if type(a) is float:
        return number(a)
    if type(a) is str:
        return repr(a)
    tag = a[0]
    if tag == "r":
        return "self.m%d" % (a[1] - plan.n) if a[1] - plan.n in plan.static else "v%d" % a[1]
    if tag == "l" and len(set(map(type, a[1])) & {int, float}) > 1:
        raise Unsupported("a list has numbers of one type in TorchScript's language")
    if tag == "l":
        return "[%s]" % ", ".join(text(e, plan) for e in a[1])
    if tag == "u":
        return "(%s%s)" % (", ".join(text(e, plan) for e in a[1]), "," if len(a[1]) == 1 else "")
    if tag == "d":
        return "torch.%s" % identifier(a[1])
    if tag == "m":
        return "torch.%s" % identifier(a[1])
    if tag == "f":
        return number(float(a[1]))
    if tag == "e":
        return "..."
    if tag == "v":
        return "torch.device(%r)" % a[1]
    if tag == "c":
        return "complex(%s, %s)" % (number(float(a[1])), number(float(a[2])))
    raise Unsupported("TorchScript's language has no literal for %r" % (a,))


def number(x):
    if math.isnan(x) or math.isinf(x):
        return 'float("%s")' % ("nan" if math.isnan(x) else "inf" if x > 0 else "-inf")
    return repr(x) if x >= 0 and math.copysign(1, x) > 0 else "(%r)" % x
