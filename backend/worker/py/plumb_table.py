"""Calls of PyTorch's functions in the words of a framework that has its own.

A table maps the id of an operator (`plumb ops list`) to a call written with the
names of PyTorch's parameters, such as

    "sum": "numpy.sum(input, axis=dim, keepdims=keepdim, dtype=dtype)"

A path is looked for below the framework's module, or, as self.NAME, in the
adapter. What the call does not mention has to be given as PyTorch's default. An
entry may also be a list of entries, of which the first that takes the arguments
serves, or an object: the `call`, the `dtypes` that the framework has of it, or
their categories (floats, integers, complex, bool), `when` arguments have which
values, `ignores` arguments that change nothing there, and `ints` where integers
reach it as they are, though PyTorch computes in the default dtype.

operators.json, written from Plumb's own table, says what PyTorch's parameters
are; modules.json says what modules compute.
"""

import ast
import difflib
import functools
import json
import math
import operator
import os
import re
from keyword import iskeyword

from plumb_names import DTYPES, Unsupported
from plumb_values import only

BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul, ast.Mod: operator.mod, ast.FloorDiv: operator.floordiv,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}
KINDS = (ast.Call, ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp,
         ast.IfExp, ast.Slice, ast.Starred, ast.keyword, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)  # what a call is made of
UNARY = {ast.USub: operator.neg, ast.Invert: operator.invert, ast.UAdd: operator.pos, ast.Not: operator.not_}
ANY = ("Index", "Data", "MemoryFormat", "Generator")
STATE = ["weight", "bias", "running_mean", "running_var"]
SHAPES = ("in_features", "out_features", "in1_features", "in2_features", "in_channels", "out_channels", "num_features",
          "num_channels", "num_embeddings", "embedding_dim", "num_parameters", "init", "bias", "affine", "elementwise_affine", "dtype")
GROUPS = {"floats": ("float16", "bfloat16", "float32", "float64"), "integers": ("uint8", "int8", "int16", "int32", "int64"),
          "complex": ("complex64", "complex128"), "bool": ("bool",)}  # the categories of dtypes
BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
MADE = {}  # the classes of modules whose call is no call of modules.json
STEPS = {}  # what computes operators that a table lacks by others
OWN = "plumb."  # before the id of an operator that is called without a public name
REQUIRED = object()
read = set()  # the files of tables


def load(path):
    """Reads a table, which lies beside this file."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), path)
    read.add(path)
    with open(path) as f:
        return json.load(f)


KNOWN, MODULES = load("operators.json"), load("modules.json")
FIELDS = ("call", "dtypes", "when", "ignores", "ints", "rank")  # of an entry


def mistakes(table):
    """Lists what no table says: operators that there are not, fields without a meaning, calls that are no Python or have parts that no call has."""
    for name, entry in table.items():
        if name not in KNOWN["operators"]:
            near = difflib.get_close_matches(name, KNOWN["operators"], 1)
            yield "%s is no operator%s" % (name, near and ": is it %s?" % near[0] or " (plumb ops list)")
        for e in entry if isinstance(entry, list) else [entry]:
            e = {"call": e} if isinstance(e, str) else e or {}
            yield from ("%s: an entry has no %s, but %s" % (name, field, ", ".join(FIELDS)) for field in e if field not in FIELDS)
            try:
                nodes = ast.walk(ast.parse(str(e.get("call")), mode="eval").body)
                yield from ("%s: a table's call has no %s: %s" % (name, type(n).__name__, e["call"]) for n in nodes if not isinstance(n, KINDS))
            except SyntaxError as error:
                yield "%s: the call %s: %s" % (name, e["call"], error.msg)


# Arguments.

class Param:
    """One parameter of PyTorch's: its name, type and default."""

    def __init__(self, text, keyword):
        self.type, name = text.split(" ", 1)
        self.name, _, default = name.partition("=")
        self.name += "_" * iskeyword(self.name)  # from, which a table's call has no other name for
        self.keyword = keyword
        self.default = (value(default) if default else REQUIRED)
        self.optional = self.type.endswith("?")
        self.kind, self.many, _ = re.match(r"(\w+)\??(\[\d*\])?(\??)$", self.type).groups()

    def takes(self, v, is_tensor, numbers):
        """Tells whether a value may be given; `numbers` lets them stand for tensors."""
        if v is None:
            return self.optional or self.kind == "Index"
        if self.kind in ANY:
            return True
        if self.kind in ("device", "dtype"):
            return isinstance(v, str) == (self.kind == "device") and not is_tensor(v)
        if self.many:
            if isinstance(v, (list, tuple)):
                return all(self.one(e, is_tensor, numbers) or e is None for e in v)
            return self.many != "[]" and self.kind != "Tensor" and self.one(v, is_tensor, False)
        return self.one(v, is_tensor, numbers)

    def one(self, v, is_tensor, numbers):
        if self.kind == "Tensor":
            return is_tensor(v) or numbers and isinstance(v, (bool, int, float, complex))
        if is_tensor(v):
            return False
        if self.kind == "bool":
            return isinstance(v, bool)
        if self.kind == "int":
            return isinstance(v, int) and not isinstance(v, bool)
        if self.kind == "float":
            return isinstance(v, (int, float)) and not isinstance(v, bool)
        if self.kind == "str":
            return isinstance(v, str)
        return isinstance(v, (bool, int, float, complex))


