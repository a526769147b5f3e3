"""The forms that a kernel comes in: a function of a file, of a package or of torch.ops, and a
function of a library in C. Each is loaded to a Kernel."""

import ast
import ctypes
import glob
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys

import plumb_triton
import torch
from plumb_names import DTYPES, Refusal

OUTPUTS = ("out", "output", "outputs", "result", "y", "dst", "dest")  # names of a first parameter that is written to
USUAL = {"x": "input", "inp": "input", "w": "weight", "gamma": "weight", "scale": "weight", "b": "bias", "beta": "bias", "q": "query", "k": "key", "v": "value",
         "axis": "dim", "epsilon": "eps", "labels": "target"}  # what kernels call parameters of PyTorch's functions
NAME_OF = {getattr(torch, name): name for name in DTYPES}


def places(spec):
    """Returns the files of what is judged, its own first: those of the modules that bring an operator, which
    lie in the working folder too, as those of python -m do."""
    if spec["form"] != "operator":
        return [spec["file"]]
    if spec["role"] == "reference":
        return []
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    found = []
    for name in spec.get("imports") or [spec["name"].split(".")[0]]:
        name = name.split(".")[0]
        module = importlib.util.find_spec(name) if name != "torch" else None
        for folder in module and module.submodule_search_locations or ():
            found += glob.glob(os.path.join(folder, "**", "*.py"), recursive=True)
        if module and module.origin and module.origin.endswith(".py"):
            found.insert(0, module.origin)
    return found


def layer(files, watch):
    """Brings Triton up on the CPU for a candidate that names it, and a device for one that names CUDA."""
    source = ""
    for file in files:
        try:
            with open(file, encoding="utf-8") as f:
                source += f.read()
        except (OSError, UnicodeDecodeError):
            pass
    found = None
    if "triton" in source and importlib.util.find_spec("triton"):
        found = plumb_triton.install(watch)
    if "cuda" in source.lower():
        plumb_triton.stand_in()
    return found


KEYS = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU"}  # for which operators are registered


class OnCPU(ast.NodeTransformer):
    """Moves a file's tensors from CUDA to the CPU."""

    def visit_Constant(self, node):
        if isinstance(node.value, str) and node.value in KEYS:
            return ast.copy_location(ast.Constant(KEYS[node.value]), node)
        if isinstance(node.value, str) and re.fullmatch(r"cuda(:\d+)?", node.value):
            return ast.copy_location(ast.Constant("cpu"), node)
        return node

    def visit_JoinedStr(self, node):
        first = node.values[0] if node.values else None
        if isinstance(first, ast.Constant) and str(first.value).startswith("cuda:"):
            return ast.copy_location(ast.Constant("cpu"), node)
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        return ast.copy_location(ast.Constant(True), node) if node.attr == "is_cuda" and isinstance(node.ctx, ast.Load) else node


def on_cpu(source, path):
    return compile(ast.fix_missing_locations(OnCPU().visit(ast.parse(source, path))), path, "exec")


class Moving(importlib.machinery.SourceFileLoader):
    """Loads a module's source with its tensors on the CPU."""

    def source_to_code(self, data, path, **options):
        return on_cpu(data.decode("utf-8"), path) if b"cuda" in data.lower() else super().source_to_code(data, path)

    def path_stats(self, path):
        raise OSError  # what is kept compiled has not been moved


class Finder:
    """Finds the modules whose files are what is judged."""

    def __init__(self, files):
        self.files = set(files)

    def find_spec(self, name, path=None, target=None):
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is None or found.origin not in self.files:
            return None
        return importlib.util.spec_from_file_location(name, found.origin, loader=Moving(name, found.origin), submodule_search_locations=found.submodule_search_locations)


