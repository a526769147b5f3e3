"""KernelBench's form: a file with Model, get_inputs and get_init_inputs, and one with ModelNew."""

import ast
import copy
import operator
import os
import re

import plumb_forms
import torch
from plumb_forms import described
from plumb_names import Refusal

NEEDED = ("Model", "get_inputs", "get_init_inputs")
AXIS, DIMENSIONS = re.compile(r"(^|_)(dim|axis)$"), 4  # what names a dimension where no input is made of it
LITERAL = 1 << 20  # elements of a buffer whose values are told


class Sized(ast.NodeTransformer):
    """Gives the sizes that a file names other numbers."""

    def __init__(self, sizes):
        self.sizes = sizes

    def visit_Assign(self, node):
        for name, _, put in named(node):
            if name in self.sizes:
                put(self.sizes[name])
        return node

    visit_FunctionDef = visit_ClassDef = lambda self, node: node


class Numbers(ast.NodeTransformer):
    """Names the whole numbers by which a function calls others: none of a seed, an index or a dimension."""

    def __init__(self):
        self.found = {}

    def visit_Constant(self, node):
        if type(node.value) is not int or node.value < 2:
            return node
        name = "size_%d" % len(self.found)
        self.found[name] = node.value
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_keyword(self, node):
        return self.generic_visit(node) if node.arg == "size" else node

    def visit_Subscript(self, node):
        return node

    def visit_Call(self, node):
        return node if "seed" in ast.dump(node.func) else self.generic_visit(node)


def makers(tree):
    return [node for node in tree.body if getattr(node, "name", "") in NEEDED[1:]]


def unnamed(tree):
    """Tells whether a file makes its inputs and its model of no number that it names, nor of what follows from one."""
    given = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and (named(node) or uses(node.value, given)):
            given.update(t.id for target in node.targets for t in ast.walk(target) if isinstance(t, ast.Name))
    return not any(uses(f, given) for f in makers(tree))


def uses(node, names):
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def hoist(tree):
    """Gives the numbers of a file that names no sizes names: those of its inputs, and of its model's arguments."""
    numbers = Numbers()
    for f in makers(tree):
        numbers.visit(f)
    tree.body[:0] = ast.parse("".join("%s = %d\n" % pair for pair in numbers.found.items())).body


def named(node):
    """Lists the whole numbers that an assignment names, each with what puts another one there: of a name, of
    "height, width = 28, 28", and of a tuple, whose name says the place: those of "shape = (64, 64)" are
    shape_0 and shape_1."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name) and whole(value) is not None:
        return [(target.id, whole(value), lambda n: setattr(node, "value", number(n, value)))]
    if not isinstance(value, (ast.Tuple, ast.List)):
        return []
    names = ["%s_%d" % (target.id, k) for k in range(len(value.elts))] if isinstance(target, ast.Name) else [getattr(t, "id", "") for t in getattr(target, "elts", ())]
    return [(name, whole(v), lambda n, k=k, v=v: value.elts.__setitem__(k, number(n, v)))
            for k, (name, v) in enumerate(zip(names, value.elts)) if name and whole(v) is not None]


def number(n, at):
    return ast.copy_location(ast.Constant(n), at)


ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow, ast.LShift: operator.lshift}


def whole(node):
    """Returns the whole number that an expression of numbers is; None where it is none."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        a, b = whole(node.left), whole(node.right)
        if a is not None and b is not None and 0 <= b and (b < 64 or type(node.op) not in (ast.Pow, ast.LShift)) and (b or type(node.op) is not ast.FloorDiv):
            return ARITHMETIC[type(node.op)](a, b)
    return None


class Problem:
    """A call of a problem is one of its inputs, then of its parameters and buffers; the results are the
    model's and the buffers after it."""

    owns_results = False

    def __init__(self, spec):
        self.path, self.on_trial = os.path.realpath(spec["file"]), spec["role"] == "candidate"
        self.module = plumb_forms.module_of(self.path) if self.on_trial else None
        self.tree = None if self.on_trial else parsed(self.path)
        self.hoisted = not self.on_trial and unnamed(self.tree)
        if self.hoisted:
            hoist(self.tree)
        self.model, self.given, self.held, self.random = None, (), [], {}

    def describe(self):
        if not self.on_trial:
            return {"sizes": sizes(self.tree), "hoisted": self.hoisted}
        if not isinstance(getattr(self.module, "ModelNew", None), type):
            raise AttributeError("%s has no class ModelNew" % os.path.basename(self.path))
        return {}

    def shape(self, told):
        """Makes the model anew; tells its inputs, the constructor's arguments and the state."""
        return self.candidate(told) if self.on_trial else self.problem(told)

    def candidate(self, told):
        torch.manual_seed(told.get("seed", 0))
        model = self.module.ModelNew(*(decoded(v) for v in told["init"]))
        self.model, self.given = model.train(told["training"]), told["given"]
        own = state(model)
        self.held = matched(own, told["state"])
        wanted = [e["name"] for e in told["state"]]
        return {"renamed": [[w, h] for w, h in zip(wanted, self.held) if w != h], "more": [e["name"] for e in own if e["name"] not in self.held]}

    def problem(self, told):
        namespace = {"__name__": "problem", "__file__": self.path}
        exec(compile(Sized(told["sizes"]).visit(copy.deepcopy(self.tree)), self.path, "exec"), namespace)
        torch.manual_seed(0)
        init, examples = namespace["get_init_inputs"](), namespace["get_inputs"]()
        model = namespace["Model"](*init)
        given = []
        self.model, self.given = model.train(told["training"]), placed(tuple(examples), given)
        found = state(model)
        self.held = [entry["name"] for entry in found]
        return {"init": [encoded(v) for v in init], "examples": [described(v) for v in given], "given": self.given, "state": found, "random": self.draws(given)}

    def draws(self, given):
        """Tells whether the model gives something else the second time, in its mode."""
        mode = self.model.training
        if mode not in self.random:
            results = []
            for seed in (1, 2):
                torch.manual_seed(seed)
                with torch.no_grad():
                    results.append(flat(copy.deepcopy(self.model)(*joined(self.given, [e.clone() if isinstance(e, torch.Tensor) else e for e in given]))))
            self.random[mode] = not all(a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(*results))
        return self.random[mode]

    def prepare(self, told):
        pass

    def bind(self, args, kwargs):
        return args, kwargs

    def __call__(self, *args):
        return self.launch((), args, {})

    def launch(self, out, args, kwargs):
        values = dict(zip(self.held, args[len(args) - len(self.held):]))
        named = dict(self.model.named_buffers())
        buffers = [values[n] for n in self.held if n in named]
        call = torch.func.functional_call if hasattr(torch, "func") else torch.nn.utils.stateless.functional_call
        refreshed(self.model, values)
        try:
            v = call(self.model, values, joined(self.given, args))
        finally:
            refreshed(self.model, {})
        return (v, *[b.clone() for b in buffers]) if buffers else v


