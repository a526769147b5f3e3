"""Products in Triton: split along K by atomics or a workspace, persistent, grouped, autotuned."""
import torch
import triton
import triton.language as tl


@triton.jit
def _splitk(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def matmul_splitk(a, b):
    a, b = a.contiguous(), b.contiguous()
    M, K = a.shape
    N = b.shape[1]
    c = torch.zeros(M, N, dtype=torch.float32, device=a.device)
    if c.numel():
        _splitk[(triton.cdiv(M, 32), triton.cdiv(N, 32), 4)](a, b, c, M, N, K, BM=32, BN=32, BK=32, SPLIT=4)
    return c.to(a.dtype)


def matmul_splitk_unzeroed(a, b):
    a, b = a.contiguous(), b.contiguous()
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, dtype=torch.float32, device=a.device)
    if c.numel():
        _splitk[(triton.cdiv(M, 32), triton.cdiv(N, 32), 4)](a, b, c, M, N, K, BM=32, BN=32, BK=32, SPLIT=4)
    return c.to(a.dtype)


@triton.jit
def _splitk_store(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    mask = (m[:, None] < M) & (n[None, :] < N)
    old = tl.load(c_ptr + m[:, None] * N + n[None, :], mask=mask, other=0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], old + acc, mask=mask)


def matmul_splitk_race(a, b):
    a, b = a.contiguous(), b.contiguous()
    M, K = a.shape
    N = b.shape[1]
    c = torch.zeros(M, N, dtype=torch.float32, device=a.device)
    if c.numel():
        _splitk_store[(triton.cdiv(M, 32), triton.cdiv(N, 32), 4)](a, b, c, M, N, K, BM=32, BN=32, BK=32, SPLIT=4)
    return c.to(a.dtype)


CONFIGS = [triton.Config({"BM": 32, "BN": 32, "BK": 32, "GROUP": 4}, num_warps=4), triton.Config({"BM": 64, "BN": 16, "BK": 64, "GROUP": 2}, num_warps=2)]


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BK"] == 0})
@triton.jit
def _grouped(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        width = GROUP * tiles_n
        group = tile // width
        size = min(tiles_m - group * GROUP, GROUP)
        pm = group * GROUP + (tile % size)
        pn = (tile % width) // size
        m = pm * BM + tl.arange(0, BM)
        n = pn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            if EVEN_K:
                a = tl.load(a_ptr + (m[:, None] % M) * sam + k[None, :] * sak)
                b = tl.load(b_ptr + k[:, None] * sbk + (n[None, :] % N) * sbn)
            else:
                a = tl.load(a_ptr + (m[:, None] % M) * sam + k[None, :] * sak, mask=k[None, :] < K, other=0.0)
                b = tl.load(b_ptr + k[:, None] * sbk + (n[None, :] % N) * sbn, mask=k[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def matmul_persistent_grouped(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    if c.numel():
        grid = lambda meta: (min(8, triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"])),)
        _grouped[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1))
    return c


@triton.jit
def _linear_gelu(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TANH: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :].to(tl.float32)
    if TANH:
        inner = 0.7978845608028654 * (acc + 0.044715 * acc * acc * acc)
        acc = acc * tl.sigmoid(2 * inner)
    else:
        acc = 0.5 * acc * (1 + tl.erf(acc * 0.7071067811865476))
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def _run_linear(x, w, b, tanh):
    x, w, b = x.contiguous(), w.contiguous(), b.contiguous()
    y = torch.empty(x.shape[0], w.shape[0], dtype=x.dtype, device=x.device)
    if y.numel():
        _linear_gelu[(triton.cdiv(x.shape[0], 16), triton.cdiv(w.shape[0], 16))](x, w, b, y, x.shape[0], w.shape[0], x.shape[1], BM=16, BN=16, BK=32, TANH=tanh)
    return y


def linear_gelu(x, w, b):
    return _run_linear(x, w, b, False)


def linear_gelu_tanh(x, w, b):
    return _run_linear(x, w, b, True)
