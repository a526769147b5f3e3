"""What Triton's interpreter lacks or computes wrongly: bfloat16, whose bits it takes for
integers, roundings to float8, and libdevice. Tried with Triton 3.5.1 and 3.9.0.
"""

import ctypes
import importlib
import math

import numpy as np
import torch

# bfloat16: the interpreter computes with its bits as if they were integers.

def widened(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


BINARY = ("create_fadd", "create_fsub", "create_fmul", "create_fdiv", "create_frem", "create_minimumf", "create_maximumf", "create_minnumf", "create_maxnumf", "create_precise_divf")
COMPARED = tuple("create_fcmp" + c for c in ("OLT", "OGT", "OLE", "OGE", "OEQ", "ONE", "ULT", "UGT", "ULE", "UGE", "UEQ", "UNE"))
UNARY = tuple("create_" + f for f in ("exp", "exp2", "log", "log2", "sqrt", "precise_sqrt", "rsqrt", "sin", "cos", "erf", "floor", "ceil", "fabs", "fneg"))


def repair_bfloat16(interpreter, tl):
    Builder, Handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    cast, to_fp = Builder.cast_impl, Builder.create_fp_to_fp

    def cast_impl(self, src, dst_type):
        if is_half(src):
            src = Handle(widened(src.data), tl.float32)
        if not dst_type.scalar.is_bf16():
            return src if dst_type.scalar is tl.float32 and src.data.dtype == np.float32 else cast(self, src, dst_type)
        return Handle(narrowed(src.data.astype(np.float32)), tl.bfloat16)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        nearest = rounding_mode is None or rounding_mode == interpreter._ir.ROUNDING_MODE.RTNE
        if nearest and (is_half(src) or dst_type.scalar.is_bf16()) and "fp8" not in "%s%s" % (src.dtype, dst_type):
            return cast_impl(self, src, dst_type)
        return to_fp(self, src, dst_type, rounding_mode)

    Builder.cast_impl, Builder.create_fp_to_fp = cast_impl, create_fp_to_fp

    def is_half(h):
        return isinstance(h, Handle) and h.get_element_ty().is_bf16() and np.asarray(h.data).dtype == np.uint16

    def wrapped(f, compares):
        def g(self, *handles):
            if not any(map(is_half, handles)):
                return f(self, *handles)
            v = f(self, *[Handle(widened(h.data), tl.float32) if is_half(h) else h for h in handles])
            return v if compares else Handle(narrowed(v.data), tl.bfloat16)

        return g

    for names, compares in ((BINARY, False), (COMPARED, True), (UNARY, False)):
        for name in names:
            f = getattr(Builder, name, None)
            if f is not None:
                setattr(Builder, name, wrapped(f, compares))
    dot, fma = Builder.create_dot, getattr(Builder, "create_fma", None)

    def create_dot(self, a, b, d, *rest):
        a, b = [Handle(widened(h.data), tl.float32) if is_half(h) else h for h in (a, b)]
        return dot(self, a, b, d, *rest)

    Builder.create_dot = create_dot
    rmw = Builder.create_atomic_rmw

    def create_atomic_rmw(self, op, ptr, val, mask, *rest):
        name = str(op).split(".")[-1]
        if not ptr.get_element_ty().is_bf16() or name not in UPDATES:
            return rmw(self, op, ptr, val, mask, *rest)
        return Handle(updated(UPDATES[name], ptr.data, val.data, mask.data), tl.bfloat16)

    Builder.create_atomic_rmw = create_atomic_rmw
    if not hasattr(Builder, "get_bf16"):
        Builder.get_bf16 = lambda self, value: Handle(narrowed(np.array([value], np.float32)), tl.bfloat16)
    if fma is not None:
        Builder.create_fma = wrapped(fma, False)
    repair_sums(interpreter)


def repair_sums(interpreter):
    """Has sums of bfloat16 rounded at each addition, by halves, as programs on a GPU have them,
    and running sums and products once: they were sums of bits."""
    def summed(f):
        def g(self, input):
            if not input.dtype.scalar.is_bf16():
                return f(self, input)
            v, axes = np.asarray(input.handle.data), np.ndim(input.handle.data)
            v = v.reshape(-1) if self.axis is None else np.moveaxis(v, self.axis, 0)
            while len(v) > 1:
                v = narrowed(widened(v[: len(v) // 2]) + widened(v[len(v) // 2 :]))
            if not self.keep_dims:
                return self.to_tensor(v[0], input.dtype)
            return self.to_tensor(v.reshape((1,) * axes) if self.axis is None else np.moveaxis(v, 0, self.axis), input.dtype)

        return g

    def ran(f):
        def g(self, input):
            if not input.dtype.scalar.is_bf16():
                return f(self, input)
            return [self.to_tensor(narrowed(f_of(widened(np.asarray(input.handle.data)), axis=self.axis)), input.dtype)]

        f_of = getattr(np, f.__name__)
        return g

    Reduce, Scan = interpreter.ReduceOps, interpreter.ScanOps
    Reduce.sum, Scan.cumsum, Scan.cumprod = summed(Reduce.sum), ran(Scan.cumsum), ran(Scan.cumprod)


UPDATES = {"FADD": lambda a, b: a + b, "XCHG": lambda a, b: b, "MAX": max, "MIN": min}


def updated(f, addresses, values, mask):
    """Updates cells of bfloat16, one after the other, and returns what was there."""
    shape = np.shape(addresses)
    values, mask = (np.broadcast_to(a, shape).reshape(-1) for a in (values, mask))
    old = np.zeros(values.size, np.uint16)
    for k, address in enumerate(np.asarray(addresses).reshape(-1)):
        if mask[k]:
            cell = ctypes.c_uint16.from_address(int(address))
            old[k] = cell.value
            cell.value = int(narrowed(np.array([f(widened(old[k:k + 1])[0], widened(values[k:k + 1])[0])], np.float32))[0])
    return old.reshape(shape)


# float8: the interpreter loses the carry of a rounding, so that 31.9 is 16, and rounds ties away from zero.

FLOAT8 = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz"}
FLOATS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}


def repair_float8(interpreter):
    """Rounds to float8 to nearest even, and what is beyond its range to its largest number, as the
    instructions of a GPU do (cvt.rn.satfinite)."""
    convert = interpreter._convert_float
    known = {**FLOATS, **{name: getattr(torch, of) for name, of in FLOAT8.items() if hasattr(torch, of)}}

    def convert_float(data, of, to, rounding):
        nearest = rounding is None or rounding == interpreter._ir.ROUNDING_MODE.RTNE
        if not nearest or of.name not in known or to.name not in known or not (of.name in FLOAT8 or to.name in FLOAT8):
            return convert(data, of, to, rounding)
        bits = "int%d" % of.primitive_bitwidth
        v = torch.from_numpy(np.array(data).view(bits)).view(known[of.name]).to(torch.float32 if of.name != "fp64" else torch.float64)
        if to.name in FLOAT8:
            v = v.clamp(-torch.finfo(known[to.name]).max, torch.finfo(known[to.name]).max)
        v = v.to(known[to.name]).contiguous()
        bits = "int%d" % to.primitive_bitwidth
        return v.view(getattr(torch, bits)).numpy().view("u" + bits)

    interpreter._convert_float = convert_float


# libdevice, of which the interpreter has nothing.

def special(f):
    """Computes a function that numpy lacks by PyTorch's, in float64."""
    return lambda *args: f(*[torch.from_numpy(np.array(a, np.float64)) for a in args]).numpy()


def rounded(dtype, f):
    return lambda x: np.nan_to_num(f(x), nan=0).clip(np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def seen_as(dtype):
    return lambda x: np.ascontiguousarray(x).view(dtype).reshape(np.shape(x))


def bits(f):
    """Computes a number from the bits of each integer: their value, and how many there are."""
    return lambda x: np.vectorize(lambda n: f(int(n) % (1 << 8 * x.dtype.itemsize), 8 * x.dtype.itemsize), otypes=[np.int64])(x).astype(np.int32)


def high(x, y):
    """Returns the upper half of a product of integers."""
    return np.vectorize(lambda a, b: int(a) * int(b) >> 8 * x.dtype.itemsize, otypes=[x.dtype])(x, y)


def root(*args):
    return np.sqrt(sum(np.square(np.asarray(a, np.float64)) for a in args))


ROUNDINGS = ("rn", "rz", "rd", "ru")  # numpy has the first alone
TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
SEEN = {"int_as_float": np.float32, "uint_as_float": np.float32, "float_as_int": np.int32, "float_as_uint": np.uint32, "longlong_as_double": np.float64, "double_as_longlong": np.int64}
WHOLE = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
FUNCTIONS = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh,
    "exp": np.exp, "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fast_cosf": np.cos, "fast_dividef": np.divide, "fast_exp10f": lambda x: np.power(10.0, x),
    "fast_expf": np.exp, "fast_log10f": np.log10, "fast_log2f": np.log2, "fast_logf": np.log, "fast_powf": np.power, "fast_sinf": np.sin, "fast_tanf": np.tan,
    "fast_tanhf": np.tanh, "fdim": lambda x, y: np.maximum(x - y, 0), "floor": np.floor, "fma": lambda x, y, z: x * y + z, "fmod": np.fmod, "hypot": np.hypot,
    "isinf": np.isinf, "isnan": np.isnan, "finitef": np.isfinite, "isfinited": np.isfinite, "ldexp": np.ldexp, "scalbn": np.ldexp,
    "llrint": lambda x: np.rint(x).astype(np.int64), "llround": lambda x: FUNCTIONS["round"](x).astype(np.int64), "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "nearbyint": np.rint, "nextafter": np.nextafter, "pow": np.power, "rint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rsqrt": lambda x: 1 / np.sqrt(x), "saturatef": lambda x: np.clip(x, 0, 1), "signbit": np.signbit, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": lambda x: np.vectorize(gamma, otypes=[np.float64])(x), "trunc": np.trunc,
    "rhypot": lambda x, y: 1 / np.hypot(x, y), "rcbrt": lambda x: 1 / np.cbrt(x), "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)), "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "norm3d": root, "norm4d": root, "rnorm3d": lambda *args: 1 / root(*args), "rnorm4d": lambda *args: 1 / root(*args), "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "ilogb": lambda x: np.frexp(x)[1] - 1, "remainder": lambda x, y: x - y * np.rint(x / y), "erf": special(torch.erf), "erfc": special(torch.erfc), "lgamma": special(torch.lgamma),
    "erfinv": special(torch.erfinv), "erfcinv": special(lambda x: torch.erfinv(1 - x)), "erfcx": special(torch.special.erfcx), "normcdf": special(torch.special.ndtr), "normcdfinv": special(torch.special.ndtri),
    "cyl_bessel_i0": special(torch.special.i0), "cyl_bessel_i1": special(torch.special.i1), "j0": special(torch.special.bessel_j0), "j1": special(torch.special.bessel_j1),
    "y0": special(torch.special.bessel_y0), "y1": special(torch.special.bessel_y1), "popc": bits(lambda n, _: bin(n).count("1")), "clz": bits(lambda n, width: width - n.bit_length()),
    "ffs": bits(lambda n, _: (n & -n).bit_length()), "brev": lambda x: bits(lambda n, width: int(bin(n)[2:].zfill(width)[::-1], 2))(x).astype(x.dtype), "mulhi": high, "mul24": np.multiply,
    "hadd": lambda x, y: (x & y) + ((x ^ y) >> 1), "rhadd": lambda x, y: (x | y) - ((x ^ y) >> 1), "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y).astype(np.int32) + z,
    **{name: seen_as(dtype) for name, dtype in SEEN.items()},
    **{"%s_%s" % (name, r): f for r in ROUNDINGS for name, f in {"div": np.divide, "add": np.add, "mul": np.multiply, "sub": np.subtract, "sqrt": np.sqrt, "rcp": np.reciprocal, "rsqrt": lambda x: 1 / np.sqrt(x), "fma": lambda x, y, z: x * y + z}.items()},
    **{"%s2%s_%s" % (of, to, r): rounded(dtype, f) for r, f in TO_WHOLE.items() for of in ("float", "double") for to, dtype in WHOLE.items()},
    **{"%s2%s_%s" % (of, to, r): (lambda x, dtype=dtype: x.astype(dtype)) for r in ROUNDINGS for of in WHOLE for to, dtype in (("float", np.float32), ("double", np.float64))},
    **{"double2float_" + r: (lambda x: x.astype(np.float32)) for r in ROUNDINGS},
}


OTHERS = {f for name, f in FUNCTIONS.items() if name in SEEN or name.startswith("double2float")}  # which give another dtype than they get


def gamma(x):
    try:
        return math.gamma(x)
    except (ValueError, OverflowError):
        return math.nan if x < 0 or math.isnan(x) else math.inf


def compute_libdevice(interpreter, tl):
    """Gives the functions of libdevice that numpy has to kernels that import it by any of its names."""
    Handle = interpreter.TensorHandle

    def function(f):
        def g(*args, **_):
            given = [a for a in args if isinstance(a, tl.tensor)]
            first = next((a for a in given if a.type.is_block()), given[0])
            half = any(a.dtype.is_bf16() for a in given)
            with np.errstate(all="ignore"):
                v = np.asarray(f(*[array(a, given) for a in args]))
            if v.dtype.kind == "b":
                v, scalar = v.astype(np.int32), tl.int32
            elif v.dtype.kind == "f" and first.dtype.is_floating() and f not in OTHERS:
                scalar = first.dtype
                v = narrowed(v) if half and scalar.is_bf16() else v.astype(np.asarray(first.handle.data).dtype)
            else:
                scalar = tl.float64 if v.dtype == np.float64 else tl.float32 if v.dtype.kind == "f" else getattr(tl, v.dtype.name)
            shape = [int(n) for n in v.shape]
            return tl.tensor(Handle(v, scalar), tl.block_type(scalar, shape) if first.type.is_block() else scalar)

        return g

    def array(a, given):
        if not isinstance(a, tl.tensor):
            return a
        if hasattr(a, "exact") and len(given) > 1:
            return a.exact
        v = np.asarray(a.handle.data)
        return widened(v) if a.dtype.is_bf16() else v

    for name in ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for of, f in FUNCTIONS.items():
            if hasattr(module, of):
                setattr(module, of, function(f))
