"""PyTorch's own graphs: a case is captured as one function of its inputs.

The case runs once call by call, which tells what its results are and what it
changes in place. Then its calls are captured as the body of a function of the
inputs, with the modules as the function's, and the function runs twice, forward
and backward: TorchScript optimises a graph on its second run. What the second
run gave is the outcome. What cannot be captured, or not faithfully, is
unsupported.
"""

import linecache
import os
import warnings
from time import perf_counter_ns as now

import plumb_script
import plumb_torch
import torch
from plumb_graphs import refuse
from plumb_names import Unsupported
from plumb_torch import adapter, is_lazy, targets
from torch.nn import Module

Tensor = torch.Tensor
decode = adapter.decode
LINES = 300  # characters kept of a reason
# Where PyTorch's own functions look at shapes while they are traced: constants
# that are true, since a graph runs on the inputs with which it was traced.
OWN = os.path.join(os.path.dirname(torch.__file__), "nn")


# TorchScript reads the source of the class of a module that it compiles, when
# the file may be gone: a line cache without a time is not looked up again.
linecache.cache[__file__] = (0, None, linecache.getlines(__file__), __file__)


def modes():
    """Returns the modes that this version of PyTorch has."""
    names = ["jit.trace", "jit.script"]
    try:
        import torch.fx  # noqa: F401

        names.append("fx")
    except ImportError:
        pass
    if hasattr(torch, "compile"):
        names.append("compile")
    if hasattr(torch, "export") and hasattr(torch.export, "export"):
        names.append("export")
    return names


class Captured(plumb_torch.Run):
    """One case, captured in a mode."""

    late = False

    def __init__(self, *given):
        super().__init__(*given)
        self.saved = {}  # state and training flags of modules, by the index of the constructing call

    def inputs(self):
        super().inputs()
        if not hasattr(self, "pristine"):
            self.pristine = [fresh(x) for x in self.env]

    def constructed(self, i, module):
        super().constructed(i, module)
        if any(is_lazy(p) for p in module.parameters()):
            raise Unsupported("parameters without a shape cannot be captured")
        self.saved[i] = snapshot(module)
        self.rng = torch.get_rng_state()

    def changed(self, i, call, kept, v):
        super().changed(i, call, kept, v)
        if call[0].startswith("Module.") and call[0] != "Module.__call__":
            receiver = set(self.env[call[1][0][1]].modules())
            self.saved.update((k, snapshot(m)) for k, m in self.modules.items() if not receiver.isdisjoint(m.modules()))

    def restore(self):
        """Makes inputs, modules and random numbers what they were before the calls."""
        self.env = []
        for x, entry in zip(self.pristine, self.case["inputs"]):
            self.env.append(fresh(x).requires_grad_(bool(entry[4])))
        self.leaves = [x for x, entry in zip(self.env, self.case["inputs"]) if entry[4]]
        with torch.no_grad():
            for i, saved in self.saved.items():
                for t, was in saved:
                    t.grad = None
                    t.copy_(was)
        torch.set_rng_state(self.rng)

    def run(self):
        plan = self.prepare()
        if plan.need:
            return {"status": "need", "need": plan.need}
        graph = self.capture(plan)
        for _ in range(2):
            self.restore()
            t = now()
            results = graph(*self.env)
            self.elapsed = now() - t
            self.found = None
            if self.case.get("backward"):
                self.env = plan.env(self.env, results)
                self.backward()
        return self.conclude(plan, results)

    def prepare(self):
        """Runs the case call by call and returns its plan."""
        self.adapter.seed(self.case["seed"])
        self.rng = torch.get_rng_state()
        refuse(self.case)
        self.inputs()
        self.calls()
        plan = Plan(self)
        if not plan.outputs:
            raise Unsupported("no result is a tensor")
        if self.case.get("backward"):
            plan.need = self.differentiated()[2]
        self.call = 0
        return plan

    def conclude(self, plan, results):
        """Returns the reply, with what the graph gave."""
        plan.report(self, results)
        self.finals()
        if self.case.get("grads"):
            self.gradients()
        if self.case.get("sgd"):
            self.step()
        return self.reply

    def capture(self, plan):
        self.restore()
        mode = self.case["mode"]
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                graph = CAPTURES[mode](self, plan)
        except Exception as e:
            if mode == "jit.script":
                forget()
            raise Unsupported("%s: %s" % (mode, reason(e))) from None
        for w in caught:
            if issubclass(w.category, torch.jit.TracerWarning) and not w.filename.startswith(OWN):
                raise Unsupported("%s: %s" % (mode, str(w.message).strip().split("\n")[0][:LINES]))
        return graph