def value(text):
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


@functools.lru_cache(None)
def signature(text):
    """Returns the parameters of a signature in PyTorch's schema notation."""
    inside = text[text.index("(") + 1:text.rindex(") ->") if ") ->" in text else text.rindex(")")]
    params, keyword = [], False
    for part in re.split(r", (?![^\[]*\])", inside) if inside else ():
        if part == "*":
            keyword = True
        else:
            params.append(Param(part, keyword))
    return params


def bind(params, names, args, kwargs, is_tensor, numbers, spread):
    """Returns the arguments by PyTorch's names for its operator, or None where they are not these.

    `names` are the parameters' names under the public name that is called;
    `spread` is the index of a list that may be given element by element.
    """
    bound = {}
    if spread is not None and len(args) > spread and spread < len(params):
        rest = args[spread:]
        if not isinstance(rest[0], (list, tuple)) and params[spread].takes(list(rest), is_tensor, False):
            args = list(args[:spread]) + [list(rest)]
    if len(args) > sum(not p.keyword for p in params[:len(names)]):
        return None
    kwargs = dict(kwargs)
    for i, p in enumerate(params):
        called = names[i] if i < len(names) else None
        if i < len(args):
            v = args[i]
        elif called in kwargs:
            v = kwargs.pop(called)
        else:
            v = p.default
        if v is REQUIRED or not p.takes(v, is_tensor, numbers) and v is not p.default:
            return None
        several = p.kind == "Index" and isinstance(v, list) and any(map(is_tensor, v))
        bound[p.name] = tuple(v) if several else v  # PyTorch reads such a list as an index for each dimension
    return None if kwargs else bound


class Meaning:
    """What a public name means: the operators that it may be, in order."""

    def __init__(self, target):
        self.target, self.operators = target, []
        own = [target[len(OWN):]] if target.startswith(OWN) and target[len(OWN):] in KNOWN["operators"] else ()
        for m in KNOWN["names"].get(target, own):
            ident, renamed = (m, None) if isinstance(m, str) else m
            self.operators.append((ident, KNOWN["operators"][ident], renamed))

    def bind(self, args, kwargs, is_tensor):
        """Returns the operator's id and its arguments by name."""
        for numbers in (False, True):
            for ident, data, renamed in self.operators:
                for text in data["signatures"]:
                    params = signature(text)
                    names = renamed or [p.name for p in params]
                    bound = bind(params, names, args, kwargs, is_tensor, numbers, self.spread(data, params))
                    if bound is not None:
                        return ident, data, bound
        raise Unsupported("%s takes no such arguments" % self.target)

    def spread(self, data, params):
        if data.get("variadic") and params and params[0].many:
            return 0 if not self.target.startswith("Tensor.") else None
        for i, p in enumerate(params[:2]):
            if p.many == "[]" and p.kind in ("int", "Tensor") and all(q.keyword for q in params[i + 1:]):
                return i
        return None


