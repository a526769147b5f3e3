"""What Triton's interpreter lacks or computes wrongly: bfloat16, whose bits it takes for
integers, and libdevice. Tried with Triton 3.5.1 and 3.9.0.
"""

import ctypes
import importlib
import math

import numpy as np

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


# libdevice, of which the interpreter has nothing.

def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


FUNCTIONS = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "erf": erf, "erfc": lambda x: 1 - erf(x),
    "exp": np.exp, "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fast_cosf": np.cos, "fast_dividef": np.divide, "fast_exp10f": lambda x: np.power(10.0, x),
    "fast_expf": np.exp, "fast_log10f": np.log10, "fast_log2f": np.log2, "fast_logf": np.log, "fast_powf": np.power, "fast_sinf": np.sin, "fast_tanf": np.tan,
    "fast_tanhf": np.tanh, "fdim": lambda x, y: np.maximum(x - y, 0), "floor": np.floor, "fma": lambda x, y, z: x * y + z, "fmod": np.fmod, "hypot": np.hypot,
    "div_rn": np.divide, "div_rz": np.divide, "div_rd": np.divide, "div_ru": np.divide, "add_rn": np.add, "mul_rn": np.multiply, "sub_rn": np.subtract, "sqrt_rn": np.sqrt,
    "isinf": np.isinf, "isnan": np.isnan, "finitef": np.isfinite, "isfinited": np.isfinite, "ldexp": lambda x, n: np.ldexp(x, n), "lgamma": lambda x: np.vectorize(math.lgamma, otypes=[np.float64])(x),
    "llrint": lambda x: np.rint(x).astype(np.int64), "llround": lambda x: np.round(x).astype(np.int64), "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "nearbyint": np.rint, "nextafter": np.nextafter, "pow": np.power, "rcp_rn": np.reciprocal, "rint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rsqrt": lambda x: 1 / np.sqrt(x), "rsqrt_rn": lambda x: 1 / np.sqrt(x), "saturatef": lambda x: np.clip(x, 0, 1), "signbit": np.signbit, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": lambda x: np.vectorize(math.gamma, otypes=[np.float64])(x), "trunc": np.trunc,
}


def compute_libdevice(interpreter, tl):
    """Gives the functions of libdevice that numpy has to kernels that import it by any of its names."""
    Handle = interpreter.TensorHandle

    def function(f):
        def g(*args, **_):
            with np.errstate(all="ignore"):
                arrays = [np.asarray(a.handle.data) if isinstance(a, tl.tensor) else a for a in args]
                halves = [isinstance(a, tl.tensor) and a.dtype.is_bf16() for a in args]
                arrays = [widened(a) if half else a for a, half in zip(arrays, halves)]
                first = next(a for a in args if isinstance(a, tl.tensor))
                v = np.asarray(f(*arrays))
            if v.dtype.kind == "b":
                v, scalar = v.astype(np.int32), tl.int32
            elif v.dtype.kind in "iu":
                scalar = tl.int64 if v.dtype.itemsize == 8 else tl.int32
            else:
                scalar = first.dtype
                v = narrowed(v) if halves[0] else v.astype(np.asarray(first.handle.data).dtype)
            shape = [int(n) for n in v.shape]
            return tl.tensor(Handle(v, scalar), tl.block_type(scalar, shape) if first.type.is_block() else scalar)

        return g

    for name in ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice", "triton.language.extra.hip.libdevice"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for of, f in FUNCTIONS.items():
            if hasattr(module, of):
                setattr(module, of, function(f))
