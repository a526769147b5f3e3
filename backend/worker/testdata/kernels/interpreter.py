"""Triton's interpreter as plumb_triton.py changes it: bounds, races, order, bfloat16, libdevice."""

import os

os.environ["TRITON_INTERPRET"] = "1"

import plumb_triton
import torch


class Watch:
    """Keeps what is noted."""

    file = os.path.realpath(__file__)

    def __init__(self):
        self.noted = []

    def note(self, kind, text):
        self.noted.append((kind, text))


watch = Watch()
layer = plumb_triton.install(watch)

import triton
import triton.language as tl
from triton.language.extra import libdevice


def run(kernel, grid, *args, order="forward", seed=0, **constants):
    """Launches a kernel; returns what was noted."""
    layer.prepare(order, seed)
    watch.noted = []
    kernel[grid](*args, **constants)
    return watch.noted


def line(function, part):
    """Returns the place of a line of a kernel."""
    with open(__file__) as f:
        source = f.read().splitlines()
    start = next(i for i, text in enumerate(source) if text.startswith("def %s(" % function))
    return "%s:%d" % (os.path.basename(__file__), next(i for i in range(start, len(source)) if part in source[i]) + 1)


# Bounds.

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr, MASK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASK:
        v = tl.load(x + at, mask=at < n)
    else:
        v = tl.load(x + at)
    tl.store(y + at, 2 * v, mask=at < n)


x = torch.randn(37)
for order in ("forward", "reversed", "random"):
    y = torch.empty(37)
    assert run(double, (3,), x, y, 37, order=order, BLOCK=16, MASK=True) == []
    assert torch.equal(y, 2 * x)
noted = run(double, (3,), x, y, 37, BLOCK=16, MASK=False)
assert noted == [("memory", "%s: program 2 reads 11 elements outside of x: element 37 of 37" % line("double", "tl.load(x + at)"))], noted


@triton.jit
def beyond(y, n):
    tl.store(y + n, 1.0)


noted = run(beyond, (1,), y, 37)
assert noted == [("memory", "%s: program 0 writes 1 element outside of y: element 37 of 37" % line("beyond", "tl.store"))], noted


# What a call that is none has launched first is not kept for the compiler.

known = len(layer.compiled)
run(double, (1,), x, y, 37, BLOCK=64, MASK=True)
run(double, (1,), x, y, 37, BLOCK=1, MASK=True)
assert len(layer.compiled) == known + 2
layer.forget()
assert [v["constants"]["BLOCK"]["value"] for v in list(layer.compiled.values())[known:]] == ["64"]
layer.prepare("forward", 0)
layer.forget()
assert len(layer.compiled) == known + 1


# Masked lanes that have no other value are none.

@triton.jit
def all_lanes(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n))


y = torch.zeros(8)
run(all_lanes, (1,), torch.ones(8), y, 5, BLOCK=8)
assert not (y[5:].abs() < 1e29).any() and (y[:5] == 1).all(), y


# Races.

@triton.jit
def same_cell(y):
    tl.store(y, tl.program_id(0) + 1.0)


@triton.jit
def same_value(y):
    tl.store(y, 1.0)


@triton.jit
def added(y):
    tl.atomic_add(y, 1.0)


@triton.jit
def neighbour(y):
    at = tl.program_id(0)
    v = tl.load(y + (at + 1) % 4)
    tl.store(y + at, v + 1)


@triton.jit
def own(y):
    at = tl.program_id(0)
    tl.store(y + at, tl.load(y + at) + 1)


for order in ("forward", "reversed", "random"):
    assert [kind for kind, _ in run(same_cell, (2,), torch.zeros(1), order=order)] == ["race"]
    assert run(same_value, (4,), torch.zeros(1), order=order) == []
    total = torch.zeros(1)
    assert run(added, (4,), total, order=order) == [] and total.item() == 4
    assert {kind for kind, _ in run(neighbour, (4,), torch.zeros(4), order=order)} == {"race"}
    assert run(own, (4,), torch.zeros(4), order=order) == []


# The order of programs.

@triton.jit
def queue(count, order):
    tl.store(order + tl.atomic_add(count, 1), tl.program_id(0))


