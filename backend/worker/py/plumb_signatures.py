"""Signatures of PyTorch's callables in schema notation, without calling them.

Functions written in Python and modules' constructors tell their parameters in
their source, where annotations still have their names; built-in functions
and methods have schemas under their name in aten.
"""

import ast
import inspect
import re
import textwrap

import torch


# Where the annotations say less than the functions accept.
KNOWN = {
    "torch.nn.functional.interpolate": [
        "interpolate(Tensor input, int[1]? size=None, float[1]? scale_factor=None, str mode='nearest',"
        " bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor"],
    "torch.tensordot": [
        "tensordot(Tensor a, Tensor b, int dims=2) -> Tensor",
        "tensordot(Tensor a, Tensor b, int[] dims) -> Tensor"],
}


def of(target, f):
    """Returns the overloads of a resolved target, or None when unknown."""
    if target in KNOWN:
        return KNOWN[target]
    if target == "Tensor.backward" or target.startswith("torch.autograd."):  # whose schemas lack what Python adds
        return None
    name = target.rpartition(".")[2]
    if target.startswith("Tensor."):
        return schemas(name)
    if isinstance(f, type) and issubclass(f, torch.nn.Module):
        return from_source(name, f.__init__, dimensions(name), method=True)
    if target.startswith("torch.") and callable(f):
        return of_function(name, f)
    return None


def of_function(name, f):
    if getattr(f, "__name__", "") == "fn":  # boolean_dispatch: the form with one result
        f = getattr(torch.nn.functional, "_" + name, f)
    if inspect.isfunction(f):
        texts = from_source(name, f, dimensions(name), method=False)
        if texts:
            return texts
    return schemas(getattr(f, "__name__", name)) or schemas(name)


# Python source.

def dimensions(name):
    """Returns N of conv2d and MaxPool2d, "" for other names."""
    found = re.search(r"([123])d$", name.rstrip("_"))
    return found.group(1) if found else ""


def from_source(name, f, n, method):
    """Returns the signature, and one with words where sizes may be words, such as padding="same"."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(f)))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    args = getattr(node, "args", None)
    if args is None or args.vararg or args.kwarg:
        return None
    plain = (args.posonlyargs + args.args)[1 if method else 0:]
    missing = len(args.posonlyargs + args.args) - len(args.defaults)
    defaults = ([None] * missing + list(args.defaults))[1 if method else 0:]
    keyword = list(zip(args.kwonlyargs, args.kw_defaults))
    texts = []
    for words in (False, True):
        parts = [parameter(a, d, n, words) for a, d in zip(plain, defaults)]
        if keyword:
            parts.append("*")
            parts += [parameter(a, d, n, words) for a, d in keyword]
        if None in parts:
            return None
        text = "%s(%s)" % (name, ", ".join(p for p in parts if p))
        texts.append(text if method else text + " -> Tensor")
    return texts[:1] if texts[0] == texts[1] else texts


def parameter(arg, default, n, words):
    """Returns "type name=default", "" to leave it out, None when it has no notation."""
    if arg.arg.startswith("_") and default is not None:
        return ""
    if words and arg.annotation is not None and re.fullmatch(r"Union\[str, .*\]|str \| .*", ast.unparse(arg.annotation)):
        return "str " + arg.arg
    value = None if default is None else default_of(default)
    kind = kind_of(arg, default, n)
    if kind is None or default is not None and value is None:
        return None if default is None else ""
    if value == "None" and not kind.endswith("?"):
        kind += "?"
    if value is None:
        return "%s %s" % (kind, arg.arg)
    return "%s %s=%s" % (kind, arg.arg, value)


def kind_of(arg, default, n):
    if arg.annotation is not None:
        return annotated(arg.annotation, n)
    if arg.arg in ("device", "dtype"):
        return arg.arg + "?"
    value = getattr(default, "value", None)
    return {bool: "bool", int: "int", float: "float", str: "str"}.get(type(value))


def default_of(node):
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return literal(value)


def literal(value):
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str) and not re.search(r"""['"\\,()\[\]=]""", value):
        return '"%s"' % value
    if isinstance(value, (list, tuple)):
        parts = [literal(v) for v in value]
        return None if None in parts else "[%s]" % ", ".join(parts)
    return None


KINDS = {
    "Tensor": "Tensor", "torch.Tensor": "Tensor", "int": "int", "float": "float", "bool": "bool", "str": "str",
    "Number": "Scalar", "_Number": "Scalar", "complex": "Scalar", "DType": "dtype", "torch.dtype": "dtype",
    "_dtype": "dtype", "torch.device": "device", "Device": "device", "Generator": "Generator",
    "torch.Generator": "Generator", "_shape_t": "int[1]", "Size": "int[]", "torch.Size": "int[]",
    "torch.memory_format": "MemoryFormat", "List[Tensor]": "Tensor[]", "TensorList": "Tensor[]",
    "Tuple[Tensor, ...]": "Tensor[]", "Sequence[Tensor]": "Tensor[]", "Tuple[int, int]": "int[2]",
}


def annotated(node, n):
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return kind_text(text, n)


def kind_text(text, n):
    text = re.sub(r"\b(list|tuple)\[", lambda m: m.group(0).capitalize(), text.strip("'\" "))
    if text in KINDS:
        return KINDS[text]
    sized = re.fullmatch(r"_(size|ratio)_(any|[1-6])_(opt_)?t", text)
    if sized:
        base = "int" if sized.group(1) == "size" else "float"
        return "%s[%s]" % (base, (n or "1") if sized.group(2) == "any" else sized.group(2))
    listed = re.fullmatch(r"(?:List|Sequence|Tuple|BroadcastingList([1-6]))\[(int|float)(?:, \.\.\.)?\]", text)
    if listed:
        return "%s[%s]" % (listed.group(2), listed.group(1) or "")
    optional = re.fullmatch(r"Optional\[(.*)\]", text)
    if optional:
        inner = kind_text(optional.group(1), n)
        return inner and inner.rstrip("?") + "?"
    union = re.fullmatch(r"Union\[(.*)\]", text)
    parts = split_top(union.group(1), ",") if union else split_top(text, "|")
    return union_of(parts, n) if len(parts) > 1 else None


def union_of(parts, n):
    """Returns the most general member that the notation has: int or int[] is int[1]."""
    none = "None" in parts
    kinds = {kind_text(p, n) for p in parts if p != "None"} - {None}
    lists = sorted(k for k in kinds if "[" in k)
    if lists:
        one = lists[0].replace("[]", "[1]") if lists[0].partition("[")[0] in kinds else lists[0]
    elif {"int", "float"} <= kinds or "Scalar" in kinds:
        one = "Scalar"
    else:
        one = min(kinds, default=None, key=lambda k: (k == "str", k))
    return one and one.rstrip("?") + ("?" if none else "")


def split_top(text, mark):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == mark and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


# aten.

TYPES = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int", "float": "float", "bool": "bool", "str": "str", "SymInt": "int",
    "number": "Scalar", "complex": "Scalar", "ScalarType": "dtype", "Device": "device", "Generator": "Generator",
    "MemoryFormat": "MemoryFormat",
}
FORMATS = {"0": "contiguous_format", "1": "preserve_format", "2": "channels_last"}
SELF = {"self": "input"}


