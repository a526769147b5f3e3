"""References of fused.py, each as its definition says."""
import torch
import torch.nn.functional as F


def cross_entropy_ignoring(x, t): return F.cross_entropy(x, t, ignore_index=0, label_smoothing=0.1)
def group_norm_silu(x, w, b): return F.silu(F.group_norm(x, 4, w, b))


def window_attention(q, k, v):
    n = q.shape[-2]
    at = torch.arange(n)
    ahead = at[:, None] - at
    s = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill((ahead < 0) | (ahead >= 4), float("-inf"))
    return torch.softmax(s, -1) @ v


def grouped_attention(q, k, v):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def rotary(x):
    n, d = x.shape[-2:]
    angle = torch.arange(n, dtype=x.dtype)[:, None] * 10000 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)


def segment_mean(x, i, out):
    total = torch.zeros_like(out).index_add(0, i, x)
    count = torch.zeros(out.shape[0], dtype=x.dtype).index_add(0, i, torch.ones_like(i, dtype=x.dtype))
    return total / count.clamp(min=1)[:, None]


def histogram(x): return torch.histc(x, 16, -2, 2)
def log_cumsum_exp(x): return torch.logcumsumexp(x, -1)


def residual_layer_norm(x, r, w, b):
    s = x + r
    return F.layer_norm(s, (s.shape[-1],), w, b), s


def int4_linear(x, p, s):
    w = torch.stack([(p & 15).to(x.dtype), (p >> 4).to(x.dtype)], -1).flatten(-2) - 8
    return x @ (w * s[:, None]).T


def conv_state(x, w, state):
    full = torch.cat([state, x], -1)
    return F.conv1d(full, w[:, None], groups=w.shape[0]), full[..., -3:]


def linear_attention(q, k, v): return (q @ k.transpose(-1, -2)).tril() @ v
def preference_loss(a, b, c, d): return -F.logsigmoid(0.5 * ((a - b) - (c - d))).mean()


def focal(x, t):
    p = torch.sigmoid(x)
    away = t * (1 - p) + (1 - t) * p
    return (away ** 2 * F.binary_cross_entropy_with_logits(x, t, reduction="none")).mean()


def lion_step(p, g, m): return p - 1e-3 * torch.sign(0.9 * m + 0.1 * g) - 1e-5 * p, 0.99 * m + 0.01 * g


def softmax_and_none(x):
    return torch.softmax(torch.cat([x, torch.zeros_like(x[..., :1])], -1), -1)[..., :-1]


def distil(x, y): return F.kl_div(F.log_softmax(x / 2, -1), F.softmax(y / 2, -1), reduction="batchmean") * 4


def dice(x, t):
    p = torch.sigmoid(x)
    return (1 - (2 * (p * t).sum(-1) + 1) / (p.sum(-1) + t.sum(-1) + 1)).mean()


def triplet(a, p, n): return F.triplet_margin_loss(a, p, n)
def z_loss(x, t): return F.cross_entropy(x, t) + 1e-3 * torch.logsumexp(x, -1).square().mean()
def expert_gates(x): return (lambda v: v / v.sum(-1, keepdim=True))(torch.softmax(x, -1).topk(2, -1).values)


def top_p(x):
    p = torch.softmax(x, -1)
    s, _ = p.sort(-1, descending=True)
    before = s.cumsum(-1) - s
    least = torch.where(before < 0.9, s, torch.full_like(s, 2)).amin(-1, keepdim=True)
    kept = torch.where(p >= least, p, torch.zeros_like(p))
    return kept / kept.sum(-1, keepdim=True)
