"""Inline assembly in Triton's interpreter: blocks of PTX that move, convert, compute, compare and select,
with registers and predicates of their own. Tried with Triton 3.5.1 and 3.9.0."""

import re

import numpy as np
import torch

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STATEMENT = re.compile(r"(?:@(!?)([%\w]+)\s+)?([a-z]\w*)((?:\.\w+)*)\s+(.+)", re.S)
OPERAND = re.compile(r"\{[^}]*\}|[^,\s]+")
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": "bf16", "f16x2": "f16x2", "bf16x2": "bf16x2", "pred": np.bool_, "e4m3x2": "e4m3x2", "e5m2x2": "e5m2x2",
         **{"%s%d" % (k, 8 * n): np.dtype("%s%d" % ("i" if k == "s" else "u", n)).type for k in "sub" for n in (1, 2, 4, 8)}}
PAIRS = {"f16x2": torch.float16, "bf16x2": torch.bfloat16, "e4m3x2": torch.float8_e4m3fn if hasattr(torch, "float8_e4m3fn") else None, "e5m2x2": getattr(torch, "float8_e5m2", None)}

UNARY = {
    "abs": np.abs, "neg": np.negative, "not": np.invert, "mov": lambda x: x, "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "rcp": lambda x: 1 / x, "popc": lambda x: counted(x, lambda n, _: bin(n).count("1")), "clz": lambda x: counted(x, lambda n, width: width - n.bit_length()),
    "brev": lambda x: counted(x, lambda n, width: int(bin(n)[2:].zfill(width)[::-1], 2)),
}
BINARY = {
    "add": np.add, "sub": np.subtract, "div": lambda x, y: x / y if x.dtype.kind == "f" else np.trunc(x / y).astype(x.dtype), "rem": np.fmod, "min": np.fmin, "max": np.fmax, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "copysign": lambda x, y: np.copysign(y, x), "shl": lambda x, n: np.where(n < 8 * x.itemsize, x << np.minimum(n, 8 * x.itemsize - 1).astype(x.dtype), 0).astype(x.dtype),
    "shr": lambda x, n: np.where((n < 8 * x.itemsize) | (x.dtype.kind == "i"), x >> np.minimum(n, 8 * x.itemsize - 1).astype(x.dtype), 0).astype(x.dtype),
}
COMPARED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


def counted(x, f):
    width = 8 * x.itemsize
    return np.vectorize(lambda n: f(int(n) % (1 << width), width), otypes=[x.dtype])(x)


class Unknown(Exception):
    """An instruction that is not computed here."""


