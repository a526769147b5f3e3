"""Flash attention forward (and backward) in the way of Triton's tutorial 06: exp2, block pointers replaced by offsets."""
import torch
import triton
import triton.language as tl


@triton.jit
def _inner(acc, l_i, m_i, q, k_ptr, v_ptr, start_m, qk_scale, lo, hi, N, offs_m, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, STAGE: tl.constexpr, RESCALE: tl.constexpr, EDGE: tl.constexpr):
    offs_d = tl.arange(0, D)
    for start_n in range(lo, hi, BN):
        start_n = tl.multiple_of(start_n, BN)
        offs_n = start_n + tl.arange(0, BN)
        k = tl.load(k_ptr + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N, other=0.0)
        qk = tl.dot(q, tl.trans(k))
        if STAGE == 2:
            mask = offs_m[:, None] >= offs_n[None, :]
            qk = qk * qk_scale + tl.where(mask, 0, -1.0e6)
        else:
            qk = qk * qk_scale
        if EDGE:
            qk = tl.where(offs_n[None, :] < N, qk, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        l_ij = tl.sum(p, 1)
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + l_ij
        if RESCALE:
            acc = acc * alpha[:, None]
        v = tl.load(v_ptr + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit
def _attn_fwd(Q, K, V, sm_scale, Out, H, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, RESCALE: tl.constexpr, EDGE: tl.constexpr, GROUP: tl.constexpr):
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1)
    kv = (off_hz // H) * (H // GROUP) + (off_hz % H) // GROUP
    Q += off_hz * N * D
    Out += off_hz * N * D
    K += kv * N * D
    V += kv * N * D
    offs_m = start_m * BM + tl.arange(0, BM)
    offs_d = tl.arange(0, D)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32) + 1.0
    l_i = l_i * 0.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    q = tl.load(Q + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < N, other=0.0)
    if CAUSAL:
        acc, l_i, m_i = _inner(acc, l_i, m_i, q, K, V, start_m, qk_scale, 0, start_m * BM, N, offs_m, D, BM, BN, 1, RESCALE, EDGE)
        acc, l_i, m_i = _inner(acc, l_i, m_i, q, K, V, start_m, qk_scale, start_m * BM, tl.minimum((start_m + 1) * BM, N), N, offs_m, D, BM, BN, 2, RESCALE, EDGE)
    else:
        acc, l_i, m_i = _inner(acc, l_i, m_i, q, K, V, start_m, qk_scale, 0, N, N, offs_m, D, BM, BN, 3, RESCALE, EDGE)
    acc = acc / l_i[:, None]
    tl.store(Out + offs_m[:, None] * D + offs_d[None, :], acc.to(Out.type.element_ty), mask=offs_m[:, None] < N)


def _attn(q, k, v, causal, rescale=True, edge=True, group=1):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    B, H, N, d = q.shape
    D = max(16, triton.next_power_of_2(d))
    if D != d:
        q, k, v = (torch.nn.functional.pad(t, (0, D - d)) for t in (q, k, v))
    o = torch.empty_like(q)
    _attn_fwd[(triton.cdiv(N, 32), B * H)](q, k, v, d ** -0.5, o, H, N, D=D, BM=32, BN=16, CAUSAL=causal, RESCALE=rescale, EDGE=edge, GROUP=group)
    return o[..., :d] if D != d else o


def attention(q, k, v):
    return _attn(q, k, v, False)


def attention_causal(q, k, v):
    return _attn(q, k, v, True)


def attention_not_rescaled(q, k, v):
    return _attn(q, k, v, False, rescale=False)


def attention_edge(q, k, v):
    """Keys beyond the last take part with a score of 0."""
    return _attn(q, k, v, False, edge=False)


def attention_causal_edge(q, k, v):
    """Right: keys beyond the last are beyond the diagonal."""
    return _attn(q, k, v, True, edge=False)


def gqa(q, k, v):
    return _attn(q, k, v, False, group=2)


def gqa_modulo(q, k, v):
    """Heads of the queries are dealt to those of the keys by turns."""
    h = q.shape[1]
    order = [i // 2 + (i % 2) * (h // 2) for i in range(h)]
    back = [order.index(i) for i in range(h)]
    return _attn(q[:, order], k, v, False, group=2)[:, back] if h > 2 else _attn(q, k, v, False, group=2)
