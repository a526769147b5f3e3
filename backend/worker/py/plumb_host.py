"""Serves a framework on the kit, found by its name."""

import importlib
import os
import warnings

import plumb_mistakes
import plumb_table
from plumb_functional import Functional
from plumb_graphs import Graphed
from plumb_names import Refusal
from plumb_targets import Targets


class Subject:
    """What plumb_worker asks of a subject."""

    def __init__(self, adapter):
        self.adapter, self.targets = adapter, Targets(adapter)
        self.kind = Functional if adapter.functional else Graphed

    def hello(self):
        device = os.environ.get("PLUMB_WORKER_DEVICE") or "cpu"
        if device != "cpu":
            raise Refusal("%s runs on the CPU alone, not on %s" % (self.adapter.name, device))
        wrong = (list(plumb_table.mistakes(self.adapter.table)) or list(plumb_mistakes.absent(self.adapter))) if self.adapter.own else ()
        if wrong:
            raise Refusal("the table of %s: %s" % (self.adapter.name, "; ".join(wrong[:8])))
        if self.adapter.unheeded:
            warnings.filterwarnings("error", self.adapter.unheeded)
        modes = [*self.adapter.modes, *self.adapter.runs]
        return {"name": self.adapter.name, "version": self.adapter.version, "devices": ["cpu"], "modes": ["eager", *modes],
                "gradients": self.adapter.gradients, "refusals": not self.adapter.own, "forms": False,
                "forward_modes": list(self.adapter.forward), "compiling_modes": [mode for mode in modes if mode not in self.adapter.quick],
                "features": self.adapter.arrays.FEATURES}

    def run_of(self, mode):
        """Returns the class of runs of a mode."""
        return self.adapter.runs.get(mode, self.kind)

    def together(self, memory, cases):
        """Returns the replies of cases that run as one, by their index."""
        return {}

    def run(self, memory, cases):
        replies, ready = [], self.together(memory, cases)
        for i, case in enumerate(cases):
            if i in ready:
                replies.append(ready[i])
                continue
            memory.mark[1] = 0
            memory.mark[0] = i + 1
            one = self.run_of(case.get("mode") or "eager")(self.adapter, self.targets, memory, case)
            try:
                reply = one.run()
            except Exception as e:
                reply = one.failed(e)
            self.adapter.settle()
            reply["elapsed"], reply["cpu"] = one.elapsed, one.cpu
            replies.append(reply)
        return replies

    def signatures(self, name):
        return None


def of(name):
    """Returns the subject that the module plumb_NAME adapts; after a colon there may be what its adapter is told."""
    name, *told = name.split(":")
    module = "plumb_" + name
    try:
        adapter = importlib.import_module(module).adapter(*told)
    except Exception as e:
        refused = plumb_mistakes.refusal(module, e)
        if refused is None:
            raise
        raise refused from None
    return Subject(adapter)
