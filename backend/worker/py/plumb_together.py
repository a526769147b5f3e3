"""Cases of a request compiled as one function: compiling costs far more than running.

Those that cannot be, and those of a part that fails, run one by one.
"""

from time import perf_counter_ns as now

import torch
from plumb_capture import Captured, Function
from plumb_torch import adapter, targets
from torch.autograd import backward as differentiate


def together(memory, cases):
    """Returns the replies of the cases that one function computed, by their index."""
    replies, prepared = {}, []
    if len(cases) > 1:
        for i, case in enumerate(cases):
            if case.get("mode") == "compile" and "second" not in case:
                one = prepare(memory, case)
                if one:
                    prepared.append((i, *one))
    part(prepared, replies)
    return replies


def prepare(memory, case):
    """Returns a case's run and plan; None where it draws, or fails call by call."""
    one = Captured(adapter, targets, memory, case)
    try:
        plan = one.prepare()
    except Exception:
        return None
    return None if plan.need or not torch.equal(one.rng, torch.get_rng_state()) else (one, plan)


def part(prepared, replies):
    """Compiles the cases as one, or, where that fails, each half of them."""
    if len(prepared) < 2:
        return
    try:
        replies.update(joint(prepared))
    except Exception:
        half = len(prepared) // 2
        part(prepared[:half], replies)
        part(prepared[half:], replies)


class Joint(torch.nn.Module):
    def __init__(self, prepared):
        super().__init__()
        self.functions = torch.nn.ModuleList([Function(one, plan) for _, one, plan in prepared])

    def forward(self, environments):
        return [f(*env) for f, env in zip(self.functions, environments)]


def joint(prepared):
    torch._dynamo.reset()
    graph = torch.compile(Joint(prepared), fullgraph=True)
    for _ in range(2):
        for _, one, _ in prepared:
            one.restore()
        t = now()
        given = graph([one.env for _, one, _ in prepared])
        values, cotangents = [], []
        for (_, one, plan), results in zip(prepared, given):
            if one.case.get("backward"):
                one.env = plan.env(one.env, results)
                indices, given_to, _ = one.differentiated()
                values += [one.env[k] for k in indices]
                cotangents += given_to
        if values:
            differentiate(values, cotangents)
        elapsed = (now() - t) // len(prepared)
    replies = {}
    for (i, one, plan), results in zip(prepared, given):
        replies[i] = one.conclude(plan, results)
        replies[i]["elapsed"] = elapsed
    return replies