# Calls.

def equal(adapter, v, wanted):
    """Tells whether an argument is what a table or a signature has: NumPy's float64 would say that it equals None."""
    return v is wanted if v is None or wanted is None else not adapter.is_tensor(v) and v == wanted


class Entry:
    """One way of a table in which a framework makes a call."""

    def __init__(self, ident, entry):
        if isinstance(entry, str):
            entry = {"call": entry}
        self.ident, self.ints = ident, entry.get("ints", False)
        self.dtypes = {d for name in entry.get("dtypes", ()) for d in GROUPS.get(name, (name,))}
        self.when, self.inputs, self.rank = entry.get("when", {}), entry.get("input", ["input"]), entry.get("rank")
        self.tree = ast.parse(entry["call"], mode="eval").body
        self.ignores = entry.get("ignores", ())
        self.read = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)}.union(self.ignores)

    def refuses(self, adapter, bound, defaults):
        """Returns why the entry does not take the arguments, or None."""
        for name, wanted in self.when.items():
            if not equal(adapter, bound.get(name), wanted):
                return "%s is there for %s=%r alone" % (self.ident, name, wanted)
        for name, v in bound.items():
            if name in self.read or name in self.when or v is None or name in ("device", "non_blocking", "generator"):
                continue
            default = defaults.get(name, REQUIRED)
            if default is REQUIRED or not equal(adapter, v, default):
                return "%s has no argument %s" % (self.ident, name)
        if self.dtypes:
            for t in tensors(adapter, bound.values()):
                if adapter.dtype_name(t.dtype) not in self.dtypes:
                    return "%s has no %s" % (self.ident, adapter.dtype_name(t.dtype))
        return None

    def call(self, adapter, bound, changed):
        """Makes the call, which changes a tensor in place where one is `changed`."""
        evaluation = Evaluation(adapter, bound)
        if changed is not None:
            return evaluation.change(self.tree, changed)
        if isinstance(self.tree, ast.Call) and ast.unparse(self.tree.func).endswith("_"):
            raise Unsupported("%s is there in place alone" % self.ident)
        return evaluation.of(self.tree)


RANKS = [dtype for names in (GROUPS["bool"], GROUPS["integers"], GROUPS["floats"], GROUPS["complex"]) for dtype in names]
COMPLEX = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


def category(dtype):
    return next(i for i, name in enumerate(("bool", "integers", "floats", "complex")) if dtype in GROUPS[name])


def wider(a, b):
    """Returns the dtype to which PyTorch promotes two of one rank; either may be None."""
    if a is None or b is None or a == b:
        return a or b
    low, high = sorted((a, b), key=RANKS.index)
    if (low, high) == ("uint8", "int8"):
        return "int16"
    if (low, high) == ("float16", "bfloat16"):
        return "float32"
    return "complex128" if (low, high) == ("float64", "complex64") else high


def outranks(a, b):
    """Returns the dtype of an operation on a tensor of dtype a and on what outranks it by category alone."""
    if a in COMPLEX and b in GROUPS["complex"]:
        return COMPLEX[a]
    if a is None or b is None or category(b) > category(a):
        return wider(a, b)
    return a


def promoted(adapter, values):
    """Returns the dtype to which PyTorch promotes tensors and numbers: tensors
    without dimensions outrank others by their category alone, and numbers those."""
    shaped = flat = number = None
    for v in values:
        if v is None:
            continue
        if not adapter.is_tensor(v):
            number = wider(number, {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(v)])
        elif len(v.shape):
            shaped = wider(shaped, adapter.dtype_name(v.dtype))
        else:
            flat = wider(flat, adapter.dtype_name(v.dtype))
    return outranks(shaped, outranks(flat, number))