def listed(v):
    """Returns a result as a tuple where it names its parts: the names, then the parts in their order."""
    if isinstance(v, torch.Tensor):
        return v
    if not isinstance(v, dict) and any(isinstance(e, torch.Tensor) for e in getattr(v, "__dict__", {}).values()):
        v = vars(v)  # of a dataclass, or a namespace
    if isinstance(v, dict):
        names = sorted(v, key=str)
        return (", ".join(map(str, names)), *(listed(v[n]) for n in names))
    if isinstance(v, (list, tuple)):
        parts = [listed(e) for e in v]
        return v if all(p is e for p, e in zip(parts, v)) else tuple(parts)
    return v


def load(spec):
    if spec["form"] == "operator":
        sys.meta_path.insert(0, Finder(places(spec)))
    for module in spec.get("imports") or ():
        importlib.import_module(module)
    return FORMS[spec["form"]](spec)


def module_of(path):
    """Imports a file as a module of its own name, with its folder on the path as python FILE has it."""
    path = os.path.realpath(path)
    name = os.path.splitext(os.path.basename(path))[0]
    if os.path.dirname(path) not in sys.path:
        sys.path.insert(0, os.path.dirname(path))
    found = importlib.util.spec_from_file_location(name if name not in sys.modules else "of_user_" + name, path)
    if found is None:
        raise Refusal("%s is no Python file" % path)
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    with open(path, encoding="utf-8") as f:
        source = f.read()
    if "cuda" in source.lower():
        exec(on_cpu(source, path), vars(module))
    else:
        found.loader.exec_module(module)
    return module


class Kernel:
    """A function with the parameters of the reference's call that it takes."""

    owns_results = False  # whether its results are memory that the host gave

    def __init__(self, spec, f, extra=None):
        self.f, self.out, self.extra = f, (), extra or {}
        self.beside(spec)
        self.parameters = parameters(f)
        if self.parameters is None:  # it has those of the reference
            self.parameters = [{"name": r, "required": False, "keyword": r not in self.tensors, "default": ""} for r in self.reference]
        first = self.parameters[0]["name"] if self.parameters else ""
        required = [p for p in self.parameters if p["required"]]
        self.destination = first.lower() in OUTPUTS and first not in self.reference and len(required) > spec.get("required", len(required))
        self.names = self.matched()

    def beside(self, spec):
        """Takes what is told of the reference's parameters."""
        self.reference = spec.get("params") or []
        self.tensors, self.fixed = set(spec.get("tensors") or self.reference), set(spec.get("fixed") or ())
        self.needed = [r for r in self.reference[:spec.get("required") or 0] if r in self.tensors]

    def matched(self):
        """Returns for each parameter the reference's that it is, None for one that has to keep its default:
        the one of its name or of what that usually stands for, else, of those without a name that fits and
        without a fixed value, the next in order. One that has no default is by its name none of the
        reference's options while a tensor is missing: p may be positive."""
        own = self.parameters[self.destination:]
        if not self.reference:
            return [p["name"] for p in own]
        names = self.match(own, self.reference)
        if any(r not in names and r not in self.fixed for r in self.needed):
            names = self.match(own, [r for r in self.reference if r in self.needed])
        return names

    def match(self, own, by_name):
        """Matches parameters to the reference's, of which one without a default may be told by these names."""
        there = [p["name"] for p in own if p["name"] in by_name or not p["required"]]
        free, names = [r for r in self.reference if r not in there and r not in self.fixed], []
        for p in own:
            usual = USUAL.get(p["name"].lower())
            if p["name"] in self.reference and p["name"] in there:
                names.append(p["name"])
            elif usual in free and not p["keyword"]:
                free.remove(usual)
                names.append(usual)
            elif free and (p["required"] or free[0] in self.tensors) and not p["keyword"]:
                names.append(free.pop(0))
            else:
                names.append(None)
        return names

    def describe(self):
        return {"parameters": self.parameters, "takes": self.names, "destination": self.destination, **self.extra}

    def prepare(self, told):
        self.out = [torch.empty_strided(shape, strides, dtype=getattr(torch, dtype)) if strides else torch.empty(shape, dtype=getattr(torch, dtype))
                    for dtype, shape, strides in told.get("out", ())]

    def bind(self, args, kwargs):
        """Returns the kernel's own arguments for those of the reference's call."""
        given = dict(zip((r for r in self.reference if r not in kwargs), args), **kwargs) if self.reference else None
        if given is None:
            return args, kwargs
        pos, kws, positional = [], {}, True
        for p, name in zip(self.parameters[self.destination:], self.names):
            if name is None or name not in given:
                positional = False
            elif positional and not p["keyword"]:
                pos.append(given[name])
            else:
                kws[p["name"]] = given[name]
        return pos, kws

    def __call__(self, *args, **kwargs):
        return self.launch([t.fill_(float("nan")) if t.is_floating_point() else t for t in self.out], args, kwargs)

    def launch(self, out, args, kwargs):
        """Calls the function, with memory for its results where it wants that."""
        if not self.destination:
            return self.f(*args, **kwargs)
        self.f(*out, *args, **kwargs)
        return out[0] if len(out) == 1 else tuple(out)


