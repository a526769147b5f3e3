"""Cases of frameworks with a tape as one program that the framework captures.

A case runs call by call, which tells what it refuses. Then its modules are made
once more, and its other calls are the body of a function of its inputs, which
the adapter's mode captures and runs. What cannot be captured, or not
faithfully, is unsupported, with the framework's reason.
"""

from time import perf_counter_ns as now

import plumb_table
from plumb_names import AUTOGRAD, OF_GRADIENTS, Unsupported
from plumb_subject import Run

LINES = 300  # characters kept of a reason


class Result:
    """The place of a tensor among the results of a captured function."""

    def __init__(self, index):
        self.index = index


def part(adapter, v, flat):
    """Returns a value with a place for each of its tensors, which `flat` gathers."""
    if isinstance(v, (tuple, list)):
        return tuple([part(adapter, e, flat) for e in v])
    if adapter.is_tensor(v):
        flat.append(v)
        return Result(len(flat) - 1)
    return v


def whole(v, flat):
    """Returns a value with the tensors in their places."""
    return tuple([whole(e, flat) for e in v]) if isinstance(v, tuple) else flat[v.index] if isinstance(v, Result) else v


def reason(e):
    """Returns what an exception says: its last line, where the first introduces code."""
    lines = [line.strip() for line in str(e).split("\n") if line.strip()] or [""]
    return "%s: %s" % (type(e).__name__, lines[-1 if lines[0].endswith(":") else 0][:LINES])


def refuse(case):
    """Says what no capture is faithful to."""
    called = set()
    for call in case["calls"]:
        if call[0].startswith(AUTOGRAD):
            raise Unsupported("a graph of calls has no place for %s" % call[0])
        if len(call) > 3 and call[3]:
            raise Unsupported("a graph does not record the with statement of %s" % call[3][0][0])
        if len(call) > 2 and call[2].get("requires_grad"):
            raise Unsupported("a graph of calls has no place for a leaf that %s makes" % call[0])
        if call[0] == "Module.__call__":
            called.add(call[1][0][1])
        elif call[0].startswith("Module.") and call[1][0][1] in called:
            raise Unsupported("%s comes after a call of the module" % call[0])


class Graphed(Run):
    """A case in one of the modes of its adapter, which take a function of tensors and
    of what modules are by the index of the call that makes them, and these."""

    def calls(self):
        mode = self.case.get("mode") or "eager"
        if mode == "eager":
            return super().calls()
        self.refuse()
        top = self.memory.top
        super().calls()
        for i, k, _ in self.reply.get("changes", ()):
            raise Unsupported("a graph does not tell what %s changes in place" % self.case["calls"][i][0])
        self.memory.top = top
        self.again()
        self.call = self.memory.mark[1] = 0
        t = now()
        try:
            self.captured(self.adapter.modes[mode])
        except Unsupported:
            raise
        except Exception as e:
            raise Unsupported("%s: %s" % (mode, reason(e))) from None
        self.elapsed = now() - t
        self.call = len(self.case["calls"])

    def refuse(self):
        """Says what no capture is faithful to, or tells."""
        refuse(self.case)
        for call in self.case["calls"]:
            if call[0] == "getattr" and call[1][1] in OF_GRADIENTS:
                raise Unsupported("a graph does not tell %s" % call[1][1])
            if plumb_table.changes(call[0]) or len(call) > 2 and call[2].get("inplace"):
                raise Unsupported("a graph does not tell what %s changes in place" % call[0])

    def again(self):
        """Makes everything what it was before the calls, and the modules once more."""
        self.adapter.seed(self.case["seed"])
        self.inputs()
        self.values.clear()
        self.modules.clear()
        for told in ("changes", "modules"):
            self.reply.pop(told, None)
        self.made = {}
        for i, call in enumerate(self.case["calls"]):
            v = None
            if self.constructs(call) or call[0].startswith("Module.") and call[0] != "Module.__call__":
                v = self.made[i] = self.evaluate(call)
                if isinstance(v, plumb_table.Module) and v.inplace():
                    raise Unsupported("a graph does not tell what a module changes in place")
            self.env.append(v)
            if self.constructs(call):
                self.constructed(i, v)

    def captured(self, capture):
        n = len(self.case["inputs"])
        inputs, results = self.env[:n], []

        def program(tensors, modules):
            del results[:]
            flat = []
            self.env = list(tensors)
            for i, call in enumerate(self.case["calls"]):
                v = modules.get(i) if i in self.made else self.evaluate(call)
                self.env.append(v)
                results.append(part(self.adapter, self.made.get(i, v), flat))
            return flat

        flat = capture(program, inputs, self.made)
        self.env = inputs + [whole(v, flat) for v in results]
        for call, v in zip(self.case["calls"], self.env[n:]):
            if isinstance(v, tuple) and any(isinstance(d, int) and d < 0 for d in v):
                raise Unsupported("%s is not known while it is captured" % call[0])
            self.values.append(self.adapter.encode(self, v))

    def differentiate(self, indices, cotangents):
        if (self.case.get("mode") or "eager") == "eager":
            return super().differentiate(indices, cotangents)
        if "second" in self.case:
            raise Unsupported("gradients of a captured program are of the first order")
        self.adapter.backward_once([self.env[i] for i in indices], cotangents)
