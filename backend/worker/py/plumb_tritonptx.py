"""Compiles kernels in Triton to PTX without a GPU, in a process whose Triton is no interpreter.

plumb_kernel.py has this in the role "compiler"; it is told what a call has launched
(plumb_triton.remember).
"""

import os
import re
import sys

import plumb_forms
import plumb_triton
import plumb_tritonhost
import torch

TARGET = ("cuda", 80, 32)  # an A100
LATER = ("cuda", 90, 32)
REMOVED = "Block pointers have been removed"
MOST = 4  # launches that are compiled
LONGEST = 3  # seconds of the processor that compilations take, beside the first of each kernel
SEEN = (
    (re.compile(r"\bmma[.\w]*\.tf32\b"), "multiplies float32 as TF32, with 10 bits of mantissa (input_precision=\"ieee\" does not)"),
    (re.compile(r"\bex2\.approx"), "takes the exponential approximately (ex2.approx)"),
    (re.compile(r"\bdiv\.full"), "divides approximately (div.full: 2 ulp)"),
)


class Gone(Exception):
    """What was launched is not to be found, or has an argument that this cannot state."""


def compile_all(spec, launches):
    """Returns the compilers' errors, and in words what is seen and what could not be compiled."""
    triton = compiler()
    plumb_triton.drive(triton)
    plumb_triton.stand_in()
    nothing_runs(triton)
    try:
        plumb_forms.load(dict(spec, role="candidate"))
    except Exception:  # it looks at what its launches would have given; the kernels are there
        pass
    told = {"errors": [], "notes": [], "compiled": 0}
    until, rates, left = spent() + LONGEST, {}, 0
    for launch in smallest_first(launches):
        name, began = launch["name"], spent()
        if rates and began + rates.get(name, 0) * blocks(launch) > until or told["compiled"] == MOST:
            left += 1
            continue
        try:
            ptx = compiled(triton, launch)
        except Gone as e:
            note(told["notes"], "%s was not compiled: %s" % (name, e))
        except Exception as e:
            if REMOVED in str(e):  # the interpreter has them again by plumb_tritonlang.py
                note(told["notes"], "%s was not compiled: Triton %s has no block pointers any more" % (name, triton.__version__))
            elif newer(triton, launch):
                note(told["notes"], "%s does not compile for sm_80, and does for sm_90: %s" % (name, reason(e)))
            else:
                note(told["errors"], "%s does not compile for sm_80: %s" % (name, reason(e)))
        else:
            told["compiled"] += 1
            for pattern, text in SEEN:
                if pattern.search(ptx):
                    note(told["notes"], "%s %s" % (name, text))
        rates[name] = (spent() - began) / blocks(launch)
    if left:
        note(told["notes"], "%d more launched signatures were not compiled" % left)
    return told


def spent():
    """Returns the processor time of this process and of the assemblers that it has started."""
    return sum(os.times()[:4])


def compiler():
    """Returns Triton as a compiler: that of which this process is a fork has imported it as an
    interpreter, which is the same but for its modules in Python, so that PyTorch need not be
    imported once more."""
    import triton.language

    if not hasattr(triton.language.sum, "cache_key"):
        os.environ["TRITON_INTERPRET"] = "0"
        for name in [n for n in sys.modules if n.split(".")[0] == "triton" and not n.startswith("triton._C")]:
            del sys.modules[name]
        import triton.language
    return triton


def blocks(launch):
    """Returns how large the blocks of a launch are, by its constants: a compiler's time grows with them."""
    size = 1
    for told in launch["constants"].values():
        v = told.get("value", "")
        size *= int(v) if v.isdigit() and int(v) > 1 else 1
    return size


def smallest_first(launches):
    """Orders launches by their blocks, the smallest one of each kernel before a second one of any."""
    seen, ordered = {}, []
    for launch in sorted(launches, key=blocks):
        ordered.append((seen.setdefault(launch["name"], 0), launch))
        seen[launch["name"]] += 1
    return [launch for _, launch in sorted(ordered, key=lambda of: of[0])]


def nothing_runs(triton):
    """Has what a file tries when it is imported launch nothing."""
    from triton.compiler import CompiledKernel

    jit = triton.runtime.jit.JITFunction
    jit.run = lambda self, *args, **kwargs: plumb_tritonhost.Compiled(self, kwargs)
    jit.__getitem__ = lambda self, grid: lambda *args, **kwargs: None
    CompiledKernel._init_handles = lambda self: None
    plumb_triton.bench_once()


def note(texts, text):
    if text not in texts:
        texts.append(text)


def reason(e):
    """Returns the last line of an error that says something, with the line of the kernel where there is one."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip(" ^")]
    return "%s: %s" % (type(e).__name__, "; ".join([lines[0], lines[-1]] if len(lines) > 1 else lines) or "no reason given")


def newer(triton, launch):
    """Tells whether a launch compiles for a later GPU, which has dtypes such as float8 that an A100 has not."""
    try:
        return bool(compiled(triton, launch, LATER))
    except Exception:
        return False


def compiled(triton, launch, target=None):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    fn = found(launch["module"], launch["name"])
    unknown = [n for n, t in launch["signature"].items() if t == "?"]
    if unknown:
        raise Gone("its argument %s" % unknown[0])
    constants = {(fn.arg_names.index(n),): constant(fn, v) for n, v in launch["constants"].items()}
    source = ASTSource(fn=fn, signature=launch["signature"], constexprs=constants)
    return triton.compile(source, target=GPUTarget(*(target or TARGET)), options=launch["options"]).asm["ptx"]


def found(module, name):
    """Returns a jit function by its names, from below what tunes it."""
    for v in vars(sys.modules[module]).values() if module in sys.modules else ():
        while v is not None and hasattr(v, "fn") and not hasattr(v, "cache_key"):
            v = v.fn
        if hasattr(v, "cache_key") and getattr(v, "__name__", None) == name:
            return v
    raise Gone("it is no name of the module %s" % module)


def constant(fn, told):
    (kind, v), = told.items()
    if kind == "value":
        return eval(v, {"__builtins__": {}, "inf": float("inf"), "nan": float("nan")})
    if kind == "torch":
        return getattr(torch, v)
    if kind == "dtype":
        import triton.language as tl

        return tl.str_to_ty(v, None)
    if kind == "function":
        return found(fn.__module__, v)
    raise Gone("a constant of type %s" % v)
