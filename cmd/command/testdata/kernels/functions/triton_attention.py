import torch
import triton
import triton.language as tl


@triton.jit
def _attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, L, S, scale, D, BD: tl.constexpr,
                      BM: tl.constexpr, BN: tl.constexpr, RESCALE: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1)
    d = tl.arange(0, BD)
    q_at = (head * L + m[:, None]) * D + d[None, :]
    q_mask = (m[:, None] < L) & (d[None, :] < D)
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, S, BN):
        n = start + tl.arange(0, BN)
        at = (head * S + n[:, None]) * D + d[None, :]
        mask = (n[:, None] < S) & (d[None, :] < D)
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(n[None, :] < S, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(top - new)
        total = total * alpha + tl.sum(p, axis=1)
        if RESCALE:
            acc = acc * alpha[:, None]
        acc += tl.dot(p, v, input_precision="ieee")
        top = new
    tl.store(o_ptr + q_at, acc / total[:, None], mask=q_mask)


def _launch(q, k, v, rescale):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    o = torch.empty_like(q)
    b, h, l, d = q.shape
    if o.numel():
        grid = (triton.cdiv(l, 16), b * h)
        _attention_kernel[grid](q, k, v, o, l, k.shape[2], d ** -0.5, d, BD=max(16, triton.next_power_of_2(d)),
                                BM=16, BN=16, RESCALE=rescale)
    return o


def attention(q, k, v):
    return _launch(q, k, v, True)


def attention_online(q, k, v):
    return _launch(q, k, v, False)