def tensors(adapter, values):
    for v in values:
        if adapter.is_tensor(v):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from tensors(adapter, v)


class Evaluation:
    """The value of a table's call, with the arguments by name."""

    def __init__(self, adapter, names):
        self.adapter, self.names = adapter, names

    def of(self, node):
        kind = type(node)
        if kind is ast.Call:
            args, kwargs = self.arguments(node)
            return self.function(node.func)(*args, **kwargs)
        if kind is ast.Name:
            if node.id in self.names:
                return self.names[node.id]
            if node.id in DTYPES:
                return self.adapter.dtype(node.id)
            raise Unsupported("no argument %s" % node.id)
        if kind is ast.Constant:
            return node.value
        if kind is ast.Attribute:
            return getattr(self.of(node.value), node.attr) if self.holds(node) else self.function(node)
        if kind is ast.Subscript:
            return self.of(node.value)[self.of(node.slice)]
        if kind in (ast.Tuple, ast.List):
            return tuple(self.several(node.elts))
        if kind is ast.BinOp:
            return BINARY[type(node.op)](self.of(node.left), self.of(node.right))
        if kind is ast.UnaryOp:
            return UNARY[type(node.op)](self.of(node.operand))
        if kind is ast.Compare and len(node.ops) == 1:
            return BINARY[type(node.ops[0])](self.of(node.left), self.of(node.comparators[0]))
        if kind is ast.BoolOp:
            for e in node.values:
                v = self.of(e)
                if bool(v) is isinstance(node.op, ast.Or):
                    break
            return v
        if kind is ast.IfExp:
            return self.of(node.body if self.of(node.test) else node.orelse)
        if kind is ast.Slice:
            return slice(*[None if e is None else self.of(e) for e in (node.lower, node.upper, node.step)])
        raise SyntaxError("a table's call has no %s" % kind.__name__)

    def arguments(self, node):
        return self.several(node.args), {k.arg: self.of(k.value) for k in node.keywords}

    def several(self, nodes):
        """Returns the values of expressions, those with a star before them one by one."""
        return [v for n in nodes for v in (self.of(n.value) if isinstance(n, ast.Starred) else [self.of(n)])]

    def change(self, node, changed):
        """Makes a call that changes its first argument: the name of the function, or of a tensor's method, ends with an underscore."""
        args, kwargs = self.arguments(node) if isinstance(node, ast.Call) else ([], {})
        if not args or args[0] is not changed:
            raise Unsupported("%s has no change in place of this" % self.adapter.name)
        path = ast.unparse(node.func).rstrip("_") + "_"
        dtype = changed.dtype
        v = self.changing(path)(*args, **kwargs)
        if changed.dtype != dtype:
            raise Unsupported("%s changes the dtype" % path)
        return v

    def changing(self, path):
        """Returns what changes its first argument: of the adapter, a function, or a tensor's method."""
        if path.startswith("self."):
            if not hasattr(self.adapter, path[5:]):
                raise Unsupported("%s has no %s" % (self.adapter.name, path[5:]))
            return getattr(self.adapter, path[5:])
        try:
            return self.adapter.member(path)
        except Unsupported:
            return self.adapter.method(path.rpartition(".")[2])

    def function(self, node):
        if self.holds(node) and type(node) is not ast.Name:  # pad(input, pad)
            return self.of(node)
        path = ast.unparse(node)
        return operator.attrgetter(path[5:])(self.adapter) if path.startswith("self.") else self.adapter.member(path)

    def holds(self, node):
        """Tells whether an expression is an argument's attribute or what a call returns, not a path."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return not isinstance(node, ast.Name) or node.id in self.names


class Lowered(Evaluation):
    """The value of modules.json's call, whose functions are PyTorch's or the adapter's."""

    def result(self, node, inplace):
        """Returns the value of a call, which changes its input if it is `inplace`."""
        if not inplace or not isinstance(node, ast.Call):
            return self.of(node)
        args, kwargs = self.arguments(node)
        return self.function(node.func)(*args, inplace=True, **kwargs)

    def function(self, node):
        path = ast.unparse(node)
        if path.startswith("self."):
            return super().function(node)
        return functools.partial(call, self.adapter, path if path.startswith("torch.") else "torch.nn.functional." + path)


