"""Fused functions of training and of serving, each once right and once with one honest mistake."""
import math

import torch
import torch.nn.functional as F


def cross_entropy_ignoring(x, t):
    keep = t != 0
    logp = x - torch.logsumexp(x, -1, keepdim=True)
    nll = -logp.gather(1, t[:, None])[:, 0]
    return (0.9 * nll - 0.1 * logp.mean(-1)).masked_fill(~keep, 0).sum() / keep.sum()


def cross_entropy_ignoring_all(x, t):
    logp = x - torch.logsumexp(x, -1, keepdim=True)
    nll = -logp.gather(1, t[:, None])[:, 0]
    keep = t != 0
    return (0.9 * nll * keep).sum() / keep.sum() - 0.1 * (logp.mean(-1) * keep).mean()


def group_norm_silu(x, w, b):
    g = x.reshape(x.shape[0], 4, -1)
    m = g.mean(-1, keepdim=True)
    c = g - m
    y = (c * torch.rsqrt(c.square().mean(-1, keepdim=True) + 1e-5)).reshape(x.shape)
    y = y * w[:, None] + b[:, None]
    return y * torch.sigmoid(y)


def group_norm_silu_strided(x, w, b):
    n, c, l = x.shape
    g = x.reshape(n, c // 4, 4, l)
    v, m = torch.var_mean(g, (1, 3), unbiased=False, keepdim=True)
    y = ((g - m) * torch.rsqrt(v + 1e-5)).reshape(x.shape) * w[:, None] + b[:, None]
    return y * torch.sigmoid(y)


def _window(q, k, v, width):
    rows = []
    for i in range(q.shape[-2]):
        lo = max(0, i - width + 1)
        s = (q[..., i:i + 1, :] * k[..., lo:i + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
        rows.append((torch.softmax(s, -1)[..., None] * v[..., lo:i + 1, :]).sum(-2))
    return torch.stack(rows, -2)


def window_attention(q, k, v): return _window(q, k, v, 4)
def window_attention_wide(q, k, v): return _window(q, k, v, 5)


def grouped_attention(q, k, v):
    b, h, n, d = q.shape
    s = torch.einsum("bgrid,bgjd->bgrij", q.reshape(b, h // 2, 2, n, d), k) * d ** -0.5
    return torch.einsum("bgrij,bgjd->bgrid", s.softmax(-1), v).reshape(b, h, n, d)


def grouped_attention_tiled(q, k, v):
    k, v = k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def _rotary(x, d):
    angle = torch.outer(torch.arange(x.shape[-2], dtype=x.dtype), 10000 ** (-torch.arange(0, x.shape[-1], 2, dtype=x.dtype) / d))
    y = torch.empty_like(x)
    y[..., 0::2] = x[..., 0::2] * angle.cos() - x[..., 1::2] * angle.sin()
    y[..., 1::2] = x[..., 1::2] * angle.cos() + x[..., 0::2] * angle.sin()
    return y


def rotary(x): return _rotary(x, x.shape[-1])
def rotary_pairs_counted(x): return _rotary(x, x.shape[-1] // 2)


def segment_mean(x, i, out):
    one = F.one_hot(i, out.shape[0]).to(x.dtype)
    return one.T @ x / one.sum(0).clamp(min=1)[:, None]


def segment_mean_empty(x, i, out):
    total = torch.zeros_like(out).index_add(0, i, x)
    return total / torch.bincount(i, minlength=out.shape[0]).to(x.dtype)[:, None]


def histogram(x):
    x = x[(x >= -2) & (x <= 2)]
    return torch.bincount(((x + 2) * 4).long().clamp(max=15), minlength=16).to(x.dtype)


def histogram_clamped(x): return torch.bincount(((x + 2) * 4).floor().long().clamp(0, 15), minlength=16).to(x.dtype)


def log_cumsum_exp(x):
    step = 1
    while step < x.shape[-1]:
        x = torch.cat([x[..., :step], torch.logaddexp(x[..., step:], x[..., :-step])], -1)
        step *= 2
    return x.clone()


def log_cumsum_exp_one_shift(x):
    m = x.amax(-1, keepdim=True)
    return torch.log(torch.cumsum(torch.exp(x - m), -1)) + m


def residual_layer_norm(x, r, w, b):
    s = x + r
    c = s - s.mean(-1, keepdim=True)
    return c * torch.rsqrt((c * c).mean(-1, keepdim=True) + 1e-5) * w + b, s


def residual_layer_norm_into(x, r, w, b):
    s = r.detach().add_(x) if not r.requires_grad else x + r
    return F.layer_norm(s, (s.shape[-1],), w, b), s


def int4_linear(x, p, s):
    low, high = (p & 15).to(x.dtype) - 8, (p >> 4).to(x.dtype) - 8
    return (x[:, 0::2] @ low.T + x[:, 1::2] @ high.T) * s


def int4_linear_halves(x, p, s):
    w = torch.cat([(p & 15).to(x.dtype), (p >> 4).to(x.dtype)], -1) - 8
    return x @ w.T * s


def _conv(x, w, state):
    full = torch.cat([state, x], -1)
    n = x.shape[-1]
    return sum(full[..., k:k + n] * w[:, k, None] for k in range(4)), full


def conv_state(x, w, state):
    y, full = _conv(x, w, state)
    return y, full[..., x.shape[-1]:].clone()


def conv_state_short(x, w, state):
    y, _ = _conv(x, w, state)
    return y, F.pad(x, (3, 0))[..., -3:]


def _linear_attention(q, k, v, carry):
    state, out = torch.zeros(q.shape[0], q.shape[2], v.shape[2], dtype=q.dtype), []
    for a, b, c in zip(q.split(16, 1), k.split(16, 1), v.split(16, 1)):
        out.append((a @ b.transpose(1, 2)).tril() @ c + a @ state)
        state = b.transpose(1, 2) @ c + (state if carry else 0)
    return torch.cat(out, 1)


def linear_attention(q, k, v): return _linear_attention(q, k, v, True)
def linear_attention_last(q, k, v): return _linear_attention(q, k, v, False)
def preference_loss(a, b, c, d): return F.softplus(-0.5 * (a - b - c + d)).mean()
def preference_loss_log(a, b, c, d): return -torch.log(torch.sigmoid(0.5 * (a - b - c + d))).mean()


def _focal(x, t, loss, weight=lambda w: w):
    p = torch.sigmoid(x)
    away = p + t - 2 * t * p
    return (weight(away * away) * loss).mean()


def focal(x, t): return _focal(x, t, (1 - t) * x + F.softplus(-x))
def focal_detached(x, t): return _focal(x, t, (1 - t) * x + F.softplus(-x), torch.Tensor.detach)
def focal_kink(x, t): return _focal(x, t, x.clamp(min=0) - x * t + torch.log1p(torch.exp(-x.abs())))


def lion_step(p, g, m):
    d = (m * 0.9).add(g, alpha=0.1)
    return p * (1 - 1e-5) - 1e-3 * d.sign(), (m * 0.99).add(g, alpha=0.01)


def lion_step_late(p, g, m):
    m = 0.99 * m + 0.01 * g
    return p * (1 - 1e-5) - 1e-3 * (0.9 * m + 0.1 * g).sign(), m


def softmax_and_none(x):
    m = x.detach().amax(-1, keepdim=True).clamp(min=0)
    e = torch.exp(x - m)
    return e / (e.sum(-1, keepdim=True) + torch.exp(-m))


def softmax_and_none_one(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / (e.sum(-1, keepdim=True) + 1)


def distil(x, y):
    lx, ly = F.log_softmax(x / 2, -1), F.log_softmax(y / 2, -1)
    return 4 * (ly.exp() * (ly - lx)).sum() / x.shape[0]


def distil_mean(x, y):
    lx, ly = F.log_softmax(x / 2, -1), F.log_softmax(y / 2, -1)
    return 4 * (ly.exp() * (ly - lx)).mean()


def dice(x, t):
    p = torch.sigmoid(x)
    both = p.sum(-1) + t.sum(-1) + 1
    return ((both - 2 * (p * t).sum(-1) - 1) / both).mean()


def dice_whole(x, t):
    p = torch.sigmoid(x)
    return 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)


def triplet(a, p, n): return (1 + (a - p + 1e-6).square().sum(-1).sqrt() - (a - n + 1e-6).square().sum(-1).sqrt()).clamp(min=0).mean()
def triplet_squared(a, p, n): return torch.relu(1 + ((a - p).square().sum(-1) + 1e-6).sqrt() - ((a - n).square().sum(-1) + 1e-6).sqrt()).mean()


def z_loss(x, t):
    z = torch.logsumexp(x, -1)
    return (z - x.gather(1, t[:, None])[:, 0] + 1e-3 * z * z).mean()


def z_loss_detached(x, t):
    z = torch.logsumexp(x, -1)
    return (z - x.gather(1, t[:, None])[:, 0] + 1e-3 * z.detach() ** 2).mean()


def expert_gates(x): return torch.softmax(x.topk(2, -1).values, -1)
def expert_gates_all(x): return torch.softmax(x, -1).topk(2, -1).values


def top_p(x):
    p = torch.softmax(x, -1)
    s = p.sort(-1, descending=True).values
    count = (s.cumsum(-1) - s < 0.9).sum(-1, keepdim=True)
    y = p * (p >= s.gather(-1, count - 1))
    return y / y.sum(-1, keepdim=True)


def top_p_below(x):
    p = torch.softmax(x, -1)
    s = p.sort(-1, descending=True).values
    count = (s.cumsum(-1) <= 0.9).sum(-1, keepdim=True).clamp(min=1)
    y = p * (p >= s.gather(-1, count - 1))
    return y / y.sum(-1, keepdim=True)