def parameters(f):
    """Lists a function's parameters; None where it tells of none, as one in C or of *args does."""
    schema = schema_of(f)
    if schema is not None:
        return [{"name": a.name, "required": not a.has_default_value(), "keyword": a.kwarg_only, "default": repr(a.default_value) if a.has_default_value() else ""}
                for a in schema.arguments]
    if type(getattr(f, "__self__", None)).__name__.startswith(("PyCapsule", "pybind11")):
        return bound(f.__doc__ or "")
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = inspect.Parameter
    if found and all(p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in found):
        return None
    return [{"name": p.name, "required": p.default is kinds.empty, "keyword": p.kind is kinds.KEYWORD_ONLY,
             "default": repr(p.default) if p.default is not kinds.empty else ""}
            for p in found if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]


def bound(told):
    """Returns the parameters of a function of pybind11's, which tells of them in its first line; None for several in one."""
    inside, depth, parts = re.match(r"\w+\((.*)\)( ->|$)", told.split("\n")[0]), 0, [""]
    for c in inside.group(1) if inside else ():
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    found, keyword = [], False
    for part in map(str.strip, parts):
        if part == "*":
            keyword = True
        elif ":" in part:
            default = part.partition(" = ")[2]
            found.append({"name": part.partition(":")[0], "required": not default, "keyword": keyword, "default": default})
    return found or None


def schema_of(f):
    """Returns what a registered operator is declared as; None for other functions."""
    f = getattr(f, "_opoverload", f)  # of torch.library.custom_op
    if isinstance(f, torch._ops.OpOverloadPacket):
        names = f.overloads()
        f = getattr(f, "default" if "default" in names else names[0])
    return f._schema if isinstance(f, torch._ops.OpOverload) else None


def function(spec):
    module = module_of(spec["file"])
    f = getattr(module, spec["name"], None)
    if not callable(f):
        there = [k for k, v in vars(module).items() if callable(v) and not k.startswith("_") and getattr(v, "__module__", None) == module.__name__]
        raise Refusal("%s has no function %s; it has %s" % (os.path.basename(spec["file"]), spec["name"], ", ".join(there) or "none"))
    extra = {}
    if callable(getattr(module, "get_inputs", None)):
        extra["examples"] = [described(v) for v in module.get_inputs()]
    return Kernel(spec, f, extra)


def operator(spec):
    """A registered operator, mylib::rms_norm, or a function by its dotted name."""
    name = spec["name"]
    found = torch.ops if "::" in name else importlib.import_module(name.split(".")[0])
    for part in name.split("::") if "::" in name else name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            raise Refusal("there is no %s" % name) from None
    return Kernel(spec, found)


MANY = 1 << 18  # elements that are looked at, where there are whole matrices of fewer


