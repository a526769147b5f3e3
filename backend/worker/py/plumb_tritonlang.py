"""What files in Triton name and its interpreter lacks: block pointers, where a version has given
them up, and floats of a launch and counts of a loop that are values of a kernel's. Tried with
Triton 3.5.1 and 3.9.0."""

import ast
import operator

import numpy as np


def complete(interpreter, tl):
    """Adds what is missing to the language."""
    add_block_pointers(interpreter, tl)
    add_floats(interpreter, tl)
    add_counts(interpreter)
    add_words(interpreter, tl)


# Block pointers.

class BlockPointer:
    """A block of a tensor in memory: whose elements are loaded and stored depends on its offsets."""

    def __init__(self, base, shape, strides, offsets, block_shape):
        self.base, self.shape, self.strides, self.offsets, self.block_shape = base, shape, strides, offsets, block_shape
        self.dtype, self.type = base.dtype, base.type

    def advanced(self, steps):
        return BlockPointer(self.base, self.shape, self.strides, [o + whole(s) for o, s in zip(self.offsets, steps)], self.block_shape)

    def places(self, checked):
        """Returns the addresses of the elements, and which of them lie within the checked dimensions."""
        rank, size = len(self.block_shape), self.dtype.element_ty.primitive_bitwidth // 8
        at, inside = np.zeros(self.block_shape, np.int64), np.ones(self.block_shape, bool)
        for k in range(rank):
            i = (self.offsets[k] + np.arange(self.block_shape[k])).reshape([-1 if j == k else 1 for j in range(rank)])
            at = at + i * self.strides[k] * max(size, 1)
            if k in checked:
                inside = inside & (i >= 0) & (i < self.shape[k])
        return np.asarray(self.base.handle.data).reshape(-1)[0] + at.astype(np.uint64), inside


def whole(v):
    """Returns a number of a kernel's as Python's."""
    v = getattr(v, "value", v)
    return int(np.asarray(v.handle.data).reshape(-1)[0]) if hasattr(v, "handle") else int(v)


def add_block_pointers(interpreter, tl):
    core = tl.core
    try:
        core.make_block_ptr(None, None, None, None, None, None, _semantic=1)
    except NotImplementedError:  # a version that has given them up
        pass
    except Exception:
        pad_with_zeros(interpreter)
        return
    load, store, Handle = core.load, core.store, interpreter.TensorHandle

    def wholes(values):
        return [whole(v) for v in values]

    def make_block_ptr(base, shape, strides, offsets, block_shape, order, _semantic=None):
        return BlockPointer(base, wholes(shape), wholes(strides), wholes(offsets), wholes(block_shape))

    def advance(base, offsets, _semantic=None):
        return base.advanced(offsets)

    def dimensions(checked):
        checked = getattr(checked, "value", checked) or ()
        return {whole(k) for k in (checked if isinstance(checked, (tuple, list)) or hasattr(checked, "values") else (checked,))}

    def pointers(block, checked):
        at, inside = block.places(dimensions(checked))
        return Handle(at, block.dtype), Handle(inside, tl.int1)

    def block_load(pointer, mask=None, other=None, boundary_check=(), padding_option="", cache_modifier="", eviction_policy="", volatile=False, _semantic=None):
        if not isinstance(pointer, BlockPointer):
            return load(pointer, mask, other, cache_modifier=cache_modifier, eviction_policy=eviction_policy, volatile=volatile, _semantic=_semantic)
        ptrs, inside = pointers(pointer, boundary_check)
        element = pointer.dtype.element_ty
        filled = np.zeros(pointer.block_shape, interpreter._get_np_dtype(element))
        if getattr(padding_option, "value", padding_option) == "nan":
            filled[...] = 0x7FC0 if element.is_bf16() else np.nan
        v = _semantic.builder.create_masked_load(ptrs, inside, Handle(filled, element), None, False)
        return tl.tensor(v, tl.block_type(element, pointer.block_shape))

    def block_store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy="", _semantic=None):
        if not isinstance(pointer, BlockPointer):
            return store(pointer, value, mask, cache_modifier=cache_modifier, eviction_policy=eviction_policy, _semantic=_semantic)
        ptrs, inside = pointers(pointer, boundary_check)
        value = _semantic.to_tensor(value)
        value = _semantic.cast(_semantic.broadcast_impl_shape(value, pointer.block_shape), pointer.dtype.element_ty)
        _semantic.builder.create_masked_store(ptrs, value.handle, inside, None)

    for name, f in (("make_block_ptr", make_block_ptr), ("advance", advance), ("load", block_load), ("store", block_store)):
        f = core.builtin(f)
        for owner in (core, tl):
            setattr(owner, name, f)


def pad_with_zeros(interpreter):
    """Has a version's own block pointers load zeros beyond a boundary where nothing is asked for, as
    GPUs do: whole libraries of kernels rely on it."""
    Builder, zero = interpreter.InterpreterBuilder, interpreter._ir.PADDING_OPTION.PAD_ZERO
    load = Builder.create_tensor_pointer_load

    def create_tensor_pointer_load(self, ptr, boundary_check, padding_option, *rest):
        return load(self, ptr, boundary_check, zero if padding_option is None else padding_option, *rest)

    Builder.create_tensor_pointer_load = create_tensor_pointer_load


# Floats of a launch.