def placed(v, given):
    """Returns nested lists, tuples and dicts with places among what is given for what they hold."""
    if isinstance(v, dict):
        return {"dict": [[k, placed(e, given)] for k, e in v.items()]}
    if isinstance(v, (list, tuple)):
        return {type(v).__name__ if type(v) in (list, tuple) else "tuple": [placed(e, given) for e in v]}
    given.append(v)
    return len(given) - 1


def joined(v, given):
    """Returns what placed has taken apart."""
    if isinstance(v, int):
        return given[v]
    (kind, parts), = v.items()
    if kind == "dict":
        return {k: joined(e, given) for k, e in parts}
    return (tuple if kind == "tuple" else list)(joined(e, given) for e in parts)


def refreshed(model, values):
    """Gives recurrent layers the weights of a call: before 2.1 they keep a list of their own."""
    for prefix, m in model.named_modules():
        if isinstance(m, torch.nn.RNNBase):
            m._flat_weights = [values.get("%s.%s" % (prefix, n) if prefix else n, getattr(m, n)) for n in m._flat_weights_names]


def parsed(path):
    """Reads a problem, with what it does on CUDA on the CPU."""
    with open(path, encoding="utf-8") as f:
        tree = ast.fix_missing_locations(plumb_forms.OnCPU().visit(ast.parse(f.read(), path)))
    there = {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    missing = [n for n in NEEDED if n not in there]
    if missing:
        raise AttributeError("%s has no %s: a problem has Model, get_inputs() and get_init_inputs(); for a function of it, name FILE.py::FUNCTION" % (os.path.basename(path), missing[0]))
    return tree


def sizes(tree):
    """Returns the whole numbers that a file names, but for those of a dimension."""
    found = {name: n for node in tree.body if isinstance(node, ast.Assign) for name, n, _ in named(node)}
    told = {n.id for node in tree.body if isinstance(node, ast.Assign) or getattr(node, "name", "") == "get_inputs" for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return {name: n for name, n in found.items() if not (n < DIMENSIONS and AXIS.search(name) and name not in told)}


def flat(v):
    if isinstance(v, torch.Tensor):
        return [v]
    if isinstance(v, dict):
        v = list(v.values())
    return [t for e in v for t in flat(e)] if isinstance(v, (list, tuple)) else []


def state(model):
    return [{"name": n, "parameter": kind, "requires_grad": t.requires_grad, **described(t.detach()),
             **({} if kind or t.numel() > LITERAL else {"values": t.detach().double().reshape(-1).tolist()})}
            for kind, named in ((True, model.named_parameters()), (False, model.named_buffers())) for n, t in named]


def matched(own, wanted):
    """Returns, for each entry of the reference's state, the name of the candidate's: the same
    one, else the next that has its shape."""
    free = {e["name"]: e for e in own}
    named = {w["name"] for w in wanted if w["name"] in free and fits(free[w["name"]], w)}
    names = []
    for w in wanted:
        like = [n for n, e in free.items() if fits(e, w) and (n == w["name"] or n not in named)]
        if not like:
            raise Refusal("ModelNew has no %s like %s of shape %s; it has %s. Let it hold what Model holds, by the same names or in the same shapes and order" % (
                "parameter" if w["parameter"] else "buffer", w["name"], tuple(w["shape"]), ", ".join("%s %s" % (e["name"], tuple(e["shape"])) for e in own) or "none"))
        names.append(w["name"] if w["name"] in like else like[0])
        del free[names[-1]]
    return names


def fits(entry, wanted):
    return entry["shape"] == wanted["shape"] and entry["parameter"] == wanted["parameter"]


def encoded(v):
    if isinstance(v, torch.Tensor):
        raise Refusal("a tensor among get_init_inputs")
    if isinstance(v, (list, tuple)):
        return {"list" if isinstance(v, list) else "tuple": [encoded(e) for e in v]}
    if isinstance(v, torch.dtype):
        return {"dtype": str(v)[6:]}
    return v


def decoded(v):
    if not isinstance(v, dict):
        return v
    (kind, held), = v.items()
    if kind == "dtype":
        return getattr(torch, held)
    return (list if kind == "list" else tuple)(decoded(e) for e in held)


plumb_forms.FORMS["problem"] = Problem
