"""PyTorch's function transforms: a case as a function of its inputs and parameters.

The case runs once call by call, which tells what its results are, which of them
are differentiated and who gets a gradient. In `functional` its gradients are
those of torch.func.vjp, nested for the second order. In `vmap` the same function
is batched: the case is one lane of three, and what its lane gave is the outcome.
"""

import contextlib
import random
from time import perf_counter_ns as now

import torch
from plumb_capture import Captured, reason
from plumb_names import Unsupported

Tensor = torch.Tensor
LANES = 3
NEAR = 0.75  # times the case's own floats are those of other lanes: within most domains
# In messages about what a transform does not have: random and data-dependent
# calls, changes of what is not its own, operators without a rule, which may read
# the memory that a transform's tensors have not, parameters.
GAPS = ("vmap", "functorch", "Batching rule", "torch.func", "captured Tensor", "Tensor that doesn't have storage",
        "is not an nn.Parameter", "Can't detach views in-place")


def modes():
    """Returns the modes that this version of PyTorch has."""
    return {"functional": Functional, "vmap": Batched} if hasattr(torch, "func") else {}


class Paced:
    """The calls of a run, which notes the one that is made."""

    def __init__(self, run):
        self.run = run

    def __iter__(self):
        for i, call in enumerate(self.run.case["calls"]):
            self.run.call = i
            yield call
        self.run.call = len(self.run.case["calls"])


class Functional(Captured):
    """One case, differentiated by torch.func."""

    idle = "nothing is differentiated"  # why a case without a backward pass is not for this mode

    def run(self):
        if self.case["mode"] == "vmap" and any("as_strided" in call[0] for call in self.case["calls"]):
            raise Unsupported("as_strided depends on how lanes lie in memory")
        if self.idle and not self.case.get("backward"):
            raise Unsupported(self.idle)
        plan = self.prepare()
        if plan.need:
            return {"status": "need", "need": plan.need}
        self.ends, self.cotangents = [], []
        if self.case.get("backward"):
            self.ends = [i for i, k in enumerate(plan.ends, -len(plan.ends)) if self.env[k].requires_grad]
            self.cotangents = self.differentiated()[1]
            self.backward()
        received = [x.grad is not None for x in self.learned()], [self.found and self.found.get(id(x)) is not None for x in self.learned()]
        try:
            t = now()
            results, state, grads, seconds = self.transformed(plan)
            self.elapsed = now() - t
        except Exception as e:
            if isinstance(e, NotImplementedError) or any(gap in str(e) for gap in GAPS):
                raise Unsupported("%s: %s" % (self.case["mode"], reason(e))) from None
            raise
        self.accept(received, state, grads, seconds)
        return self.conclude(plan, self.flagged(plan, results))

    def learned(self):
        """Lists what is differentiated with respect to: leaves, and parameters, each once."""
        found = {id(x): x for x in self.leaves}
        for module in self.modules.values():
            found.update((id(p), p) for p in module.parameters() if p.requires_grad)
        return list(found.values())

    def accept(self, received, state, grads, seconds):
        """Puts state and gradients where those of autograd's backward are."""
        with torch.no_grad():
            for t, v in zip(self.function.state, state):
                t.copy_(v)
        wanted = self.learned()
        for x, g, some in zip(wanted, grads, received[0]):
            x.grad = g if some else None
        if self.found is not None:
            self.found = {id(x): g for x, g, some in zip(wanted, seconds, received[1]) if some}

    def flagged(self, plan, results):
        """Yields results that require gradients as those call by call do: transforms have no such flag."""
        places = [encoded(self.values[i], path) for i, path in plan.results] + [t for _, _, t in self.changes]
        for r, place in zip(results, places):
            r = r.detach()
            yield r.requires_grad_() if place[0] == "t" and place[5] and (r.is_floating_point() or r.is_complex()) else r

    def transformed(self, plan):
        self.restore()
        self.function = Pure(self, plan)
        return self.function(*self.arguments())

    def arguments(self):
        """Returns what the function takes: lists of tensors."""
        passive = [x for x, entry in zip(self.env, self.case["inputs"]) if not entry[4]]
        seconds = []
        for x, offset in zip(self.leaves, self.case.get("second", ())):
            seconds.append(self.cotangent(x, offset, self.size(x)))
        return [x.detach() for x in self.learned()], passive, self.function.state[len(self.function.weights):], self.cotangents, seconds