def entries(adapter, ident):
    """Returns the ways in which a framework's table makes a call."""
    made = adapter.__dict__.setdefault("entries", {})
    if ident not in made:
        entry = adapter.table.get(ident)
        listed = entry if isinstance(entry, list) else [] if entry is None else [entry]
        made[ident] = [Entry(ident, e) for e in listed]
    return made[ident]


@functools.lru_cache(None)
def defaults_of(ident):
    """Returns the defaults of an operator's parameters; what not every signature needs is None."""
    defaults, signatures = {}, [signature(text) for text in KNOWN["operators"][ident]["signatures"]]
    for p in (p for params in signatures for p in params):
        defaults.setdefault(p.name, None if p.default is REQUIRED and p.optional else p.default)
    for name, default in defaults.items():
        if default is REQUIRED and any(all(p.name != name for p in params) for params in signatures):
            defaults[name] = None
    return defaults


def make(adapter, changed, ident, data, bound):
    """Makes a call of an operator, which changes a tensor in place where one is `changed`."""
    whys, defaults = [], defaults_of(ident)
    for entry in entries(adapter, ident):
        given = floated(adapter, bound) if data.get("floats") and not entry.ints else bound
        why = entry.refuses(adapter, given, defaults)
        if why is None:
            return entry.call(adapter, dict({n: d for n, d in defaults.items() if d is not REQUIRED}, **given), changed)
        whys.append(why)
    if ident in STEPS and ident not in adapter.table and changed is None:
        return STEPS[ident](adapter, **bound)
    raise Unsupported(reason(ident, whys) if whys else "%s has no %s in its table" % (adapter.name, ident))


def reason(ident, whys):
    """Returns why no entry takes the arguments: what the first misses that is there for them, or all that there is."""
    begin, end = "%s is there for " % ident, " alone"
    others = [why for why in whys if not why.startswith(begin)]
    return others[0] if others else begin + " or ".join(dict.fromkeys([why[len(begin):-len(end)] for why in whys])) + end


def floated(adapter, bound):
    """Returns integers, which stand alone, in the default dtype."""
    if any(adapter.dtype_name(t.dtype).startswith(("float", "bfloat", "complex")) for t in tensors(adapter, bound.values())):
        return bound
    return {name: adapter.cast(v, "float32") if adapter.is_tensor(v) else v for name, v in bound.items()}


@functools.lru_cache(None)
def meaning(target):
    return Meaning(target)


def modern(bound):
    """Returns the arguments of a loss with the reduction that PyTorch's older ones stand for."""
    average, reduce = bound.get("size_average"), bound.get("reduce")
    if average is None and reduce is None or not {"size_average", "reduction"} <= bound.keys():
        return bound
    reduction = "none" if reduce is False else "sum" if average is False else "mean"
    return dict(bound, size_average=None, reduce=None, reduction=reduction)


def number(adapter, v):
    """Returns the number of a tensor without dimensions, or of one with one integer in a list: PyTorch takes these for numbers."""
    if isinstance(v, (list, tuple)):
        one = [adapter.is_tensor(e) and math.prod(e.shape) == 1 and adapter.dtype_name(e.dtype) in GROUPS["integers"] for e in v]
        return [only(adapter, e) if single else number(adapter, e) for e, single in zip(v, one)]
    return only(adapter, v) if adapter.is_tensor(v) and len(v.shape) == 0 else v


def cut(adapter, index):
    """Returns an index with numbers in the place of tensors of one integer between colons."""
    bounds = number(adapter, [index.start, index.stop, index.step]) if isinstance(index, slice) else ()
    return tuple([cut(adapter, i) for i in index]) if isinstance(index, tuple) else slice(*bounds) if bounds else index


