"""References of further kernels."""
import math

import torch
import torch.nn.functional as F


def jsd(p, q):
    """Jensen-Shannon divergence of logits, mean over rows."""
    lp, lq = torch.log_softmax(p, -1), torch.log_softmax(q, -1)
    m = torch.logaddexp(lp, lq) - math.log(2)
    return 0.5 * ((lp.exp() * (lp - m)).sum(-1) + (lq.exp() * (lq - m)).sum(-1)).mean()


def vae_kl(mu, logvar):
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()


def gaussian_nll(x, mean, var):
    return 0.5 * (torch.log(var.clamp(min=1e-6)) + (x - mean) ** 2 / var.clamp(min=1e-6))


def batch_norm_train(x, w, b, mean, var):
    m = x.mean((0, 2))
    v = x.var((0, 2), unbiased=False)
    n = x.shape[0] * x.shape[2]
    y = (x - m[:, None]) / torch.sqrt(v[:, None] + 1e-5) * w[:, None] + b[:, None]
    return y, 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * v * n / (n - 1)


def edge_softmax(score, target, nodes=7):
    """Softmax over the edges of each node, as in a graph attention layer."""
    m = torch.full((nodes,), -math.inf, dtype=score.dtype).scatter_reduce(0, target, score, "amax")
    e = torch.exp(score - m[target])
    return e / torch.zeros(nodes, dtype=score.dtype).index_add(0, target, e)[target]


def scatter_mean(x, target, nodes=7):
    total = torch.zeros(nodes, x.shape[1], dtype=x.dtype).index_add(0, target, x)
    return total / torch.bincount(target, minlength=nodes).clamp(min=1).to(x.dtype)[:, None]


def viterbi(emissions, transitions):
    """The best path's score of each sequence."""
    s = emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        s = (s[:, :, None] + transitions).amax(1) + emissions[:, t]
    return s.amax(-1)


def ssd(x, a, b, c):
    """Mamba-2's recurrence: one state per head, decays exp(-a)."""
    B, L, D = x.shape
    h = torch.zeros(B, b.shape[-1], D, dtype=x.dtype)
    out = []
    for t in range(L):
        h = torch.exp(-a[:, t])[:, None, None] * h + b[:, t, :, None] * x[:, t, None, :]
        out.append((c[:, t, :, None] * h).sum(1))
    return torch.stack(out, 1)


def masked_mean(x, lengths):
    keep = torch.arange(x.shape[1])[None, :] < lengths[:, None]
    return (x * keep[..., None]).sum(1) / lengths.clamp(min=1)[:, None].to(x.dtype)


def bucketize(x, edges):
    return torch.bucketize(x, torch.sort(edges).values)


def iou(a, b):
    """Of boxes given by two corners."""
    a0, a1 = torch.minimum(a[:, :2], a[:, 2:]), torch.maximum(a[:, :2], a[:, 2:])
    b0, b1 = torch.minimum(b[:, :2], b[:, 2:]), torch.maximum(b[:, :2], b[:, 2:])
    inter = (torch.minimum(a1[:, None], b1) - torch.maximum(a0[:, None], b0)).clamp(min=0).prod(-1)
    area = lambda lo, hi: (hi - lo).prod(-1)  # noqa: E731
    return inter / (area(a0, a1)[:, None] + area(b0, b1) - inter + 1e-7)


def relative_bucket(q, k):
    """T5's buckets of relative positions, of 32 up to 128."""
    n = -(k[None, :] - q[:, None])
    n = n.clamp(min=0)
    large = 16 + (torch.log(n.clamp(min=1).double() / 16) / math.log(128 / 16) * 16).long()
    return torch.where(n < 16, n, large.clamp(max=31))


def repetition_penalty(logits, seen):
    score = torch.gather(logits, 1, seen)
    score = torch.where(score < 0, score * 1.3, score / 1.3)
    return logits.scatter(1, seen, score)


def local_response(x):
    """Divisive normalisation by a 3x3 neighbourhood's energy."""
    return x / torch.sqrt(1 + F.avg_pool2d(x * x, 3, 1, 1, count_include_pad=True))


