"""What files in Triton name and its interpreter lacks: block pointers, where a version has given
them up, and single instructions of inline assembly. Tried with Triton 3.5.1 and 3.9.0."""

import re

import numpy as np


def complete(interpreter, tl):
    """Adds what is missing to the language."""
    add_block_pointers(interpreter, tl)
    add_assembly(interpreter, tl)


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


# Inline assembly.

UNARY = {
    "tanh": np.tanh, "ex2": np.exp2, "lg2": np.log2, "rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "abs": np.abs, "neg": np.negative, "mov": lambda x: x, "cvt": lambda x: x, "not": np.invert,
    "popc": np.vectorize(lambda n: bin(int(n) & 0xFFFFFFFF).count("1"), otypes=[np.int32]), "clz": np.vectorize(lambda n: 32 - (int(n) & 0xFFFFFFFF).bit_length(), otypes=[np.int32]),
}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": lambda x, y: x / y if x.dtype.kind == "f" else x // y, "min": np.fmin, "max": np.fmax,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift, "copysign": lambda x, y: np.copysign(y, x),
}
TERNARY = {"fma": lambda x, y, z: x * y + z, "mad": lambda x, y, z: x * y + z}
INSTRUCTION = re.compile(r"^\s*(\w+)((?:\.\w+)*)\s+\$0\s*,\s*((?:\$\d+|-?[\d.]+|0f[0-9A-Fa-f]{8})(?:\s*,\s*(?:\$\d+|-?[\d.]+|0f[0-9A-Fa-f]{8}))*)\s*;?\s*$")


def add_assembly(interpreter, tl):
    """Computes one instruction of PTX with one result."""
    Builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def create_inline_asm(self, text, constraints, values, types, pure, pack):
        found = INSTRUCTION.match(text.strip().strip("{}"))
        operands = [operand(o.strip(), values) for o in found.group(3).split(",")] if found else []
        f = {1: UNARY, 2: BINARY, 3: TERNARY}.get(len(operands), {}).get(found.group(1)) if found else None
        if f is None or pack != 1 or len(types) != 1:
            raise NotImplementedError("inline assembly %r in the interpreter" % text)
        with np.errstate(all="ignore"):
            v = np.asarray(f(*operands))
        scalar = types[0].scalar
        return Made([Handle(v.astype(interpreter._get_np_dtype(scalar)), scalar)])

    Builder.create_inline_asm = create_inline_asm


class Made(list):
    """The results of a call, as an operation of the compiler's holds them."""

    def get_result(self, i):
        return self[i]


def operand(text, values):
    if text.startswith("$"):
        return np.asarray(values[int(text[1:]) - 1].data)
    if text.startswith("0f"):
        return np.frombuffer(bytes.fromhex(text[2:])[::-1], np.float32)[0]
    return np.float32(text) if "." in text else np.int32(text)