def call(adapter, target, /, *args, **kwargs):
    """Makes a call of PyTorch's."""
    changed = [*args, *kwargs.values()][0] if changes(target) and not adapter.functional else None
    if target in ("operator.getitem", "operator.setitem"):
        args = (args[0], cut(adapter, args[1]), *args[2:])
    try:
        ident, data, bound = meaning(target).bind(args, kwargs, adapter.is_tensor)
    except Unsupported:
        told = [number(adapter, v) for v in args], {k: number(adapter, v) for k, v in kwargs.items()}
        ident, data, bound = meaning(target).bind(*told, adapter.is_tensor)
    bound = modern(bound)
    if bound.get("inplace") is True and not adapter.functional:
        changed, bound = bound["input"], dict(bound, inplace=False)
    return make(adapter, changed, ident, data, bound)


# Modules.

class Module:
    """A module of PyTorch's: its call is made of functions of the framework's."""

    holds = False  # modules, which its constructor takes

    def __init__(self, adapter, target, arguments, defaults):
        self.adapter, self.target, self.defaults = adapter, target, defaults
        self.arguments = modern({n: v for n, v in arguments.items() if n not in SHAPES})
        self.sizes = {n: v for n, v in arguments.items() if n in SHAPES and isinstance(v, int)}
        self.training, self.state, self.children = True, {}, {}
        self.buffers = (*BUFFERS, "weight", "pos_weight") if target.endswith("Loss") else BUFFERS

    def __call__(self, *args, **kwargs):
        why = "%s takes no such arguments" % self.target
        for entry in lowered(self.target):
            names = entry.inputs
            if len(args) > len(names) or any(k not in names[len(args):] for k in kwargs):
                continue
            given = dict(zip(names, args), **kwargs)
            if entry.rank and len(given["input"].shape) != entry.rank:
                continue
            bound = dict(self.arguments, training=self.training)
            inplace = bound.pop("inplace", False) is True and not self.adapter.functional  # there, who calls puts the result where the input stood
            # That of a convolution is the shape of its weight.
            size = bound.get("kernel_size", REQUIRED)
            why = entry.refuses(self.adapter, bound, dict(self.defaults, training=self.training, kernel_size=size))
            if why is None:
                bound.update(dict.fromkeys(names + STATE), **self.state)
                bound.update(given)
                return Lowered(self.adapter, bound).result(entry.tree, inplace)
        raise Unsupported(why)

    def attribute(self, name):
        """Returns what a program may read: state, whether it trains, and sizes that its constructor was given."""
        if name in self.state:
            return self.state[name]
        if name == "training":
            return self.training
        if name in ("bias", "bias_ih", "bias_hh") and self.sizes.get("bias") is False:
            return None
        if name in self.sizes and name != "bias":
            return self.sizes[name]
        if name in self.arguments and self.target.startswith("torch.nn.Conv") and name != "padding_mode":
            v = self.arguments[name]
            return v if name == "groups" or isinstance(v, str) else self.adapter.each(v, int(self.target[-2]))
        raise Unsupported("attribute %s is not open to programs" % name)

    def inplace(self):
        """Tells whether a call changes its input."""
        return self.arguments.get("inplace") is True

    def train(self, mode=True):
        self.training = mode
        return self

    def eval(self):
        return self.train(False)

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state

    def named_parameters(self):
        return [(n, t) for n, t in self.state.items() if n not in self.buffers]


@functools.lru_cache(None)
def lowered(target):
    """Returns the ways in which a module is called."""
    found = MODULES[target[len("torch.nn."):]]
    return [Entry(target, e) for e in (found if isinstance(found, list) else [found])]