def turns(order, seed=0):
    found = torch.zeros(8, dtype=torch.int32)
    run(queue, (8,), torch.zeros(1, dtype=torch.int32), found, order=order, seed=seed)
    return found.tolist()


assert turns("forward") == list(range(8)) and turns("reversed") == list(range(8))[::-1]
assert sorted(turns("random", 1)) == list(range(8)) and turns("random", 1) == turns("random", 1) != turns("random", 2)


# bfloat16.

@triton.jit
def halves(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    tl.store(out + at, a + b)
    tl.store(out + n + at, a * b)
    tl.store(out + 2 * n + at, a - b)
    tl.store(out + 3 * n + at, tl.where(a > b, a, b))
    tl.store(out + 4 * n + at, (a.to(tl.float32) * 3.0).to(tl.bfloat16))
    tl.store(out + 5 * n + at, tl.exp(a.to(tl.float32)).to(tl.bfloat16))
    tl.store(out + 6 * n + at, -a)


a, b = torch.randn(64, dtype=torch.bfloat16), torch.randn(64, dtype=torch.bfloat16)
out = torch.empty(7, 64, dtype=torch.bfloat16)
assert run(halves, (1,), a, b, out, 64, BLOCK=64) == []
want = torch.stack([a + b, a * b, a - b, torch.maximum(a, b), (a.float() * 3).bfloat16(), a.float().exp().bfloat16(), -a])
assert torch.equal(out, want), (out - want).abs().max()


@triton.jit
def product(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


a, b, out = torch.randn(16, 16, dtype=torch.bfloat16), torch.randn(16, 16, dtype=torch.bfloat16), torch.empty(16, 16)
run(product, (1,), a, b, out, N=16)
assert torch.allclose(out, a.float() @ b.float(), rtol=1e-5, atol=1e-5)


# libdevice.

@triton.jit
def functions(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, libdevice.tanh(v))
    tl.store(out + n + at, libdevice.erf(v))
    tl.store(out + 2 * n + at, libdevice.pow(v, v))
    tl.store(out + 3 * n + at, libdevice.isnan(v).to(tl.float32))


x = torch.rand(32) + 0.5
x[3] = float("nan")
out = torch.empty(4, 32)
run(functions, (1,), x, out, 32, BLOCK=32)
want = torch.stack([x.tanh(), x.erf(), x.pow(x), x.isnan().float()])
assert torch.allclose(out, want, rtol=1e-6, equal_nan=True), (out - want).abs().max()


# What may be computed is counted: the same at each call, and whatever the machine does.

@triton.jit
def turning(y, n):
    at = tl.program_id(0)
    v = tl.load(y + at)
    for _ in range(n):
        v = v * 2
    tl.store(y + at, v)


def cut(programs, turns, most):
    """Returns how many operations a launch had, and how many of its programs a call has room for."""
    layer.prepare("forward", 0, most)
    watch.noted = []
    try:
        turning[(programs,)](torch.zeros(programs), turns)
    except plumb_triton.Slow:
        assert watch.noted == [("slow", "more programs than the interpreter runs in a call (%d of %d)" % (layer.programs, programs))], watch.noted
        return layer.work, layer.programs
    assert watch.noted == [], watch.noted
    return layer.work, None


one, _ = cut(1, 100, 0)
assert cut(1, 100, 0) == (one, None) and 100 < one < 2000, one
many, _ = cut(10, 100, 0)
assert 9 * one < many < 11 * one, (many, one)
assert cut(1, 100, one // 2) == (one // 2 + 1, 1)
done, room = cut(1000, 100, 100 * one)  # told by the first programs
assert done < 5 * one and 90 < room < 110, (done, one, room)
done, room = cut(150, 100, 100 * one)  # not so far beyond that it would not be tried
assert done == 100 * one + 1 and room in (100, 101), (done, one, room)

# Sums of integers are computed once: what is asserted of them is asserted in debug mode alone.

@triton.jit
def counting(y, n):
    v = tl.program_id(0)
    for _ in range(n):
        v = v + 1
    tl.store(y, v)


layer.prepare("forward", 0)
y = torch.zeros(1, dtype=torch.int32)
counting[(1,)](y, 100)
assert layer.work < 1.5 * one and y.item() == 100, (layer.work, one)

# Sums of bfloat16, whose bits the interpreter adds.

@triton.jit
def summing(x, y, z, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(y, tl.sum(v))
    tl.store(y + 1 + tl.arange(0, N)[:, None], tl.sum(v, 1, keep_dims=True))
    tl.store(z + tl.arange(0, N), tl.cumsum(tl.sum(v, 0), 0))


x, y, z = torch.randint(-3, 4, (8, 8)).bfloat16(), torch.zeros(9, dtype=torch.bfloat16), torch.zeros(8, dtype=torch.bfloat16)
run(summing, (1,), x, y, z, N=8)
assert torch.equal(y, torch.cat((x.sum().view(1), x.sum(1)))) and torch.equal(z, x.sum(0).cumsum(0)), (x, y, z)

# Lanes that a load leaves undefined show in a maximum, which leaves NaN out, as in a sum.

@triton.jit
def reduced(x, y, n, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if OTHER:
        v = tl.load(x + at, mask=at < n, other=-float("inf"))
    else:
        v = tl.load(x + at, mask=at < n)
    tl.store(y, tl.max(v, 0))
    tl.store(y + 1, -tl.min(-v, 0))
    tl.store(y + 2, tl.sum(tl.where(at < n, v, 0.0), 0))


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x = -torch.arange(1, 38).to(dtype)
    for other in (True, False):
        y = torch.zeros(3, dtype=dtype)
        assert run(reduced, (1,), x, y, 37, BLOCK=64, OTHER=other) == []
        wrong = [not abs(v - want) < 4 for v, want in zip(y.tolist(), (-1, -1, -703))]
        assert wrong == ([False] * 3 if other else [True, True, False]), (dtype, other, y)


# A float of a launch is a float32 with methods, and beside float64 what it was given.

@triton.jit
def scaled(x, y, a, eps, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(y + at, v * a + eps.to(v.dtype))


x = torch.full((16,), 300.0, dtype=torch.float16)
for a, want in ((400.0, float("inf")), (0.1, 30.0)):
    y = torch.empty(16, dtype=torch.float32)
    run(scaled, (1,), x, y, a, 0.0, BLOCK=16)
    assert torch.equal(y, x.float() * a), y  # 120000 is no number of float16
x, y = torch.randn(16, dtype=torch.float64), torch.empty(16, dtype=torch.float64)
run(scaled, (1,), x, y, 0.1, 1e-3, BLOCK=16)
assert torch.equal(y, x * 0.1 + 1e-3)


@triton.jit
def dropped(x, y, p, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) / (1 - p))


run(dropped, (1,), x, y, 0.3, BLOCK=16)
assert torch.equal(y, x / (1 - 0.3))


# So is the count of a loop an int32.

@triton.jit
def unpacked(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.int64)
    for k in range(n):
        total += (tl.load(x + at) << (k * 8)).to(tl.int64) + (k + 1).to(tl.int64)
    tl.store(y + at, total)


x, y = torch.arange(16, dtype=torch.uint8), torch.empty(16, dtype=torch.int64)
run(unpacked, [1], x, y, 3, BLOCK=16)
assert torch.equal(y, x.long() * 0x10101 + 6), y


# A file has functions of the language by names of its own.

from triton.language import load as got
from triton.language.math import exp

put, tanh = tl.store, libdevice.tanh


@triton.jit
def renamed(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    put(y + at, tanh(exp(got(x + at))))


x, y = torch.randn(16), torch.empty(16)
run(renamed, lambda _: [1], x, y, BLOCK=16)
assert torch.allclose(y, x.exp().tanh())


# Roundings to float8 carry, go to even, and end at the largest number.

@triton.jit
def cast(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at).to(y.dtype.element_ty))


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x = torch.cat([torch.tensor([31.9, -7.94, 25.0, -34.0, 1e-3, 2.0 ** -10, 500.0, -1e4]), 30 * torch.randn(120)]).to(dtype)
    for to in (torch.float8_e4m3fn, torch.float8_e5m2):
        y, back = torch.empty(128, dtype=to), torch.empty(128, dtype=dtype)
        run(cast, (1,), x, y, BLOCK=128)
        top = torch.finfo(to).max
        assert torch.equal(y.float(), x.float().clamp(-top, top).to(to).float()), (dtype, to)
        run(cast, (1,), y, back, BLOCK=128)
        assert torch.equal(back, y.to(dtype)), (dtype, to)


# Configurations that a kernel refuses when it is compiled are left out, and no more are tried than can be afforded.

tried = []


@triton.autotune([triton.Config({"BLOCK": n}, pre_hook=lambda given: tried.append(given["BLOCK"])) for n in (128, 64, 32, 16, 8)], key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 128)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


x, y = torch.randn(300), torch.empty(300)
for most, want in ((0, [128, 64, 32, 16, 8, 64]), (1000, [128, 64, 32, 64])):
    tuned.cache.clear()
    tried.clear()
    layer.prepare("forward", 0, most)
    tuned[(1,)](x, y, 300)
    assert torch.equal(y, 2 * x) and tried == want, tried
assert not any("'128'" in told for told in layer.compiled if "'tuned'" in told)


# Functions of libdevice that numpy lacks.

@triton.jit
def rarer(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(y + at, libdevice.erfinv(v) + libdevice.erfc(8 * v) * 1e20 + libdevice.popc(libdevice.float_as_int(v)) + libdevice.cyl_bessel_i0(v))


x, y = torch.rand(16), torch.empty(16)
run(rarer, (1,), x, y, BLOCK=16)
of = x.double()
want = of.erfinv() + torch.erfc(8 * of) * 1e20 + torch.special.i0(of) + torch.tensor([bin(n).count("1") for n in x.view(torch.int32).tolist()])
assert torch.allclose(y.double(), want, rtol=1e-5), (y, want)


# Assembly of several instructions, with predicates, registers of its own and several elements in one.
@triton.jit
def softplus(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    v = tl.inline_asm_elementwise("""{
        .reg .pred p;
        setp.gt.f32  p, $1, 15.;
        @p  mov.f32  $0, $1;
        @!p mul.f32  $0, $1, 1.4426950408889634;   // to base 2
        @!p ex2.approx.ftz.f32 $0, $0;
        @!p add.f32            $0, $0, 1.0;
        @!p lg2.approx.ftz.f32 $0, $0;
        @!p mul.f32 $0, $0, 0.6931471805599453;
    }""", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + i, v)


@triton.jit
def shifted(x, y, N: tl.constexpr):  # of Triton's documentation: four elements in a register
    i = tl.arange(0, N)
    v = tl.inline_asm_elementwise("shl.b32 $0, $1, 3;", "=r,r", [tl.load(x + i)], dtype=tl.int8, is_pure=True, pack=4)
    tl.store(y + i, v)


@triton.jit
def unpack(x, a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    lo, hi = tl.inline_asm_elementwise("""
        {
            .reg .b8 tmp<4>;
            and.b32 $0, $2, 0x0F;
            shr.u32 $1, $2, 4;
            and.b32 $1, $1, 0x0F;
        }
        """, "=r,=r,r", [tl.load(x + i)], dtype=(tl.int32, tl.int32), is_pure=True, pack=1)
    tl.store(a + i, lo)
    tl.store(b + i, hi)


@triton.jit
def quantised(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.inline_asm_elementwise("{ .reg .b16 packed; cvt.rn.satfinite.e4m3x2.f32 packed, $1, $1; cvt.u32.u16 $0, packed; }", "=r,f", [tl.load(x + i)], dtype=tl.uint32, is_pure=True, pack=1)
    tl.store(y + i, (v & 0xFF).to(tl.uint8))


@triton.jit
def mixed(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.inline_asm_elementwise("""
        cvt.rn.bf16x2.f32 $0, $2, $1;
        """, "=r,f,f", [tl.load(x + i)], dtype=tl.bfloat16, is_pure=True, pack=2)
    tl.store(y + i, v)


@triton.jit
def bits(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    a = tl.inline_asm_elementwise("lop3.b32 $0, $1, 0x0f0f0f0f, 0x30303030, 0xea;", "=r,r", [v], dtype=tl.int32, is_pure=True, pack=1)
    b = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0, 0x0123;", "=r,r", [v], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(y + i, a ^ b)


def assembled(kernel, x, *results):
    run(kernel, (1,), x, *results, N=len(x))
    return results


x = torch.linspace(-20, 20, 64)
assert torch.allclose(assembled(softplus, x, torch.empty(64))[0], torch.nn.functional.softplus(x), atol=1e-5)
x = torch.randint(-128, 127, (64,), dtype=torch.int8)
assert torch.equal(assembled(shifted, x, torch.empty_like(x))[0], (x.view(torch.int32) << 3).view(torch.int8))
x = torch.randint(-2**31, 2**31 - 1, (64,), dtype=torch.int32)
lo, hi = assembled(unpack, x, torch.empty_like(x), torch.empty_like(x))
assert torch.equal(lo, x & 15) and torch.equal(hi, x >> 4 & 15)
swapped = torch.from_numpy(x.numpy().byteswap())
assert torch.equal(assembled(bits, x, torch.empty_like(x))[0], (x & 0x0F0F0F0F | 0x30303030) ^ swapped)
x = 30 * torch.randn(64)
assert torch.equal(assembled(quantised, x, torch.empty(64, dtype=torch.uint8))[0], x.to(torch.float8_e4m3fn).view(torch.uint8))
assert torch.equal(assembled(mixed, x, torch.empty(64, dtype=torch.bfloat16))[0], x.bfloat16())


# Words that connect tensors connect their elements, and evaluate both; constants have a value.

@triton.jit
def worded(x, y, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK.value)
    rows, columns = at[:, None] < n, at[None, :] < n
    inside = rows and columns
    if FIRST and n > 2:
        inside = inside and (not (at[:, None] > 0) or columns)
    tl.store(y + at[:, None] * BLOCK + at[None, :], tl.load(x + at[:, None] * n + at[None, :], mask=inside, other=-1.0), mask=rows or columns)


for first in (True, False):
    x, y = torch.randn(5, 5), torch.full((8, 8), 7.0)
    assert run(worded, (1,), x, y, 5, FIRST=first, BLOCK=8) == []
    want = torch.full((8, 8), 7.0)
    want[:5], want[:, :5], want[:5, :5] = -1, -1, x
    assert torch.equal(y, want), y


# Host code reads what a compiler's kernels have, launches what the first launch returned, and passes objects with an address.

class Library:
    """What a library wraps a kernel in."""

    def __init__(self, fn):
        while not isinstance(fn, triton.runtime.JITFunction):
            fn = fn.fn
        self.fn, self.kernel = fn, None
        self.constants = [p.num for p in fn.params if p.is_constexpr]

    def __call__(self, grid, *args):
        if self.kernel is None:
            self.kernel = self.fn.run(*args, grid=grid)
        else:
            self.kernel[grid](*[a for k, a in enumerate(args) if k not in self.constants])


class Strided:
    def __init__(self, base, offset):
        self.base_, self.dtype = base, base.dtype
        self.offset = offset * base.element_size()

    def data_ptr(self):
        return self.base_.data_ptr() + self.offset


library, x, y = Library(double), torch.randn(40), torch.zeros(40)
assert list(library.fn.signature.parameters) == ["x", "y", "n", "BLOCK", "MASK"]
for _ in range(2):
    y.zero_()
    layer.prepare("forward", 0)
    library((3,), Strided(x, 3), y, 37, 16, True)
    assert torch.equal(y[:37], 2 * x[3:]) and not y[37:].any() and not watch.noted


# A grid is computed of what the host has given.

x, y = torch.randn(37), torch.empty(37)
assert run(double, lambda meta: (triton.cdiv(meta["x"].numel(), meta["BLOCK"]) + meta["n"] - len(meta["y"]),), x, y, 37, BLOCK=16, MASK=True) == []
assert torch.equal(y, 2 * x)