def reason(e):
    lines = [line.strip() for line in str(e).split("\n")]
    return "%s: %s" % (type(e).__name__, next((line for line in lines if line), "")[:LINES])


def snapshot(module):
    """Returns the tensors of a module's state with copies of what they hold."""
    return [(t, t.detach().clone()) for t in module.state_dict(keep_vars=True).values() if isinstance(t, Tensor)]


def fresh(x):
    """Returns a tensor of its own memory with the elements and strides of x."""
    x = x.detach()
    if not x.numel():
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    extent = 1 + sum((d - 1) * s for d, s in zip(x.shape, x.stride()))
    return x.as_strided((extent,), (1,)).clone().as_strided_(x.shape, x.stride())


class Plan:
    """What the captured function returns, as the run call by call has it.

    Outputs are (call, path) for a tensor among the results of a call, (call, k)
    for value k as the call left it, and (None, k) for value k at the end.
    """

    need = 0  # how long a cotangent stream must be, where one is too short

    def __init__(self, run):
        self.n = len(run.case["inputs"])
        self.rehearsed = run.env
        self.values, self.changes = run.values, run.changes
        self.static = {i: run.env[self.n + i] for i, call in enumerate(run.case["calls"]) if self.is_static(run, i, call)}
        self.results = [(i, path) for i in range(len(self.values)) for path in paths(run.env[self.n + i])]
        self.changed = [(i, k) for i, k, _ in self.changes]
        self.ends = [entry[0] for entry in run.case.get("backward", ()) if isinstance(run.env[entry[0]], Tensor)]
        self.outputs = len(self.results) + len(self.changed) + len(self.ends)
        run.values[:], run.changes[:] = list(run.values), list(run.changes)

    def is_static(self, run, i, call):
        """Tells whether a call makes or changes a module, which is done before."""
        v = run.env[self.n + i]
        if isinstance(v, Module):
            if any(isinstance(a, Tensor) for a in values(call[1], run.env)):
                raise Unsupported("a module made of a tensor cannot be captured")
            return True
        return call[0].startswith("Module.") and call[0] != "Module.__call__" and not paths(v)

    def execute(self, calls, inputs):
        """Makes the calls and returns the outputs."""
        env = list(inputs)
        snapshots, changes = {}, []
        for i, call in enumerate(calls):
            if i in self.static:
                env.append(self.static[i])
                continue
            args = [decode(a, env) for a in call[1]]
            kwargs = {name: decode(a, env) for name, a in call[2].items()} if len(call) > 2 else {}
            env.append(apply(call[0], args, kwargs))
            for at, path in self.results:
                if at == i:
                    leaf = pick(env[-1], path)
                    snapshots[at, path] = leaf.clone() if self.changed else leaf
            changes += [env[k].clone() for at, k in self.changed if at == i]
        return tuple([snapshots[at] for at in self.results] + changes + [env[k] for k in self.ends])

    def env(self, inputs, results):
        """Returns the values by number, as far as something is asked of them."""
        env = list(inputs) + [None] * len(self.values)
        for k, v in zip(self.ends, results[len(results) - len(self.ends):]):
            env[k] = v
        for k in range(self.n, len(env)):
            if k not in self.ends:
                env[k] = self.rehearsed[k] if not isinstance(self.rehearsed[k], Tensor) else None
        return env

    def report(self, run, results):
        """Puts what the graph gave into the places of what the calls gave."""
        given = iter(results)
        for i, path in self.results:
            run.values[i] = replaced(run.values[i], path, run.adapter.encode(run, next(given)))  # a tuple, where TorchScript's method gives one
        for at, (i, k, _) in enumerate(list(run.changes)):
            run.changes[at] = (i, k, run.store(next(given)))