class Block:
    """The registers of one instance of an assembly, each an array with an element for each instance."""

    def __init__(self, count, registers):
        self.count, self.registers = count, registers

    def run(self, text):
        text = COMMENT.sub(" ", text).strip()
        if text.startswith("{") and text.endswith("}"):
            text = text[1:-1]
        for statement in text.split(";"):
            statement = statement.strip()
            if not statement or statement.startswith(".reg"):
                continue
            found = STATEMENT.fullmatch(statement)
            if not found:
                raise Unknown(statement)
            unless, predicate, op, suffixes, operands = found.groups()
            operands = OPERAND.findall(operands)
            with np.errstate(all="ignore"):
                v = self.computed(op, suffixes[1:].split(".") if suffixes else [], operands[1:])
            self.write(operands[0], v, None if not predicate else self.registers[predicate].astype(bool) ^ bool(unless))

    def write(self, name, v, where):
        if name.startswith("{"):  # a wide register, part by part
            parts = OPERAND.findall(name[1:-1])
            v = np.ascontiguousarray(v).view(np.dtype("u%d" % (v.itemsize // len(parts)))).reshape(self.count, len(parts))
            for k, part in enumerate(parts):
                self.write(part, v[:, k].copy(), where)
            return
        v = np.broadcast_to(v, self.count).copy()
        old = self.registers.get(name)
        if where is not None:
            old = np.zeros_like(v) if old is None else seen(old, v.dtype.type)
            v = np.where(where, v, old)
        self.registers[name] = v

    def read(self, text, kind):
        if text.startswith("{"):
            parts = [self.read(t, None) for t in OPERAND.findall(text[1:-1])]
            v = np.ascontiguousarray(np.stack([seen(p, np.dtype("u%d" % p.itemsize).type) for p in parts], 1))
            return seen(v.view(np.dtype("u%d" % (v.itemsize * len(parts)))).reshape(-1), kind)
        if text in self.registers:
            return seen(self.registers[text], kind)
        if re.fullmatch("0[fF][0-9a-fA-F]{8}", text):
            return seen(np.frombuffer(bytes.fromhex(text[2:])[::-1], np.float32), kind)
        if re.fullmatch("0[dD][0-9a-fA-F]{16}", text):
            return seen(np.frombuffer(bytes.fromhex(text[2:])[::-1], np.float64), kind)
        try:
            n = float(text) if "." in text else int(text.rstrip("U"), 0)
        except ValueError:
            raise Unknown(text) from None
        if isinstance(kind, str) or np.dtype(kind or np.int32).kind == "f":
            return np.array([n], np.float32 if isinstance(kind, str) else kind or np.float32)
        return np.array([n % (1 << 8 * np.dtype(kind or np.uint32).itemsize)], np.uint64).astype(kind or np.uint32)

    def computed(self, op, suffixes, operands):
        kinds = [TYPES[s] for s in suffixes if s in TYPES]
        kind = kinds[0] if kinds else None
        if op == "cvt":
            return converted(kinds, suffixes, [self.read(t, kinds[-1]) for t in operands])
        if op == "lop3":
            a, b, c, table = [self.read(t, np.uint32) for t in operands]
            return sum((np.where(table >> k & 1, ~np.uint32(0), np.uint32(0)) & (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c) for k in range(8)), np.uint32(0)).astype(np.uint32)
        if op == "prmt":
            a, b, chosen = [self.read(t, np.uint32).astype(np.uint64) for t in operands]
            both, v = a | b << np.uint64(32), np.uint64(0)
            for k in range(4):
                which = chosen >> np.uint64(4 * k) & np.uint64(15)
                byte = both >> (which & np.uint64(7)) * np.uint64(8) & np.uint64(255)
                byte = np.where(which & np.uint64(8), np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0)), byte)
                v = v | byte << np.uint64(8 * k)
            return v.astype(np.uint32)
        if op == "setp":
            x, y = [self.read(t, kind) for t in operands]
            if suffixes[0] not in COMPARED:
                raise Unknown("setp." + suffixes[0])
            return COMPARED[suffixes[0]](x, y)
        if op == "selp":
            return np.where(self.read(operands[2], np.bool_), self.read(operands[0], kind), self.read(operands[1], kind))
        if kind in PAIRS:
            pairs = [np.ascontiguousarray(np.broadcast_to(self.read(t, np.uint32), self.count)) for t in operands]
            v = torch.from_numpy(calculated(op, suffixes, [halves(p, kind) for p in pairs]))
            return v.to(PAIRS[kind]).contiguous().view(torch.int16).numpy().reshape(-1, 2).view(np.uint32).reshape(-1)
        shift = op in ("shl", "shr")
        v = calculated(op, suffixes, [self.read(t, np.uint32 if shift and k else kind) for k, t in enumerate(operands)])
        return rounded(v, torch.bfloat16) if kind == "bf16" else v


def calculated(op, suffixes, args):
    if op in ("mul", "mad") and "wide" in suffixes:
        wide = np.dtype("%s%d" % (args[0].dtype.kind, 2 * args[0].itemsize))
        v = args[0].astype(wide) * args[1].astype(wide)
    elif op in ("mul", "mad") and "hi" in suffixes:
        v = np.vectorize(lambda a, b: int(a) * int(b) >> 8 * args[0].itemsize, otypes=[args[0].dtype])(args[0], args[1])
    elif op in ("mul", "mad", "fma"):
        v = args[0] * args[1]
    else:
        f = {1: UNARY, 2: BINARY}.get(len(args), {}).get(op)
        if f is None:
            raise Unknown(op)
        v = f(*args)
    if op in ("mad", "fma"):
        v = v + args[2]
    if "relu" in suffixes:
        v = np.maximum(v, 0)
    return np.clip(v, 0, 1) if "sat" in suffixes and v.dtype.kind == "f" else v


def seen(v, kind):
    """Returns the bits of a register as numbers of a type: those of narrower ones are extended."""
    if kind is None:
        return v
    if kind == "bf16":
        return (seen(v, np.uint16).astype(np.uint32) << 16).view(np.float32)
    if isinstance(kind, str):  # a pair
        return seen(v, np.uint32 if kind.endswith("16x2") else np.uint16)
    to = np.dtype(kind)
    if v.dtype == to:
        return v
    if v.itemsize == to.itemsize:
        return np.ascontiguousarray(v).view(to)
    if to.kind == "b" or v.dtype.kind == "b":
        return v.astype(to)
    bits = np.ascontiguousarray(v).view(np.dtype("%s%d" % ("i" if v.dtype.kind == "i" else "u", v.itemsize)))
    return bits.astype(np.dtype("u%d" % to.itemsize)).view(to)


def halves(v, kind):
    """Returns both numbers of each pair."""
    each = 16 if kind.endswith("16x2") else 8
    v = torch.from_numpy(np.ascontiguousarray(v).view(np.int16 if each == 16 else np.int8).reshape(len(v), -1)[:, :2].copy())
    return v.view(PAIRS[kind]).float().numpy()


def rounded(v, dtype):
    v = torch.from_numpy(np.ascontiguousarray(v, np.float32))
    if dtype.itemsize == 1:
        v = v.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
    return v.to(dtype).view(torch.int8 if dtype.itemsize == 1 else torch.int16).numpy().view(np.uint8 if dtype.itemsize == 1 else np.uint16)


def converted(kinds, suffixes, args):
    if len(kinds) != 2:
        raise Unknown("cvt." + ".".join(suffixes))
    to, of = kinds
    if isinstance(of, str) and of in PAIRS:
        args = [halves(np.ascontiguousarray(a), of) for a in args]
    if isinstance(to, str) and to in PAIRS:
        both = args[0] if len(args) == 1 else np.stack(np.broadcast_arrays(args[1], args[0]), 1)  # the second is the lower
        v = np.ascontiguousarray(rounded(both, PAIRS[to]))
        return v.reshape(len(v), 2).view(np.dtype("u%d" % (2 * v.itemsize))).reshape(-1)
    v = args[0]
    if to == "bf16":
        return rounded(v, torch.bfloat16)
    if np.dtype(to).kind in "iu" and v.dtype.kind == "f":
        v = next((f for s, f in {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}.items() if s in suffixes), np.trunc)(v.astype(np.float64))
        info = np.iinfo(to)
        return np.where(v >= info.max, info.max, np.nan_to_num(v).clip(info.min, info.max - (info.bits == 64) * 1024).astype(to)).astype(to)
    if "sat" in suffixes:
        v = np.clip(v, 0, 1) if np.dtype(to).kind == "f" else np.clip(v, np.iinfo(to).min, np.iinfo(to).max)
    v = v.astype(to)
    return next((f for s, f in {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}.items() if s in suffixes), lambda x: x)(v)


# In the interpreter.

def add_assembly(interpreter):
    """Computes blocks of assembly whose instructions are known."""
    Builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def create_inline_asm(self, text, constraints, values, types, pure, pack):
        arrays = np.broadcast_arrays(*[np.asarray(v.data) for v in values]) if values else [np.zeros(types[0].shape if types[0].is_block() else (1,), np.int32)]
        shape, count = arrays[0].shape, max(arrays[0].size // pack, 1)
        given = [part for a in arrays for part in packed(a, count, pack)] if values else []
        results = ["$%d" % k for k in range(constraints.count("="))]
        block = Block(count, {"$%d" % (len(results) + k): v for k, v in enumerate(given)})
        try:
            block.run(text)
            made, k = [], 0
            for t in types:
                dtype = np.dtype(interpreter._get_np_dtype(t.scalar))
                n = max(pack * dtype.itemsize // 4, 1) if dtype.itemsize < 4 else pack
                made.append(Handle(unpacked([block.registers[r] for r in results[k:k + n]], dtype, pack).reshape(shape), t.scalar))
                k += n
        except (Unknown, KeyError) as e:
            raise NotImplementedError("inline assembly %r in the interpreter (%s)" % (text, e)) from None
        return Made(made)

    Builder.create_inline_asm = create_inline_asm


def packed(a, count, pack):
    """Returns the registers of an argument: narrow elements share those of 32 bits."""
    a = np.ascontiguousarray(a).reshape(count, -1)
    if pack == 1 or a.itemsize >= 4:
        return [a[:, k].copy() for k in range(a.shape[1])]
    width = min(4, a.itemsize * pack)
    a = a.view(np.dtype("u%d" % width))
    return [a[:, k].copy() for k in range(a.shape[1])]


def unpacked(registers, dtype, pack):
    if pack == 1 or dtype.itemsize >= 4:
        return np.stack([seen(r, dtype.type) if dtype.itemsize >= r.itemsize or dtype.kind == "b" else narrow(r, dtype) for r in registers], 1)
    width = np.dtype("u%d" % min(4, dtype.itemsize * pack))
    return np.stack([seen(r, width.type) for r in registers], 1).view(dtype)


def narrow(v, dtype):
    """Returns the lowest bits of a register."""
    return np.ascontiguousarray(v).view(np.dtype("u%d" % v.itemsize)).astype(np.dtype("u%d" % dtype.itemsize)).view(dtype)


class Made(list):
    """The results of a call, as an operation of the compiler's holds them."""

    def get_result(self, i):
        return self[i]
