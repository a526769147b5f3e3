"""Cases of a request compiled as one function: compiling costs far more than running.

Cases that differ in their elements alone share its part for their program. Those
that cannot be compiled so, and those of a part that fails, run one by one.
"""

import contextlib
from time import perf_counter_ns as now

import torch
from plumb_capture import Captured, Function
from plumb_functional import program
from plumb_torch import adapter, targets
from torch.autograd import backward as differentiate


def together(memory, cases):
    """Returns the replies of the cases that one function computed, by their index."""
    replies, alike = {}, {}
    if len(cases) > 1:
        for i, case in enumerate(cases):
            if case.get("mode") == "compile" and "second" not in case:
                one = Member.of(i, memory, case)
                if one:
                    alike.setdefault(one.key(), []).append(one)
    part(list(alike.values()), replies)
    return replies


class Member(Captured):
    """A case, captured with others."""

    @classmethod
    def of(cls, i, memory, case):
        """Returns a case that ran call by call; None where it draws, or fails."""
        one = cls(adapter, targets, memory, case)
        one.index = i
        try:
            one.plan = one.prepare()
        except Exception:
            return None
        return None if one.plan.need or not torch.equal(one.rng, torch.get_rng_state()) else one

    def key(self):
        """Returns what is equal of cases of one program."""
        plan = self.plan
        return program(self.case), repr((plan.results, plan.changed, plan.ends, sorted(plan.static)))

    def adopt(self, first):
        """Puts this case's state where the modules of the first of its program are."""
        for i, saved in self.saved.items():
            self.saved[i] = [(t, was) for (t, _), (_, was) in zip(first.saved[i], saved)]
        self.modules = first.modules


def part(groups, replies):
    """Compiles the groups as one, or, where that fails, each half of them."""
    if sum(map(len, groups)) < 2:
        return
    try:
        replies.update(joint(groups))
    except Exception:
        half = len(groups) // 2
        if half:
            part(groups[:half], replies)
            part(groups[half:], replies)


class Joint(torch.nn.Module):
    def __init__(self, members):
        super().__init__()
        self.functions = torch.nn.ModuleList([Function(one, one.plan) for one in members])

    def forward(self, environments):
        return [f(*env) for f, env in zip(self.functions, environments)]


def joint(groups):
    """Returns the replies of groups of cases of one program each, by their index."""
    for first, *others in groups:
        for one in others:
            one.adopt(first)
    torch._dynamo.reset()
    graph = torch.compile(Joint([first for first, *_ in groups]), fullgraph=True)
    replies = {}
    with staged():
        run(graph, [first for first, *_ in groups])
        for turn in range(max(map(len, groups))):
            members = [group[min(turn, len(group) - 1)] for group in groups]
            results, elapsed = run(graph, members)
            for one, given in zip(members, results):
                if one.index not in replies:
                    replies[one.index] = one.conclude(one.plan, given)
                    replies[one.index]["elapsed"] = elapsed // len(members)
    return replies


def run(graph, members):
    """Runs the graph for a case of each program, forward and backward; returns what it gave, and its time."""
    for one in members:
        one.restore()
    t = now()
    results = graph([one.env for one in members])
    values, cotangents = [], []
    for one, given in zip(members, results):
        if one.case.get("backward"):
            one.env = one.plan.env(one.env, given)
            indices, given_to, _ = one.differentiated()
            values += [one.env[k] for k in indices]
            cotangents += given_to
    if values:
        differentiate(values, cotangents)
    return results, now() - t


def staged():
    """Has inductor write the loops of several cases into one C++ function, where its version lets us."""
    try:
        from plumb_stages import Stages
    except ImportError:
        return contextlib.nullcontext()
    return torch._inductor.config.patch({"_post_fusion_custom_pass": Stages(), "reorder_for_peak_memory": False})
