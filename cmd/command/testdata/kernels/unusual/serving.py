"""What an inference engine launches: rotary embedding, caches, quantised products, recurrences."""
import torch
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(x, cos, sin, out, S, H, HALF, BLOCK: tl.constexpr, MINUS: tl.constexpr):
    row = tl.program_id(0)
    s = (row // H) % S
    i = tl.arange(0, BLOCK)
    m = i < HALF
    a = tl.load(x + row * 2 * HALF + i, mask=m, other=0.0).to(tl.float32)
    b = tl.load(x + row * 2 * HALF + HALF + i, mask=m, other=0.0).to(tl.float32)
    c = tl.load(cos + s * HALF + i, mask=m, other=0.0).to(tl.float32)
    d = tl.load(sin + s * HALF + i, mask=m, other=0.0).to(tl.float32)
    tl.store(out + row * 2 * HALF + i, (a * c - b * d).to(out.dtype.element_ty), mask=m)
    second = b * c - a * d if MINUS else b * c + a * d
    tl.store(out + row * 2 * HALF + HALF + i, second.to(out.dtype.element_ty), mask=m)


def _rotary(x, cos, sin, minus):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    B, S, H, D = x.shape
    out = torch.empty_like(x)
    rotary_kernel[(B * S * H,)](x, cos, sin, out, S, H, D // 2, triton.next_power_of_2(D // 2), minus)
    return out


def rotary(x, cos, sin):
    return _rotary(x, cos, sin, False)


def rotary_turned_back(x, cos, sin):
    return _rotary(x, cos, sin, True)


@triton.jit
def cache_kernel(cache, new, position, L, D, stride, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    at = tl.load(position + b)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(new + b * D + i, mask=i < D)
    tl.store(cache + b * stride + at * D + i, v, mask=i < D)


def cache_update(cache, new, position):
    cache = cache.clone(memory_format=torch.contiguous_format)
    B, L, D = cache.shape
    cache_kernel[(B, triton.cdiv(D, 64))](cache, new.contiguous(), position.contiguous(), L, D, L * D, 64)
    return cache


def cache_update_in_place(cache, new, position):
    """Where the cache is contiguous, the caller's own changes."""
    cache = cache.contiguous()
    B, L, D = cache.shape
    cache_kernel[(B, triton.cdiv(D, 64))](cache, new.contiguous(), position.contiguous(), L, D, L * D, 64)
    return cache


@triton.jit
def pages_kernel(pages, table, out, T, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    page = tl.load(table + row)
    for start in range(0, D, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + row * D + i, tl.load(pages + page * D + i, mask=i < D), mask=i < D)


def read_pages(pages, table):
    B, T = table.shape
    D = pages.shape[1]
    out = torch.empty((B, T, D), dtype=pages.dtype, device=pages.device)
    if out.numel():
        pages_kernel[(B * T,)](pages.contiguous(), table.contiguous(), out, T, D, 32)
    return out


def read_pages_transposed_table(pages, table):
    """The table's strides are those of a contiguous one."""
    B, T = table.shape
    D = pages.shape[1]
    out = torch.empty((B, T, D), dtype=pages.dtype, device=pages.device)
    if out.numel():
        pages_kernel[(B * T,)](pages.contiguous(), table, out, T, D, 32)
    return out


@triton.jit
def w8a8_kernel(x, w, sx, sw, out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EARLY: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    scaled = tl.zeros((BM, BN), dtype=tl.float16)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        b = tl.load(w + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0)
        part = tl.dot(a, b, out_dtype=tl.int32)
        total += part
        if EARLY:
            scaled += part.to(tl.float16)
    u = tl.load(sx + m, mask=m < M, other=0.0)
    v = tl.load(sw + n, mask=n < N, other=0.0)
    y = (scaled if EARLY else total).to(tl.float32) * u[:, None] * v[None, :]
    tl.store(out + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))


def _w8a8(x, w, sx, sw, early):
    x, w, sx, sw = x.contiguous(), w.contiguous(), sx.contiguous(), sw.contiguous()
    (M, K), N = x.shape, w.shape[1]
    out = torch.empty((M, N), dtype=torch.float32, device=x.device)
    w8a8_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, w, sx, sw, out, M, N, K, 32, 32, 64, early)
    return out


def w8a8(x, w, sx, sw):
    return _w8a8(x, w, sx, sw, False)


def w8a8_half_sums(x, w, sx, sw):
    """Sums of blocks are kept in half."""
    return _w8a8(x, w, sx, sw, True)


@triton.jit
def compose(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def compose_swapped(a1, b1, a2, b2):
    return a1 * a2, b2 * a1 + b1


@triton.jit
def recurrence_kernel(a, b, out, T, BLOCK: tl.constexpr, SWAPPED: tl.constexpr):
    row = tl.program_id(0)
    h = 0.0
    for start in range(0, T, BLOCK):
        t = start + tl.arange(0, BLOCK)
        x = tl.load(a + row * T + t, mask=t < T, other=1.0)
        y = tl.load(b + row * T + t, mask=t < T, other=0.0)
        if SWAPPED:
            f, g = tl.associative_scan((x, y), 0, compose_swapped)
        else:
            f, g = tl.associative_scan((x, y), 0, compose)
        s = f * h + g
        tl.store(out + row * T + t, s, mask=t < T)
        h = tl.sum(tl.where(t == start + BLOCK - 1, s, 0.0), 0)


def _recurrence(a, b, swapped):
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty_like(a)
    recurrence_kernel[(a.shape[0],)](a, b, out, a.shape[1], 64, swapped)
    return out


def recurrence(a, b):
    return _recurrence(a, b, False)


def recurrence_swapped(a, b):
    return _recurrence(a, b, True)