class Pure:
    """The calls of a case, with their gradients, as a function that changes nothing."""

    def __init__(self, run, plan):
        self.run, self.plan = run, plan
        self.calls = Paced(run)
        self.weights = run.learned()[len(run.leaves):]
        self.modules = list({id(m): m for module in run.modules.values() for m in module.modules()}.values())
        state = {id(t): t for m in self.modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None}
        self.state = self.weights + [t for t in state.values() if not t.requires_grad]

    def __call__(self, wanted, passive, others, cotangents, seconds):
        """Returns results, the state that is left, gradients, and those of the second order."""
        def values(*wanted):
            return self.values(wanted, passive, others)

        def gradients(*wanted):
            _, pull, aux = torch.func.vjp(values, *wanted, has_aux=True)
            grads = pull(tuple(cotangents))
            return grads[:len(seconds)], (aux, grads)

        if not cotangents:
            return *values(*wanted)[1], (), ()
        if not seconds:
            aux, grads = gradients(*wanted)[1]
            return *aux, grads, ()
        _, pull, (aux, grads) = torch.func.vjp(gradients, *wanted, has_aux=True)
        return *aux, grads, pull(tuple(seconds))

    def values(self, wanted, passive, others):
        """Returns what is differentiated, and all results with the state that they leave."""
        leaves, passive = iter(wanted), iter([x.clone() for x in passive] if self.plan.changed else passive)
        env = [next(leaves if entry[4] else passive) for entry in self.run.case["inputs"]]
        state = [*leaves, *(t.clone() for t in others)]
        with self.holding(state):
            results = self.plan.execute(self.calls, env)
        return tuple([results[i] for i in self.run.ends]), (results, state)

    @contextlib.contextmanager
    def holding(self, state):
        """Lets the modules compute with other tensors: torch.func.functional_call
        leaves its own in a module that is reached by two names (2.15)."""
        new = {id(t): v for t, v in zip(self.state, state)}
        places = [d for m in self.modules for d in (m._parameters, m._buffers)]
        places += [v for m in self.modules for v in vars(m).values() if type(v) is list]  # such as RNNBase._flat_weights
        kept = [(place, at, t) for place in places for at, t in (enumerate(place) if type(place) is list else list(place.items())) if id(t) in new]
        try:
            for place, at, t in kept:
                place[at] = new[id(t)]
            yield
        finally:
            for place, at, t in kept:
                place[at] = t


class Batched(Functional):
    """One case as a lane of torch.func.vmap."""

    idle = None

    def transformed(self, plan):
        try:
            return self.batched(plan, random.Random(self.case["seed"]))
        except Exception:
            return self.batched(plan, None)  # other lanes may be out of the domain, a change may need all batched

    def batched(self, plan, choices):
        """Runs the lanes; with choices they differ, and lie along different dimensions or none."""
        self.restore()
        self.function = Pure(self, plan)
        own = self.case["seed"] % LANES
        wanted, passive, others, cotangents, seconds = self.arguments()
        where = [self.dims(list, choices) for list in (wanted, passive)] + [self.dims(list, None) for list in (others, cotangents, seconds)]
        if all(d is None for dims in where for d in dims):
            if not wanted and not passive:
                raise Unsupported("it has no inputs to batch")
            where[0 if wanted else 1][0] = 0
        stacked = []
        for tensors, dims in zip((wanted, passive, others, cotangents, seconds), where):
            stacked.append([x if d is None else torch.stack([near(x) if choices and lane != own else x for lane in range(LANES)], d) for x, d in zip(tensors, dims)])
        given = torch.func.vmap(self.function, in_dims=tuple(where))(*stacked)
        for t in (t for part in given for t in part):
            if t.shape[:1] != (LANES,):
                raise RuntimeError("a result of shape %s has no dimension for the %d lanes" % (tuple(t.shape), LANES))
        return [[t[own] for t in part] for part in given]

    def dims(self, tensors, choices):
        return [choices.choice((0, x.dim(), None)) if choices else 0 for x in tensors]


def near(x):
    return x * NEAR if x.is_floating_point() or x.is_complex() else x


def encoded(v, path):
    """Returns what a path leads to in an encoded result."""
    for i in path:
        v = v[1][i]
    return v