def described(v):
    """Tells of an example what can be drawn like it."""
    if isinstance(v, (list, tuple)) and v and all(isinstance(t, torch.Tensor) for t in v):
        return {"list": [described(t) for t in v]}
    if not isinstance(v, torch.Tensor):
        plain = v is None or isinstance(v, (bool, int, float, str)) or isinstance(v, (list, tuple)) and all(type(e) is int for e in v)
        return {"value": v if plain else repr(v)}
    told = {"dtype": NAME_OF.get(v.dtype, str(v.dtype)), "shape": list(v.shape)}
    if v.numel() and v.dtype in NAME_OF and not v.is_complex():
        v = some(v)
        told["lo"], told["hi"] = float(v.min()), float(v.max())
        told["pattern"] = pattern(v)
        if v.is_floating_point() and v.numel() > 8 and told["lo"] < told["hi"] and bool(((v == told["lo"]) | (v == told["hi"])).all()):
            told["among"] = [told["lo"], told["hi"]]  # classes, as of a target that is -1 or 1
    return told


def some(v):
    """Returns the first matrices of many: what all have in common is seen in these."""
    while v.dim() > 2 and v.numel() > MANY:
        v = v[0] if len(v) == 1 else v[:max(1, len(v) * MANY // v.numel())]
    return v


CHANCE = 8  # pairs of equal numbers that a row is expected to have, and has none


def pattern(v):
    """Names what the rows of whole numbers of an example have in common, or its square matrices: zeros on one side
    of the diagonal or on both, symmetry; or that rows of numbers are in order, as boundaries are; "" where there is
    nothing that a kernel may rely on."""
    if v.is_floating_point() and v.dim() and v.shape[-1] > 4 and bool((v[..., 1:] > v[..., :-1]).all()):
        return "ascending"
    if v.dim() and v.shape[-1] > 1 and not v.is_floating_point() and v.dtype is not torch.bool:
        n, ranked = v.shape[-1], v.sort(-1)[0]
        if torch.equal(v, ranked):
            return "rising" if bool((v[..., 1:] > v[..., :-1]).all()) else "ascending" if v.min() < v.max() else ""
        if bool((ranked == torch.arange(n)).all()):
            return "permutation"
        if n * (n - 1) / 2 > CHANCE * float(v.max() - v.min() + 1) and bool((ranked[..., 1:] > ranked[..., :-1]).all()):
            return "distinct"
    n = v.shape[-1] if v.dim() > 1 else 0
    if n < 3 or v.shape[-2] != n:
        return ""
    below, above = bool(v.tril(-1).any()), bool(v.triu(1).any())
    if not below and not above:
        return "diagonal" if bool(v.any()) and v.dtype is not torch.bool else ""
    if v.dtype is torch.bool:
        return "lower" if torch.equal(v, torch.ones_like(v).tril()) else "upper" if torch.equal(v, torch.ones_like(v).triu()) else ""
    if not below or not above:
        return "upper" if above else "lower"
    return "symmetric" if v.min() < v.max() and torch.equal(v, v.transpose(-1, -2)) else ""


# A function of a library in C.

C_TYPES = {"float": ctypes.c_float, "double": ctypes.c_double, "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
           "long": ctypes.c_long, "size_t": ctypes.c_size_t, "uint8_t": ctypes.c_uint8, "int8_t": ctypes.c_int8, "int16_t": ctypes.c_int16, "bool": ctypes.c_bool}
C_DTYPES = {"float": torch.float32, "double": torch.float64, "int": torch.int32, "int32_t": torch.int32, "int64_t": torch.int64,
            "long": torch.int64, "uint8_t": torch.uint8, "int8_t": torch.int8, "int16_t": torch.int16, "bool": torch.bool}
DECLARED = re.compile(r"^\s*(const\s+)?([A-Za-z_0-9]+)\s*(\*?)\s*([A-Za-z_0-9]+)\s*(?:\[([^\]]*)\]\s*)?(?:=\s*(.+?)\s*)?$")
PARAMETERS = re.compile(r",(?![^\[(]*[\])])")


class Library(Kernel):
    """A C function by its declaration, such as
    "void softmax_f32(const float *x[N,C], float *y[N,C], int64_t N, int64_t C)": pointers to const are
    arguments, others results. A number is the size of its name, or what stands behind its "=", in
    terms of the arguments (int64_t n = x.numel()), or else an attribute of the reference."""

    owns_results = True

    def __init__(self, spec):
        self.library = ctypes.CDLL(os.path.realpath(spec["file"]))
        self.function = getattr(self.library, spec["name"])
        self.function.restype = None
        self.declared = [self.parameter(p) for p in PARAMETERS.split(spec["signature"].partition("(")[2].rpartition(")")[0])]
        self.sizes = dict(spec.get("sizes") or {})
        for d in self.declared:
            for axis, size in enumerate(d["shape"].split(",") if d["const"] and d["shape"] else ()):
                self.sizes.setdefault(size.strip(), (d["name"], axis))
        self.out, self.extra, self.destination = (), {}, True
        self.beside(spec)
        own = [d["name"] for d in self.declared if d["pointer"] and d["const"] or not d["pointer"] and not d["value"] and d["name"] not in self.sizes]
        self.parameters = [{"name": n, "required": True, "keyword": False, "default": ""} for n in ["out", *own]]
        self.names = self.matched()

    def parameter(self, text):
        found = DECLARED.match(text)
        if not found or found.group(2) not in C_TYPES:
            raise Refusal("--signature: %r is no parameter, such as \"const float *x[N,C]\" or \"int64_t n = x.numel()\"" % text.strip())
        const, kind, pointer, name, shape, value = found.groups()
        return {"const": bool(const), "type": kind, "pointer": bool(pointer), "name": name, "shape": shape or "", "value": value}

    def describe(self):
        dtypes = sorted({NAME_OF[C_DTYPES[d["type"]]] for d in self.declared if d["pointer"] and d["const"]})
        return dict(super().describe(), dtypes=dtypes, contiguous=True)

    def __call__(self, *args):
        return self.launch(self.out, args, {})

    def launch(self, out, args, kwargs):
        named = dict(zip([p["name"] for p in self.parameters[1:]], args))
        results, out, raw = out, list(out), []
        for d in self.declared:
            if d["pointer"]:
                t = named[d["name"]] if d["const"] else out.pop(0)
                if t.dtype != C_DTYPES[d["type"]]:
                    raise TypeError("%s is %s, not %s" % (d["name"], d["type"], t.dtype))
                if d["const"] and not t.is_contiguous():
                    raise ValueError("%s is not contiguous" % d["name"])
                raw.append(ctypes.c_void_p(t.data_ptr()))
            else:
                raw.append(C_TYPES[d["type"]](self.number(d, named)))
        self.function(*raw)
        return results[0] if len(results) == 1 else tuple(results)

    def number(self, d, named):
        if d["value"]:
            return number(d["value"], {**{n: named[of].shape[axis] for n, (of, axis) in self.sizes.items() if of in named}, **named})
        if d["name"] in self.sizes:
            of, axis = self.sizes[d["name"]]
            return named[of].shape[axis]
        return named[d["name"]]


SIZES = {"numel": lambda t: t.numel(), "dim": lambda t: t.dim()}
ARITHMETIC = {ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a // b, ast.FloorDiv: lambda a, b: a // b, ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b}


def number(text, named):
    """Returns what an expression of numbers, sizes, x.numel(), x.dim(), x.size(i) and x.shape[i] comes to."""
    def of(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name) and node.id in named:
            return named[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -of(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return ARITHMETIC[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SIZES and not node.args:
            return SIZES[node.func.attr](of(node.func.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            return of(node.func.value).shape[of(node.args[0])]
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return of(node.value.value).shape[of(node.slice)]
        raise Refusal("--signature: %r is no size" % text)

    return of(ast.parse(text, mode="eval").body)


FORMS = {"function": function, "operator": operator, "library": Library}  # and those of plumb_problems.py and plumb_tasks.py