def schemas(name):
    found = []
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + name):
        text = convert(str(schema))
        if text:
            found.append(text)
    return found or None


def convert(schema):
    """Returns an aten schema in Plumb's notation, None when it has none."""
    if re.search(r"\*,.*\(\w!\).* -> |^[\w:]+\.(prim_|names)", schema):
        return None
    schema = re.sub(r"\((\w+|\w+!|\w+ -> \*|\w+\|\w+)\)(?=[ \[,?)]|$)", "", schema)
    head, params, results = re.fullmatch(r"aten::([\w.]+)\((.*)\) -> (.*)", schema).groups()
    if not re.fullmatch(r"Tensor(\[\])?|\((Tensor(\[\])? ?\w*(, )?)+\)", results):
        results = None
        if "Tensor" not in params:
            return None
    converted = [aten_parameter(p) for p in split_top(params, ",") if p]
    if None in converted or not any("Tensor" in p for p in converted) and results is None:
        return None
    if "pin_memory" in params and "non_blocking" not in params:  # Python's factories have one more
        converted.append("bool requires_grad=False")
    text = "%s(%s)" % (head, ", ".join(p for p in converted if p))
    return text + " -> " + results if results else text


def aten_parameter(text):
    if text == "*":
        return text
    found = re.fullmatch(r"(\w+)(\[\d*\])?(\?)?(\[\])? (\w+)(?:=(.*))?", text)
    if not found:
        return None
    base, size, optional, more, name, default = found.groups()
    if name == "out" or more or base in ("Dimname", "t") or base == "str" and size:
        return None
    if base in ("Layout", "Storage", "Stream"):
        return "" if default is not None else None
    if base not in TYPES:
        return None
    kind = TYPES[base] + (size or "") + (optional or "")
    name = SELF.get(name, name)
    if default is None:
        return "%s %s" % (kind, name)
    if base == "MemoryFormat":
        default = FORMATS.get(default, default)
    if default == "[]" and size:
        kind, default = TYPES[base] + size + "?", "None"
    return "%s %s=%s" % (kind, name, default)