def patchify(x):
    B, C, H, W = x.shape
    return x.reshape(B, C, H // 2, 2, W // 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(B, H * W // 4, 4 * C)


def instance_norm(x):
    m = x.mean((2, 3), keepdim=True)
    return (x - m) * torch.rsqrt(x.var((2, 3), unbiased=False, keepdim=True) + 1e-5)


def conv_transpose1d(x, w):
    return F.conv_transpose1d(x, w, stride=2, padding=1)


def grid_bilinear(x, at):
    return F.grid_sample(x, at, mode="bilinear", padding_mode="zeros", align_corners=False)


def clip_by_norm(a, b):
    norm = torch.sqrt(a.pow(2).sum() + b.pow(2).sum())
    scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    return a * scale, b * scale


def adafactor(g, row, col):
    """Second moments by rows and columns, and the scaled gradient."""
    sq = g * g + 1e-30
    row = 0.9 * row + 0.1 * sq.mean(1)
    col = 0.9 * col + 0.1 * sq.mean(0)
    v = row[:, None] * col[None, :] / row.mean()
    return g / torch.sqrt(v), row, col


def newton_schulz(g):
    x = g / (g.norm() + 1e-7)
    for _ in range(3):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x


def triangular_solve(l, b):
    n = l.shape[-1]
    low = torch.tril(l, -1) / n + torch.eye(n, dtype=l.dtype)
    return torch.linalg.solve_triangular(low, b, upper=False)


def mulaw(x):
    mu = 255.0
    y = torch.sign(x) * torch.log1p(mu * x.abs()) / math.log1p(mu)
    return ((y + 1) / 2 * mu + 0.5).to(torch.int64)


def power_spectrum(x):
    return torch.fft.rfft(x, dim=-1).abs() ** 2


def rotate_complex(x, phase):
    return x * torch.polar(torch.ones_like(phase), phase)


def nonzero_values(x):
    return x[x > 0]


def ssim_rows(x, y):
    mx, my = x.mean(-1), y.mean(-1)
    vx, vy = x.var(-1, unbiased=False), y.var(-1, unbiased=False)
    cov = ((x - mx[:, None]) * (y - my[:, None])).mean(-1)
    return (2 * mx * my + 1e-4) * (2 * cov + 9e-4) / ((mx ** 2 + my ** 2 + 1e-4) * (vx + vy + 9e-4))


def kmeans_assign(x, centres):
    return ((x[:, None, :] - centres[None]) ** 2).sum(-1).argmin(-1)


def ema(x, decay=0.9):
    """Exponential moving average along rows, from the first element on."""
    out = [x[:, 0]]
    for t in range(1, x.shape[1]):
        out.append(decay * out[-1] + (1 - decay) * x[:, t])
    return torch.stack(out, 1)


def delta_rule(q, k, v, beta):
    """DeltaNet's recurrence."""
    B, L, D = q.shape
    s = torch.zeros(B, D, v.shape[-1], dtype=q.dtype)
    out = []
    for t in range(L):
        old = (k[:, t, :, None] * s).sum(1)
        s = s + k[:, t, :, None] * (beta[:, t, None] * (v[:, t] - old))[:, None, :]
        out.append((q[:, t, :, None] * s).sum(1))
    return torch.stack(out, 1)


def min_p(logits):
    p = torch.softmax(logits, -1)
    return torch.where(p < 0.1 * p.amax(-1, keepdim=True), -math.inf, logits)


def gated_mlp(x, wg, wu, wd):
    return (F.silu(x @ wg) * (x @ wu)) @ wd


def alibi_softcap(q, k, v):
    """Causal attention over a window of 16 with ALiBi and scores capped at 20."""
    H, L, D = q.shape[1:]
    s = q @ k.transpose(-2, -1) / math.sqrt(D)
    s = 20 * torch.tanh(s / 20)
    gap = (torch.arange(L)[:, None] - torch.arange(L)[None, :]).to(q.dtype)
    slope = 2.0 ** -torch.arange(1, H + 1, dtype=q.dtype)
    s = s - slope[:, None, None] * gap
    return torch.softmax(s.masked_fill((gap < 0) | (gap >= 16), -math.inf), -1) @ v


def adamw(p, g, m, v):
    """The third step of AdamW."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    up = (m / (1 - 0.9 ** 3)) / (torch.sqrt(v / (1 - 0.999 ** 3)) + 1e-8)
    return p * (1 - 1e-3 * 0.01) - 1e-3 * up, m, v


def partial_rotary(x, cos, sin):
    """Neighbours are rotated in the first half of each head; the rest passes."""
    r = cos.shape[-1] * 2
    a, b = x[..., :r:2], x[..., 1:r:2]
    y = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    return torch.cat((y, x[..., r:]), -1)


def conv_silu(x, w, b):
    """Mamba's causal depthwise convolution."""
    k = w.shape[1]
    y = F.conv1d(F.pad(x, (k - 1, 0)), w[:, None], b, groups=x.shape[1])
    return F.silu(y)


def attention_by_length(q, k, v, lengths):
    """Keys beyond a row's length are no keys; a row without any gives zeros."""
    s = torch.einsum("bd,bsd->bs", q, k) / math.sqrt(q.shape[-1])
    keep = torch.arange(k.shape[1])[None, :] < lengths[:, None]
    p = torch.softmax(s.masked_fill(~keep, -math.inf), -1)
    p = torch.where(keep, p, torch.zeros_like(p))
    return torch.einsum("bs,bsd->bd", p, v)


def block_quant(x):
    """DeepSeek's scales: one for each row, of the largest magnitude over 448."""
    s = x.abs().amax(-1).clamp(min=1e-4) / 448.0
    return (x / s[:, None]).to(torch.float8_e4m3fn).to(torch.float32), s


def nearest_up(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


def kl_rows(logits, target):
    lt = torch.log_softmax(target, -1)
    return (lt.exp() * (lt - torch.log_softmax(logits, -1))).sum(-1)


def bias_dropout_residual(x, b, r, mask):
    return (x + b) * mask.to(x.dtype) / 0.8 + r


def running_min(x):
    return torch.cummin(x, -1).values


def dot_rows(x, y):
    return (x * y).sum(-1)


def mish_inplace_safe(x):
    return x * torch.tanh(F.softplus(x))


def chamfer(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return d.amin(1).mean() + d.amin(0).mean()


def cache_rows(cache, new, at):
    out = cache.clone()
    out[:, at] = new
    return out


def selective_scan(u, delta, A, b, c, skip, z):
    step = torch.nn.functional.softplus(delta)
    h = u.new_zeros(u.shape[0], u.shape[2], A.shape[1])
    out = []
    for t in range(u.shape[1]):
        h = torch.exp(step[:, t, :, None] * -torch.exp(A)) * h + (step[:, t] * u[:, t])[..., None] * b[:, t, None, :]
        out.append((h * c[:, t, None, :]).sum(-1))
    return (torch.stack(out, 1) + u * skip) * torch.nn.functional.silu(z)