def add_floats(interpreter, tl):
    """Makes a float that a launch is given a float32, as it is on a GPU: the interpreter keeps Python's,
    which has no methods and is cast to what it meets, so that x * scale of a half dtype is rounded to it.
    Beside float64 it counts as it was given, since that it is rounded there is no fault of a kernel's."""
    Handle, convert = interpreter.TensorHandle, interpreter._implicit_cvt
    semantic = type(interpreter.interpreter_semantic)
    cast = semantic.cast

    class Float(tl.tensor):
        def __init__(self, exact):
            with np.errstate(over="ignore"):
                super().__init__(Handle(np.array([exact], np.float32), tl.float32), tl.float32)
            self.exact = exact

        def __neg__(self):
            return Float(-self.exact)

    def computed(name, f):
        def g(self, other):
            other = getattr(other, "value", other)
            if isinstance(other, (int, float, Float)):
                try:
                    return Float(f(self.exact, getattr(other, "exact", other)))
                except (ArithmeticError, TypeError):  # Python raises where a kernel has an infinity or NaN
                    pass
            return getattr(tl.tensor, name)(self, other)

        return g

    for name, f in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("truediv", operator.truediv)):
        setattr(Float, "__%s__" % name, computed("__%s__" % name, f))
        setattr(Float, "__r%s__" % name, computed("__r%s__" % name, lambda a, b, f=f: f(b, a)))

    def cast_float(self, input, dst_ty, *rest, **named):
        if isinstance(input, Float) and dst_ty.scalar.is_fp64():
            return self.scalar_constant(input.exact, dst_ty.scalar)
        return cast(self, input, dst_ty, *rest, **named)

    def convert_float(arg):
        return Float(arg) if isinstance(arg, float) else convert(arg)

    semantic.cast, interpreter._implicit_cvt = cast_float, convert_float


# Counts of a loop.

def add_counts(interpreter):
    """Makes the count of a loop an int32 that has methods, as it is on a GPU: the interpreter has Python's,
    which counts beside uint8 as one."""
    semantic = type(interpreter.interpreter_semantic)
    check = semantic.binary_op_type_checking_impl

    class Count(int):
        @property
        def dtype(self):
            return self.tensor().dtype

        def tensor(self):
            return interpreter.interpreter_semantic.to_tensor(int(self))

        def to(self, dtype, *rest, **named):
            return self.tensor().to(dtype, *rest, **named)

    def computed(name):
        f = getattr(int, name)

        def g(self, other):
            v = f(self, other)
            return Count(v) if type(v) is int else v

        return g

    for name in ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and", "or", "xor"):
        for name in ("__%s__" % name, "__r%s__" % name):
            setattr(Count, name, computed(name))

    def check_counts(self, lhs, rhs, *rest, **named):
        lhs, rhs = [v.tensor() if isinstance(v, Count) else v for v in (lhs, rhs)]
        return check(self, lhs, rhs, *rest, **named)

    def visit_For(self, node):
        self.generic_visit(node)
        called = node.iter.func if isinstance(node.iter, ast.Call) else None
        if "range" in (getattr(called, "id", ""), getattr(called, "attr", "")):
            node.iter = asked("counted", [node.iter])
        return node

    semantic.counted = staticmethod(lambda counts: map(Count, counts))
    semantic.binary_op_type_checking_impl = check_counts
    interpreter.ASTTransformer.visit_For = visit_For


def asked(name, args):
    """Returns a call of a function that the interpreter's rewritten kernels find."""
    return ast.Call(func=ast.Attribute(value=ast.Name(id="interpreter_semantic", ctx=ast.Load()), attr=name, ctx=ast.Load()), args=args, keywords=[])


# Python's words, as a compiler reads them.

def add_words(interpreter, tl):
    """Gives the `value` of constants, which the interpreter has as Python's numbers and as types, and
    has `and`, `or` and `not` of tensors be those of their elements: the interpreter takes the second
    of two blocks. Nothing stops at the first of two tensors."""
    semantic = type(interpreter.interpreter_semantic)

    def connected(name, *operands):
        """Connects operands, each given as a function, of which a constant may be the last."""
        v = operands[0]()
        for operand in operands[1:]:
            if isinstance(v, tl.tensor):
                v = getattr(v, name)(operand())
            elif bool(v) is (name == "logical_or"):
                return v
            else:
                v = operand()
        return v

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr != "value" or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(asked("value_of", [node.value]), node)

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):  # which binds a name here
            return node
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return ast.copy_location(asked("connected", [ast.Constant(name), *(ast.Lambda(args=none, body=v) for v in node.values)]), node)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return ast.copy_location(asked("negated", [node.operand]), node) if isinstance(node.op, ast.Not) else node

    semantic.value_of = staticmethod(lambda v: getattr(v, "value", v))
    semantic.connected = staticmethod(connected)
    semantic.negated = staticmethod(lambda v: v.__not__() if isinstance(v, tl.tensor) else not v)
    for f in (visit_Attribute, visit_BoolOp, visit_UnaryOp):
        setattr(interpreter.ASTTransformer, f.__name__, f)
    if not hasattr(interpreter.ASTTransformer, "visit_Compare"):  # 3.5.1, which leaves what is assigned as it is
        assign = interpreter.ASTTransformer.visit_Assign

        def visit_Assign(self, node):
            node.value = self.visit(node.value)
            return assign(self, node)

        interpreter.ASTTransformer.visit_Assign = visit_Assign