def constructor(adapter, target):
    """Returns the function that makes a module."""
    name = target[len("torch.nn."):]
    if name not in MODULES and name not in MADE:
        raise Unsupported("%s has no %s" % (adapter.name, target))
    made = MADE.get(name, Module)

    def construct(*args, **kwargs):
        if made.holds:
            return made.of(adapter, target, *args, **kwargs)
        if name == "Identity":  # takes anything
            args, kwargs = (), {}
        for text in KNOWN["modules"][target]:
            params = signature(text)
            bound = bind(params, [p.name for p in params], args, kwargs, adapter.is_tensor, False, None)
            if bound is not None:
                return made(adapter, target, bound, {p.name: p.default for p in params})
        raise Unsupported("%s takes no such arguments" % target)

    construct.constructs = True
    return construct


# Targets.

def constant(target):
    """Tells whether no result of a call has a gradient."""
    meanings = meaning(target).operators
    return bool(meanings) and all(data.get("constant") for _, data, _ in meanings)


def shares(target):
    """Tells whether a result may share the memory of an argument."""
    return target in ("operator.getitem", "Tensor.__getitem__", "getattr") or any(data.get("view") for _, data, _ in meaning(target).operators)


def changes(target):
    """Tells whether a call changes its first argument."""
    owner, _, last = target.rpartition(".")
    if owner == "operator":
        return last.startswith("i") and last not in ("invert", "is_", "is_not", "index", "imatmul") or last == "setitem"
    return owner != "Module" and (last.endswith("_") and not last.endswith("__") or last == "__setitem__")


def resolve(adapter, target):
    """Returns what makes a call of a framework that has its own interface."""
    own = adapter.calls.get(target)
    if own is not None:
        return functools.partial(own, adapter)
    if target == "getattr":
        return functools.partial(attribute, adapter)
    if target == "Module.__call__":
        return lambda module, *args, **kwargs: module(*args, **kwargs)
    if target in ("Module.get_parameter", "Module.get_buffer"):
        return lambda module, name: module.state_dict()[name]
    if target in ("Module.train", "Module.eval"):
        return lambda module, *mode: getattr(module, target[len("Module."):])(*mode)
    if target in SIZES:
        return functools.partial(SIZES[target], adapter)
    if target in KNOWN["modules"]:
        return constructor(adapter, target)
    if not meaning(target).operators:
        raise Unsupported("%s has no %s" % (adapter.name, target))

    def made(*args, **kwargs):
        if target.startswith("operator.") and not any(map(adapter.is_tensor, args)):
            return getattr(operator, target[len("operator."):])(*args)
        return call(adapter, target, *args, **kwargs)

    return made


TAPE = {"grad": "gradient", "requires_grad": "requires_grad", "is_leaf": "is_leaf"}  # attributes as methods of adapters


def attribute(adapter, v, name, *default):
    if isinstance(v, Module):
        return v.attribute(name)
    if name in TAPE and adapter.gradients and not adapter.functional and adapter.is_tensor(v):
        return getattr(adapter, TAPE[name])(v)
    if not adapter.is_tensor(v):
        raise Unsupported("attribute %s is not open to programs" % name)
    if name in ("shape", "ndim"):
        return tuple(v.shape) if name == "shape" else len(v.shape)
    if name == "dtype":
        return v.dtype
    if name == "device":
        return "cpu"
    if "Tensor." + name in KNOWN["names"]:
        return call(adapter, "Tensor." + name, v)
    raise Unsupported("%s has no attribute %s of tensors" % (adapter.name, name))


def size(adapter, t, dim=None):
    return tuple(t.shape) if dim is None else t.shape[dim]


def numel(adapter, t):
    n = 1
    for d in t.shape:
        n *= d
    return n


def elements(adapter, t):
    return adapter.array(t).tolist()


SIZES = {
    "Tensor.size": size, "Tensor.dim": lambda adapter, t: len(t.shape), "Tensor.ndimension": lambda adapter, t: len(t.shape),
    "Tensor.numel": numel, "torch.numel": numel, "Tensor.nelement": numel, "Tensor.item": elements, "Tensor.tolist": elements,
}
