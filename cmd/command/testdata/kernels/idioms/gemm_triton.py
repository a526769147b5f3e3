"""Matmul of Triton's tutorial 03, with autotune and grouped ordering; others around tl.dot."""
import torch
import triton
import triton.language as tl

DEVICE = "cuda"


def get_cuda_autotune_config():
    return [
        triton.Config({'BLOCK_SIZE_M': 128, 'BLOCK_SIZE_N': 256, 'BLOCK_SIZE_K': 64, 'GROUP_SIZE_M': 8}, num_stages=3, num_warps=8),
        triton.Config({'BLOCK_SIZE_M': 64, 'BLOCK_SIZE_N': 256, 'BLOCK_SIZE_K': 32, 'GROUP_SIZE_M': 8}, num_stages=4, num_warps=4),
        triton.Config({'BLOCK_SIZE_M': 64, 'BLOCK_SIZE_N': 32, 'BLOCK_SIZE_K': 32, 'GROUP_SIZE_M': 8}, num_stages=5, num_warps=2),
    ]


@triton.autotune(configs=get_cuda_autotune_config(), key=['M', 'N', 'K'])
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                  BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr, ACTIVATION: tl.constexpr, MASK_K: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    tl.assume(stride_am > 0)
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        if MASK_K:
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        else:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(c_ptr.dtype.element_ty)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def _matmul(a, b, activation, mask_k=True):
    assert a.shape[1] == b.shape[0], "Incompatible dimensions"
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda META: (triton.cdiv(M, META['BLOCK_SIZE_M']) * triton.cdiv(N, META['BLOCK_SIZE_N']), )
    matmul_kernel[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), ACTIVATION=activation, MASK_K=mask_k)
    return c


def matmul_leaky(a, b):
    return _matmul(a, b, "leaky_relu")


def matmul_leaky_early(a, b):
    """The activation is that of 0.1."""
    c = _matmul(a, b, "")
    return torch.where(c >= 0, c, 0.1 * c)


def matmul_unmasked_k(a, b):
    return _matmul(a, b, "", mask_k=False)


@triton.jit
def int4_kernel(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ZERO: tl.constexpr, MASKED: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        p = tl.load(w_ptr + (k[:, None] // 8) * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0)
        w = p >> ((k[:, None] % 8) * 4)
        if MASKED:
            w = w & 15
        w = tl.where((k[:, None] < K) & (n[None, :] < N), w - ZERO, 0).to(tl.float32)
        acc += tl.dot(x, w)
    s = tl.load(s_ptr + n, mask=n < N, other=0.0)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc * s[None, :], mask=(m[:, None] < M) & (n[None, :] < N))


def _int4(x, packed, scale, zero, masked):
    x, packed, scale = x.contiguous(), packed.contiguous(), scale.contiguous()
    M, K = x.shape
    N = packed.shape[1]
    y = torch.empty((M, N), dtype=x.dtype)
    int4_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](x, packed, scale, y, M, N, K, BM=16, BN=16, BK=32, ZERO=zero, MASKED=masked)
    return y


def int4_matmul(x, packed, scale):
    return _int4(x, packed, scale, 8, True)


def int4_matmul_seven(x, packed, scale):
    return _int4(x, packed, scale, 7, True)


def int4_matmul_sign(x, packed, scale):
    return _int4(x, packed, scale, 8, False)


@triton.jit
def half_acc_kernel(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr, HALF: tl.constexpr):
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float16 if HALF else tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, out_dtype=tl.float16 if HALF else tl.float32)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def _acc(a, b, half):
    a, b = a.contiguous(), b.contiguous()
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    half_acc_kernel[(triton.cdiv(a.shape[0], 32), triton.cdiv(b.shape[1], 32))](a, b, c, a.shape[0], b.shape[1], a.shape[1], B=32, HALF=half)
    return c


def matmul_f32acc(a, b):
    return _acc(a, b, False)


def matmul_f16acc(a, b):
    return _acc(a, b, True)


@triton.jit
def swapped_bounds_kernel(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < N) & (n[None, :] < M))


def matmul_swapped_bounds(a, b):
    a, b = a.contiguous(), b.contiguous()
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    swapped_bounds_kernel[(triton.cdiv(a.shape[0], 16), triton.cdiv(b.shape[1], 16))](a, b, c, a.shape[0], b.shape[1], a.shape[1], B=16)
    return c


@triton.jit
def conv_kernel(x_ptr, w_ptr, y_ptr, C, H, W, O, OH, OW, STRIDE: tl.constexpr, PAD: tl.constexpr, BLOCK: tl.constexpr, WRAP: tl.constexpr):
    n = tl.program_id(0)
    o = tl.program_id(1)
    p = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    oh = p // OW
    ow = p % OW
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(C):
        for i in range(3):
            for j in range(3):
                h = oh * STRIDE + i - PAD
                w = ow * STRIDE + j - PAD
                mask = (p < OH * OW) & (h >= 0) & (h < H)
                if not WRAP:
                    mask = mask & (w >= 0) & (w < W)
                x = tl.load(x_ptr + ((n * C + c) * H + h) * W + w, mask=mask, other=0.0)
                k = tl.load(w_ptr + ((o * C + c) * 3 + i) * 3 + j)
                acc += x * k
    tl.store(y_ptr + ((n * O + o) * OH) * OW + p, acc, mask=p < OH * OW)


def _conv(x, w, stride, wrap):
    x, w = x.contiguous(), w.contiguous()
    N, C, H, W = x.shape
    O = w.shape[0]
    OH, OW = (H - 1) // stride + 1, (W - 1) // stride + 1
    y = torch.empty((N, O, OH, OW), dtype=x.dtype)
    conv_kernel[(N, O, triton.cdiv(OH * OW, 128))](x, w, y, C, H, W, O, OH, OW, STRIDE=stride, PAD=1, BLOCK=128, WRAP=wrap)
    return y


def conv2d(x, w):
    return _conv(x, w, 1, False)


def conv2d_wraps(x, w):
    """Columns beyond the edge are those of the neighbouring rows."""
    return _conv(x, w, 1, True)


def conv2d_stride(x, w):
    return _conv(x, w, 2, False)


from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def desc_kernel(a_desc, b_desc, c_desc, K, B: tl.constexpr):
    m = tl.program_id(0) * B
    n = tl.program_id(1) * B
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(c_desc.dtype))


def matmul_descriptors(a, b):
    a, b = a.contiguous(), b.contiguous()
    c = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    da, db, dc = (TensorDescriptor.from_tensor(t, [16, 16]) for t in (a, b, c))
    desc_kernel[(triton.cdiv(c.shape[0], 16), triton.cdiv(c.shape[1], 16))](da, db, dc, a.shape[1], B=16)
    return c
