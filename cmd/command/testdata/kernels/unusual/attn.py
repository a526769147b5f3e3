"""Flash attention in Triton, forward and backward, behind autograd."""
import math
import torch
import triton
import triton.language as tl


@triton.jit
def _fwd(Q, K, V, O, LSE, scale, L, D, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    bh = tl.program_id(1)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    base = bh * L * D
    q = tl.load(Q + base + m[:, None] * D + d[None, :], mask=(m[:, None] < L) & (d[None, :] < D), other=0.0)
    mi = tl.full((BM,), -float("inf"), tl.float32)
    li = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    hi = tl.minimum(L, (tl.program_id(0) + 1) * BM) if CAUSAL else L
    for start in range(0, hi, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(K + base + n[:, None] * D + d[None, :], mask=(n[:, None] < L) & (d[None, :] < D), other=0.0)
        v = tl.load(V + base + n[:, None] * D + d[None, :], mask=(n[:, None] < L) & (d[None, :] < D), other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        keep = n[None, :] < L
        if CAUSAL:
            keep = keep & (n[None, :] <= m[:, None])
        s = tl.where(keep, s, -float("inf"))
        new = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(mi - new)
        li = li * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        mi = new
    acc = acc / li[:, None]
    tl.store(O + base + m[:, None] * D + d[None, :], acc.to(O.dtype.element_ty), mask=(m[:, None] < L) & (d[None, :] < D))
    tl.store(LSE + bh * L + m, mi + tl.log(li), mask=m < L)


@triton.jit
def _bwd(Q, K, V, DO, LSE, DELTA, DQ, DK, DV, scale, L, D, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    bh = tl.program_id(1)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, BD)
    base = bh * L * D
    nd = (n[:, None] < L) & (d[None, :] < D)
    k = tl.load(K + base + n[:, None] * D + d[None, :], mask=nd, other=0.0)
    v = tl.load(V + base + n[:, None] * D + d[None, :], mask=nd, other=0.0)
    dk = tl.zeros((BN, BD), tl.float32)
    dv = tl.zeros((BN, BD), tl.float32)
    for start in range(0, L, BM):
        m = start + tl.arange(0, BM)
        md = (m[:, None] < L) & (d[None, :] < D)
        q = tl.load(Q + base + m[:, None] * D + d[None, :], mask=md, other=0.0)
        do = tl.load(DO + base + m[:, None] * D + d[None, :], mask=md, other=0.0)
        lse = tl.load(LSE + bh * L + m, mask=m < L, other=0.0)
        delta = tl.load(DELTA + bh * L + m, mask=m < L, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        keep = (n[None, :] < L) & (m[:, None] < L)
        if CAUSAL:
            keep = keep & (n[None, :] <= m[:, None])
        p = tl.where(keep, tl.exp(s - lse[:, None]), 0.0)
        dv += tl.dot(tl.trans(p), do.to(tl.float32))
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - delta[:, None]) * scale
        dk += tl.dot(tl.trans(ds), q.to(tl.float32))
        tl.atomic_add(DQ + base + m[:, None] * D + d[None, :], tl.dot(ds, k.to(tl.float32)), mask=md)
    tl.store(DK + base + n[:, None] * D + d[None, :], dk.to(DK.dtype.element_ty), mask=nd)
    tl.store(DV + base + n[:, None] * D + d[None, :], dv.to(DV.dtype.element_ty), mask=nd)


class _Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        b, h, L, D = q.shape
        o = torch.empty_like(q)
        lse = torch.empty(b * h, L, device=q.device, dtype=torch.float32)
        if q.numel():
            _fwd[(triton.cdiv(L, 16), b * h)](q, k, v, o, lse, 1 / math.sqrt(D), L, D, CAUSAL=causal, BM=16, BN=16, BD=max(16, triton.next_power_of_2(D)))
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.causal = causal
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        b, h, L, D = q.shape
        do = do.contiguous()
        delta = (do.float() * o.float()).sum(-1).view(b * h, L)
        dq, dk, dv = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(k), torch.empty_like(v)
        if q.numel():
            _bwd[(triton.cdiv(L, 16), b * h)](q, k, v, do, lse, delta, dq, dk, dv, 1 / math.sqrt(D), L, D, CAUSAL=ctx.causal, BM=16, BN=16, BD=max(16, triton.next_power_of_2(D)))
        return dq.to(q.dtype), dk, dv, None


class _FlashNoDelta(_Flash):
    @staticmethod
    def backward(ctx, do):
        q, k, v, o, lse = ctx.saved_tensors
        b, h, L, D = q.shape
        do = do.contiguous()
        delta = torch.zeros(b * h, L, device=q.device)
        dq, dk, dv = torch.zeros_like(q, dtype=torch.float32), torch.empty_like(k), torch.empty_like(v)
        if q.numel():
            _bwd[(triton.cdiv(L, 16), b * h)](q, k, v, do, lse, delta, dq, dk, dv, 1 / math.sqrt(D), L, D, CAUSAL=ctx.causal, BM=16, BN=16, BD=max(16, triton.next_power_of_2(D)))
        return dq.to(q.dtype), dk, dv, None


def attention(q, k, v):
    return _Flash.apply(q, k, v, False)


def attention_causal(q, k, v):
    return _Flash.apply(q, k, v, True)


def attention_missing_delta(q, k, v):
    return _FlashNoDelta.apply(q, k, v, False)


def attention_wrong_scale(q, k, v):
    return _Flash.apply(q * (math.sqrt(q.shape[-1]) / 8), k, v, False)