def values(args, env):
    """Returns what the arguments of a call refer to."""
    for a in args:
        if type(a) is list and a and a[0] == "r":
            yield env[a[1]]
        elif type(a) is list and a and a[0] in "lu":
            yield from values(a[1], env)


def paths(v):
    """Returns where the tensors of a result are: () for itself."""
    if isinstance(v, Tensor):
        return [()]
    if isinstance(v, (tuple, list)):
        return [(i,) + path for i, e in enumerate(v) for path in paths(e)]
    return []


def pick(v, path):
    for i in path:
        v = v[i]
    return v


def replaced(encoded, path, t):
    """Returns an encoded result with another tensor at a path."""
    if not path:
        return t
    elements = list(encoded[1])
    elements[path[0]] = replaced(elements[path[0]], path[1:], t)
    return [encoded[0], elements]


def apply(target, args, kwargs):
    """Makes a call by name: of a method, that of what is in the receiver's place."""
    root, _, name = target.partition(".")
    if root == "Tensor" or target.startswith("torch.Tensor."):
        f, method = targets[target], target.rpartition(".")[2]
        return getattr(args[0], method)(*args[1:], **kwargs) if hasattr(Tensor, method) else f(*args, **kwargs)  # OneFlow's methods are the kit's
    if target == "Module.__call__":
        return args[0](*args[1:], **kwargs)
    return targets[target](*args, **kwargs)


class Function(Module):
    """The calls of a case as a function of its inputs."""

    def __init__(self, run, plan):
        super().__init__()
        self.plan = plan
        self.calls = run.case["calls"]
        for i, module in run.modules.items():
            self.add_module("m%d" % i, module)

    def forward(self, *inputs):
        return self.plan.execute(self.calls, inputs)


def trace(run, plan):
    return torch.jit.trace(Function(run, plan), tuple(run.env), check_trace=False)


def symbolic(run, plan):
    import torch.fx

    class Tracer(torch.fx.Tracer):
        def create_args_for_root(self, root_fn, is_module, concrete_args=None):
            return root_fn, [self.root] + [self.create_proxy("placeholder", "x%d" % i, (), {}) for i in range(plan.n)]

    function = Function(run, plan)
    tracer = Tracer()
    graph = tracer.trace(function)
    graph.lint()
    return torch.fx.GraphModule(tracer.root, graph)


def compiled(run, plan):
    torch._dynamo.reset()
    graph = torch.compile(Function(run, plan), fullgraph=True)
    graph(*run.env)
    return graph


def exported(run, plan):
    return torch.export.export(Function(run, plan), tuple(run.env)).module()


def script(run, plan):
    source = plumb_script.source(run.case, plan)
    if not plan.static:
        return torch.jit.CompilationUnit(source).forward

    class Scripted(torch.jit.ScriptModule):  # of its own: alike ones would share their forward
        def __init__(self):
            super().__init__()
            for i, module in run.modules.items():
                setattr(self, "m%d" % i, torch.jit.script(module))
            self.define(source)

    return Scripted()


def forget():
    """Forgets the types of modules: that of one which did not compile is half made."""
    try:
        torch.jit._recursive.concrete_type_store = type(torch.jit._recursive.concrete_type_store)()
    except AttributeError:
        pass


CAPTURES = {"jit.trace": trace, "jit.script": script, "fx": symbolic, "compile": compiled, "export": exported}
