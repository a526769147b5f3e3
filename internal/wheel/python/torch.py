"""The operators as PyTorch's own: torch.library has their schemas, their kernels for
the CPU, what they infer, and their gradients of any order.

    from NAME import torch as registered

    registered.ops.leaky_relu_yzh(x, 0.2)       # registered when it is first named
    registered.register("leaky_relu_yzh")       # and is torch.ops.NAME.leaky_relu_yzh
"""

import torch

from . import _library

namespace = __package__.rpartition(".")[2]
_registered = {}
_dtypes = {getattr(torch, n): n for n in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")}
_torch_dtypes = {n: d for d, n in _dtypes.items()}
_formats = {torch.contiguous_format: "contiguous_format", torch.channels_last: "channels_last", torch.preserve_format: "preserve_format"}
_most = 4096  # plans that an operator keeps


_numbers = {
    n: getattr(torch, d)
    for n, d in {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16"}.items()
}  # in a list of dtypes


def _key(v, tensors):
    """Returns all of an argument that a plan depends on, and notes its tensors."""
    if isinstance(v, torch.Tensor):
        tensors.append(v)
        return torch.Tensor, v.dtype, tuple(int(n) for n in v.shape), tuple(int(n) for n in v.stride())
    if isinstance(v, (list, tuple)):
        return (list, *[_key(e, tensors) for e in v])
    if isinstance(v, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        v = v.node.guard_int("", 0) if isinstance(v, torch.SymInt) else float(v) if isinstance(v, torch.SymFloat) else bool(v)
    if isinstance(v, float):
        return float, v.hex()
    if isinstance(v, complex):
        return complex, v.real.hex(), v.imag.hex()
    return type(v), v


def _written(key):
    """Returns the argument of a key as the library reads it."""
    kind, *of = key
    if kind is torch.Tensor:
        dtype, shape, strides = of
        if dtype not in _dtypes:
            raise TypeError(f"a tensor is {dtype}: Plumb has {', '.join(_torch_dtypes)}")
        return {"tensor": [_dtypes[dtype], shape, strides]}
    if kind is list:
        return [_written(k) for k in of]
    if kind is float:
        return {"float": of[0]}
    if kind is complex:
        return {"complex": of}
    if kind is torch.dtype:
        return {"dtype": _dtypes[of[0]]}
    if kind is torch.memory_format:
        return {"format": _formats[of[0]]}
    return of[0]


class _Kernel:
    """One signature of an operator: its plans, and what runs them."""

    def __init__(self, operator, schema):
        self.id, self.schema, self.plans, self.unset = operator, schema, {}, schema.get("unset", ())
        self.dtypes = {n for n, kind in zip(schema["params"], schema["kinds"]) if kind == "dtype"}
        _library.caches.add(self)

    def forget(self):
        self.plans.clear()

    def plan(self, args, kwargs):
        tensors = []
        given = [*zip(self.schema["params"], args), *kwargs.items()]
        key = tuple((n, _key([_numbers.get(e, e) for e in v] if n in self.dtypes and isinstance(v, (list, tuple)) else v, tensors)) for n, v in given if v is not None or n not in self.unset)
        plan = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= _most:
                self.plans.clear()
            from ._ops import Plan

            plan = Plan({"id": self.id, "kwargs": [[n, _written(k)] for n, k in key]})
            self.plans[key] = plan
        return plan, tensors

    def allocate(self, plan, device):
        return [torch.empty_strided(shape, strides, dtype=_torch_dtypes[name], device=device) for shape, name, strides in plan.results]

    def given(self, out):
        return out if self.schema["many"] else out[0] if len(out) == 1 else tuple(out)

    def compute(self, *args, **kwargs):
        plan, tensors = self.plan(args, kwargs)
        data = [t.data_ptr() for t in tensors]
        if not plan.new:
            out = self.allocate(plan, None)
            _library.run(plan.handle, data, [t.data_ptr() for t in out])
            return self.given(out)
        from ._ops import _Result

        made, shares = _library.run_new(plan.handle, data)
        out = []
        for i, (m, at) in enumerate(zip(made, shares)):
            name = plan.results[i][1] if plan.results else None
            x = _tensor(_Result(m, None))
            if at >= 0:  # an operator of PyTorch's from outside has no views
                x = torch.empty_strided(*plan.results[i][::2], dtype=x.dtype).copy_(x) if name else x.clone()
            out.append(x)
        return self.given(out)

    def infer(self, *args, **kwargs):
        plan, tensors = self.plan(args, kwargs)
        if plan.new and not plan.results:
            raise NotImplementedError(f"{self.id}: the shapes of its results follow from elements")
        return self.given(self.allocate(plan, tensors[0].device if tensors else "cpu"))


def _tensor(result):
    """Returns a result as a tensor over the same memory."""
    brain, result.brain = result.brain, False
    x = torch.from_numpy(result.array().view("i2") if brain else result.array())
    return x.view(torch.bfloat16) if brain else x


class _Saved(int):
    """The place of a tensor among those that are saved."""


def _lifted(a, f):
    """Returns an argument with f of each tensor in it, or of each _Saved."""
    if isinstance(a, (list, tuple)):
        return [_lifted(e, f) for e in a]
    return f(a) if isinstance(a, (torch.Tensor, _Saved)) else a


class _Gradient:
    """The gradient of one signature: the operator that the library derives from it."""

    def __init__(self, schema, vjp):
        self.schema, self.vjp = schema, vjp

    def save(self, ctx, inputs, keyword_only_inputs=None, output=None):
        values = iter(inputs)
        args = [keyword_only_inputs[n] if by_name else next(values) for n, by_name in zip(self.schema["params"], self.schema["kwonly"])]
        ctx.outputs = len(output) if isinstance(output, (list, tuple)) else 1
        tensors = []

        def place(t):
            tensors.append(t)
            return _Saved(len(tensors) - 1)

        ctx.args = _lifted(args, place)
        ctx.save_for_backward(*tensors, *(output if isinstance(output, (list, tuple)) else [output]))

    def save_positional(self, ctx, inputs, output):
        self.save(ctx, inputs, {}, output)

    def backward(self, ctx, *grads):
        saved = ctx.saved_tensors
        tensors, results = saved[: len(saved) - ctx.outputs], saved[len(saved) - ctx.outputs :]
        args = _lifted(ctx.args, lambda i: tensors[i])
        wanted = list(_wanted(ctx.args, ctx.needs_input_grad))
        if self.schema["many"]:
            given = grads[0] if len(grads) == 1 and isinstance(grads[0], (list, tuple)) else grads
            outputs = [list(results), [torch.zeros_like(r) if g is None else g for r, g in zip(results, given)]]
        else:
            outputs = [*results, *grads]
        register(self.vjp["of"])
        name, _, overload = self.vjp["name"].partition(".")
        computed = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")(*args, *outputs, wanted)
        found = dict(zip(wanted, computed))
        out = []
        for a, by_name in zip(ctx.args, self.schema["kwonly"]):
            if by_name:
                continue
            places = [e for e in a if isinstance(e, _Saved)] if isinstance(a, list) else []
            if places and len(places) < len(a):
                if any(tensors[i].requires_grad for i in places):
                    raise NotImplementedError(f"{self.schema['name']}: torch.library has no gradients of a list that has None in it")
                out.append(None)
            elif places:
                out.append([found.get(i) for i in places])
            else:
                out.append(found.get(a) if isinstance(a, _Saved) else None)
        return tuple(out) if len(out) != 1 else out[0]


class _Refusal:
    """The gradient of an operator that has none here."""

    def __init__(self, why):
        self.why = why

    def __call__(self, ctx, *grads):
        raise NotImplementedError(self.why)


def _wanted(args, needs):
    """Yields the places of tensors that want a gradient."""
    for a, n in zip(args, needs):
        if isinstance(a, _Saved) and n:
            yield int(a)
        elif isinstance(a, list) and n:
            yield from _wanted(a, n if isinstance(n, (list, tuple)) else [n] * len(a))


def _define(described):
    for i, schema in enumerate(described["schemas"]):
        if not schema["text"]:
            continue
        kernel, name = _Kernel(described["id"], schema), f"{namespace}::{schema['name']}"
        tags = [torch.Tag.pt2_compliant_tag]
        if described.get("random"):
            tags.append(torch.Tag.nondeterministic_seeded)
        torch.library.define(name, schema["text"][len(schema["name"]) :], tags=tags)
        torch.library.impl(name, "cpu")(kernel.compute)
        torch.library.register_fake(name)(kernel.infer)
        vjp = described.get("vjp") or []
        if i < len(vjp) and vjp[i]["text"]:
            gradient = _Gradient(schema, {**vjp[i], "of": vjp[0]["name"]})
            setup = gradient.save if any(schema["kwonly"]) else gradient.save_positional
            torch.library.register_autograd(name, gradient.backward, setup_context=setup)
        elif described.get("novjp") and "!" not in schema["text"]:
            torch.library.register_autograd(name, _Refusal(described["novjp"]))


def register(*names):
    """Registers operators, every overload; they are torch.ops.NAMESPACE.…"""
    for name in names:
        if name in _registered:
            continue
        described = _library.describe(name)
        own = [d for d in described if d["id"].partition(".")[0] == name] or described
        for d in own:
            if d["id"] not in _registered:
                _registered[d["id"]] = d
                _define(d)
        why = [s["why"] for d in own for s in d["schemas"] if not s["text"]]
        if len(why) == sum(len(d["schemas"]) for d in own):
            raise NotImplementedError(f"{name} cannot be an operator of PyTorch's: {why[0]}")
        _registered[name] = own[0]


class _Operators:
    """The operators by name, registered when they are first named."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        register(name)
        base = _registered[name]["id"].partition(".")[0]
        packet = getattr(getattr(torch.ops, namespace), base)
        setattr(self, name, packet)
        return packet


ops = _Operators()
