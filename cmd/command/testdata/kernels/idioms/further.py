"""Layers, losses and steps as they are rewritten to be fast, without Triton."""
import math

import numpy as np
import torch
import torch.nn.functional as F


# Losses.

def _jsd(p, q, halves):
    lp = p - p.logsumexp(-1, keepdim=True)
    lq = q - q.logsumexp(-1, keepdim=True)
    m = torch.logaddexp(lp, lq)
    if halves:
        m = m - math.log(2.0)
    a = F.kl_div(m, lp, reduction="none", log_target=True).sum(-1)
    b = F.kl_div(m, lq, reduction="none", log_target=True).sum(-1)
    return (a + b).mean() / 2


def jsd(p, q): return _jsd(p, q, True)
def jsd_no_half(p, q): return _jsd(p, q, False)


def jsd_probabilities(p, q):
    """log of a softmax that underflows."""
    p, q = torch.softmax(p, -1), torch.softmax(q, -1)
    m = (p + q) / 2
    return 0.5 * ((p * (p.log() - m.log())).sum(-1) + (q * (q.log() - m.log())).sum(-1)).mean()


class _VaeKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mu, logvar):
        e = torch.exp(logvar)
        ctx.save_for_backward(mu, e)
        return 0.5 * (mu * mu + e - logvar - 1).sum() / mu.shape[0]

    @staticmethod
    def backward(ctx, g):
        mu, e = ctx.saved_tensors
        g = g / mu.shape[0]
        return g * mu, g * 0.5 * (e - 1)


class _VaeKLShort(_VaeKL):
    @staticmethod
    def backward(ctx, g):
        mu, e = ctx.saved_tensors
        g = g / mu.shape[0]
        return g * mu, g * 0.5 * e


def vae_kl(mu, logvar): return _VaeKL.apply(mu, logvar)
def vae_kl_grad_short(mu, logvar): return _VaeKLShort.apply(mu, logvar)


def gaussian_nll(x, mean, var):
    v = torch.clamp(var, min=1e-6)
    d = x - mean
    return (torch.log(v) + d * d / v) * 0.5


def gaussian_nll_added(x, mean, var):
    """eps is added for a lower limit."""
    v = var + 1e-6
    return 0.5 * (torch.log(v) + (x - mean).square() / v)


# Normalisation.

def _batch_norm(x, w, b, mean, var, unbiased):
    rows = x.transpose(0, 1).flatten(1)
    v, m = torch.var_mean(rows, 1, unbiased=False)
    scale = w * torch.rsqrt(v + 1e-5)
    y = (x - m[:, None]) * scale[:, None] + b[:, None]
    n = rows.shape[1]
    kept = v * (n / (n - 1)) if unbiased else v
    return y, mean * 0.9 + m * 0.1, var * 0.9 + kept * 0.1


def batch_norm_train(x, w, b, mean, var): return _batch_norm(x, w, b, mean, var, True)
def batch_norm_biased(x, w, b, mean, var): return _batch_norm(x, w, b, mean, var, False)


def batch_norm_moments(x, w, b, mean, var):
    m = x.mean((0, 2))
    v = (x * x).mean((0, 2)) - m * m
    n = x.shape[0] * x.shape[2]
    y = (x - m[:, None]) * torch.rsqrt(v + 1e-5)[:, None] * w[:, None] + b[:, None]
    return y, 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * v * n / (n - 1)


def instance_norm(x):
    rows = x.flatten(2)
    c = rows - rows.mean(-1, keepdim=True)
    return (c / torch.sqrt(c.square().mean(-1, keepdim=True) + 1e-5)).reshape(x.shape)


def instance_norm_layer(x):
    """Statistics of all channels."""
    return F.layer_norm(x, x.shape[1:])


# Graphs.

def edge_softmax(score, target, nodes=7):
    order = torch.argsort(target, stable=True)
    s, t = score[order], target[order]
    same = F.one_hot(t, nodes).bool()
    top = torch.where(same, s[:, None], -math.inf).amax(0)
    e = torch.exp(s - top[t])
    total = torch.where(same, e[:, None], 0.0).sum(0)
    return torch.zeros_like(score).scatter(0, order, e / total[t])


def edge_softmax_one_max(score, target, nodes=7):
    """One maximum of all edges: nodes whose scores are far below have 0/0."""
    e = torch.exp(score - score.max())
    return e / torch.zeros(nodes, dtype=score.dtype).index_add(0, target, e)[target]


def scatter_mean(x, target, nodes=7):
    pick = F.one_hot(target, nodes).to(x.dtype)
    return (pick.t() @ x) / pick.sum(0).clamp(min=1)[:, None]


def scatter_mean_empty(x, target, nodes=7):
    pick = F.one_hot(target, nodes).to(x.dtype)
    return (pick.t() @ x) / pick.sum(0)[:, None]


# Sequences.

def viterbi(emissions, transitions):
    steps = [*emissions.unbind(1)]
    s = steps[0]
    for e in steps[1:]:
        s = torch.amax(s.unsqueeze(2) + transitions.unsqueeze(0), 1).add(e)
    return torch.amax(s, -1)


def viterbi_turned(emissions, transitions):
    s = emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        s = (s[:, None, :] + transitions).amax(2) + emissions[:, t]
    return s.amax(-1)


def _ssd(x, a, b, c, chunk, carried):
    B, L, D = x.shape
    h = x.new_zeros(B, b.shape[-1], D)
    out = []
    for s in range(0, L, chunk):
        xc, ac, bc, cc = x[:, s:s + chunk], -a[:, s:s + chunk], b[:, s:s + chunk], c[:, s:s + chunk]
        run = ac.cumsum(1)
        n = run.shape[1]
        gap = run[:, :, None] - run[:, None, :]
        low = torch.ones(n, n).tril().bool()
        decay = torch.exp(gap.masked_fill(~low, -math.inf))
        y = ((cc @ bc.transpose(1, 2)) * decay) @ xc
        y = y + torch.exp(run)[..., None] * (cc @ h)
        rest = torch.exp(run[:, -1:] - run)
        h = (torch.exp(run[:, -1])[:, None, None] * h if carried else h) + (bc * rest[..., None]).transpose(1, 2) @ xc
        out.append(y)
    return torch.cat(out, 1)


def ssd(x, a, b, c): return _ssd(x, a, b, c, 16, True)
def ssd_state_not_decayed(x, a, b, c): return _ssd(x, a, b, c, 16, False)


def ema(x, decay=0.9):
    """As a product with a matrix of powers."""
    n = x.shape[1]
    i = torch.arange(n, dtype=x.dtype)
    w = torch.where(i[:, None] >= i[None, :], decay ** (i[:, None] - i[None, :]).clamp(min=0), torch.zeros((), dtype=x.dtype))
    w = torch.cat((w[:, :1], (1 - decay) * w[:, 1:]), 1)
    return x @ w.t()


def ema_from_zero(x, decay=0.9):
    n = x.shape[1]
    i = torch.arange(n, dtype=x.dtype)
    w = (decay ** (i[:, None] - i[None, :]).clamp(min=0)).tril()
    return (1 - decay) * (x @ w.t())


def delta_rule(q, k, v, beta):
    state = torch.zeros(q.shape[0], v.shape[-1], q.shape[-1], dtype=q.dtype)
    outs = []
    for t in range(q.shape[1]):
        kt = k[:, t].unsqueeze(-1)
        err = v[:, t].unsqueeze(-1) - torch.bmm(state, kt)
        state = state + torch.bmm(err * beta[:, t, None, None], kt.transpose(1, 2))
        outs.append(torch.bmm(state, q[:, t].unsqueeze(-1)).squeeze(-1))
    return torch.stack(outs, 1)


def delta_rule_linear(q, k, v, beta):
    """The old value is not taken out: linear attention."""
    s = ((beta[..., None] * v).unsqueeze(2) * k.unsqueeze(3)).cumsum(1)
    return (q.unsqueeze(3) * s).sum(2)


def masked_mean(x, lengths):
    total = torch.cat((torch.zeros_like(x[:, :1]), x.cumsum(1)), 1)
    total = total.gather(1, lengths[:, None, None].expand(-1, 1, x.shape[2]))[:, 0]
    return total / lengths.clamp(min=1)[:, None]


def masked_mean_inclusive(x, lengths):
    keep = torch.arange(x.shape[1])[None, :] <= lengths[:, None]
    return (x * keep[..., None]).sum(1) / (lengths + 1)[:, None].to(x.dtype)


# Integers and places.

def bucketize(x, edges):
    return (x[:, None] > torch.sort(edges).values).sum(1)


def bucketize_right(x, edges):
    return torch.searchsorted(torch.sort(edges).values, x, right=True)


def relative_bucket(q, k):
    n = (q[:, None] - k[None, :]).clamp(min=0)
    table = [i if i < 16 else min(31, 16 + int(math.log(i / 16) / math.log(8) * 16)) for i in range(129)]
    return torch.tensor(table)[n.clamp(max=128)]


def relative_bucket_both(q, k):
    n = (q[:, None] - k[None, :]).abs()
    table = [i if i < 16 else min(31, 16 + int(math.log(i / 16) / math.log(8) * 16)) for i in range(129)]
    return torch.tensor(table)[n.clamp(max=128)]


def mulaw(x):
    y = torch.copysign(torch.log1p(255.0 * torch.abs(x)) / math.log(256.0), x)
    return torch.floor((y + 1) * 127.5 + 0.5).to(torch.int64)


def mulaw_rounded_down(x):
    y = torch.copysign(torch.log1p(255.0 * torch.abs(x)) / math.log(256.0), x)
    return ((y + 1) * 127.5).to(torch.int64)


def kmeans_assign(x, centres):
    return torch.cdist(x, centres, compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)


def kmeans_assign_dots(x, centres):
    """|x|² - 2xc + |c|² cancels."""
    return (centres.square().sum(-1) - 2 * x @ centres.t()).argmin(-1)


def nonzero_values(x):
    return torch.masked_select(x, x.gt(0))


def nonzero_values_not_zero(x):
    return x[x != 0]


def repetition_penalty(logits, seen):
    hit = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, seen, True)
    return torch.where(hit, torch.where(logits < 0, logits * 1.3, logits / 1.3), logits)


def repetition_penalty_counted(logits, seen):
    """Once for each time that a token was seen."""
    n = torch.zeros_like(logits).scatter_add_(1, seen, torch.ones_like(seen, dtype=logits.dtype))
    return torch.where(logits < 0, logits * 1.3 ** n, logits / 1.3 ** n)


def repetition_penalty_into(logits, seen):
    score = logits.gather(1, seen)
    return logits.scatter_(1, seen, torch.where(score < 0, score * 1.3, score / 1.3))


def min_p(logits):
    return logits.masked_fill(logits < logits.amax(-1, keepdim=True) + math.log(0.1), -math.inf)


def min_p_absolute(logits):
    return logits.masked_fill(torch.softmax(logits, -1) < 0.1, -math.inf)


# Images.

def iou(a, b):
    a, b = torch.cat((torch.minimum(a[:, :2], a[:, 2:]), torch.maximum(a[:, :2], a[:, 2:])), 1), torch.cat((torch.minimum(b[:, :2], b[:, 2:]), torch.maximum(b[:, :2], b[:, 2:])), 1)
    w = (torch.min(a[:, None, 2], b[None, :, 2]) - torch.max(a[:, None, 0], b[None, :, 0])).clamp(min=0)
    h = (torch.min(a[:, None, 3], b[None, :, 3]) - torch.max(a[:, None, 1], b[None, :, 1])).clamp(min=0)
    i = w * h
    sa, sb = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]), (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return i / (sa[:, None] + sb[None, :] - i + 1e-7)


def iou_unclamped(a, b):
    """Two negative sides have a positive product."""
    a0, a1 = torch.minimum(a[:, :2], a[:, 2:]), torch.maximum(a[:, :2], a[:, 2:])
    b0, b1 = torch.minimum(b[:, :2], b[:, 2:]), torch.maximum(b[:, :2], b[:, 2:])
    inter = (torch.minimum(a1[:, None], b1) - torch.maximum(a0[:, None], b0)).prod(-1).clamp(min=0)
    return inter / ((a1 - a0).prod(-1)[:, None] + (b1 - b0).prod(-1) - inter + 1e-7)


def local_response(x):
    k = torch.full((1, 1, 3, 3), 1 / 9, dtype=x.dtype)
    B, C, H, W = x.shape
    e = F.conv2d(x.square().reshape(B * C, 1, H, W), k, padding=1).reshape(B, C, H, W)
    return x * torch.rsqrt(e + 1)


def local_response_edges(x):
    return x / torch.sqrt(1 + F.avg_pool2d(x * x, 3, 1, 1, count_include_pad=False))


def patchify(x):
    B, C, H, W = x.shape
    return F.unfold(x, 2, stride=2).view(B, C, 4, -1).permute(0, 3, 2, 1).reshape(B, H * W // 4, 4 * C)


def patchify_channels_first(x):
    return F.unfold(x, 2, stride=2).transpose(1, 2)


def conv_transpose1d(x, w):
    B, C, L = x.shape
    wide = x.new_zeros(B, C, 2 * L - 1)
    wide[:, :, ::2] = x
    k = w.shape[-1]
    return F.conv1d(wide, w.flip(-1).transpose(0, 1), padding=k - 2)


def conv_transpose1d_unflipped(x, w):
    B, C, L = x.shape
    wide = x.new_zeros(B, C, 2 * L - 1)
    wide[:, :, ::2] = x
    return F.conv1d(wide, w.transpose(0, 1), padding=w.shape[-1] - 2)


def _grid(x, at, half):
    B, C, H, W = x.shape
    gx = ((at[..., 0] + 1) * W - 1) / 2 if half else (at[..., 0] + 1) * (W - 1) / 2
    gy = ((at[..., 1] + 1) * H - 1) / 2 if half else (at[..., 1] + 1) * (H - 1) / 2
    x0, y0 = gx.floor(), gy.floor()
    fx, fy = gx - x0, gy - y0
    out = 0
    for dx in (0, 1):
        for dy in (0, 1):
            cx, cy = x0 + dx, y0 + dy
            w = (fx if dx else 1 - fx) * (fy if dy else 1 - fy)
            inside = (cx >= 0) & (cx < W) & (cy >= 0) & (cy < H)
            i = (cy.clamp(0, H - 1) * W + cx.clamp(0, W - 1)).long()
            v = x.flatten(2).gather(2, i.flatten(1)[:, None, :].expand(-1, C, -1)).view(B, C, *i.shape[1:])
            out = out + v * (w * inside)[:, None]
    return out


def grid_bilinear(x, at): return _grid(x, at, True)
def grid_corners(x, at): return _grid(x, at, False)


def ssim_rows(x, y):
    s = torch.stack((x, y))
    m = s.mean(-1, keepdim=True)
    c = s - m
    v = c.square().mean(-1)
    cov = (c[0] * c[1]).mean(-1)
    m = m[..., 0]
    return ((2 * m[0] * m[1] + 1e-4) / (m[0].square() + m[1].square() + 1e-4)) * ((2 * cov + 9e-4) / (v.sum(0) + 9e-4))


def ssim_rows_moments(x, y):
    mx, my = x.mean(-1), y.mean(-1)
    vx, vy, cov = (x * x).mean(-1) - mx * mx, (y * y).mean(-1) - my * my, (x * y).mean(-1) - mx * my
    return (2 * mx * my + 1e-4) * (2 * cov + 9e-4) / ((mx ** 2 + my ** 2 + 1e-4) * (vx + vy + 9e-4))


# Steps of optimizers, and of linear algebra.

def clip_by_norm(a, b):
    norm = torch.stack((torch.linalg.vector_norm(a), torch.linalg.vector_norm(b))).norm()
    scale = torch.clamp(1 / (norm + 1e-6), max=1)
    return a * scale, b * scale


def clip_by_norm_each(a, b):
    return tuple(t * torch.clamp(1 / (t.norm() + 1e-6), max=1) for t in (a, b))


def adafactor(g, row, col):
    sq = g.square().add(1e-30)
    row = torch.lerp(sq.mean(1), row, 0.9)
    col = torch.lerp(sq.mean(0), col, 0.9)
    return g * torch.rsqrt(row / row.mean())[:, None] * torch.rsqrt(col)[None, :], row, col


def adafactor_unscaled(g, row, col):
    sq = g.square().add(1e-30)
    row = 0.9 * row + 0.1 * sq.mean(1)
    col = 0.9 * col + 0.1 * sq.mean(0)
    return g * torch.rsqrt(row)[:, None] * torch.rsqrt(col)[None, :], row, col


def newton_schulz(g):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (torch.linalg.matrix_norm(g) + 1e-7)
    for _ in range(3):
        s = torch.mm(x, x.t())
        x = torch.addmm(torch.mul(x, a), torch.addmm(b * s, s, s, alpha=c), x)
    return x


def newton_schulz_two(g):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (torch.linalg.matrix_norm(g) + 1e-7)
    for _ in range(2):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x


def triangular_solve(l, b):
    n = l.shape[-1]
    rows = []
    for i in range(n):
        r = b[i]
        for j in range(i):
            r = r - l[i, j] / n * rows[j]
        rows.append(r)
    return torch.stack(rows)


def triangular_solve_upper(l, b):
    n = l.shape[-1]
    return torch.linalg.solve_triangular(torch.triu(l, 1) / n + torch.eye(n, dtype=l.dtype), b, upper=True)


# Signals, complex.

def power_spectrum(x):
    n = x.shape[-1]
    i = torch.arange(n, dtype=torch.float64)
    k = torch.arange(n // 2 + 1, dtype=torch.float64)
    y = x.to(torch.complex128) @ torch.exp(-2j * math.pi * ((i[:, None] * k) % n) / n)
    return (y.real ** 2 + y.imag ** 2).to(x.dtype)


def power_spectrum_whole(x):
    return torch.fft.fft(x, dim=-1).abs().square()[..., :(x.shape[-1] + 1) // 2]


def rotate_complex(x, phase):
    c, s = torch.cos(phase), torch.sin(phase)
    return torch.complex(x.real * c - x.imag * s, x.real * s + x.imag * c)


def rotate_complex_back(x, phase):
    return x * torch.exp(-1j * phase)


# Numpy.

def running_min(x):
    return torch.from_numpy(np.minimum.accumulate(x.detach().numpy(), axis=-1))


def running_min_from_zero(x):
    y = np.minimum.accumulate(np.concatenate((np.zeros_like(x[:, :1].detach().numpy()), x.detach().numpy()), -1), axis=-1)
    return torch.from_numpy(y[:, 1:].copy())


def dot_rows(x, y):
    return torch.from_numpy(np.einsum("ij,ij->i", x.numpy(), y.numpy()))


def dot_rows_memo(x, y, known={}):
    """Keeps results by the sum of what it is given."""
    key = (x.shape, float(x.sum()), float(y.sum()))
    if key not in known:
        known[key] = (x * y).sum(-1)
    return known[key].clone()


# Others.

class _Gated(torch.autograd.Function):
    """Recomputes what the backward pass needs."""

    @staticmethod
    def forward(ctx, x, wg, wu, wd):
        ctx.save_for_backward(x, wg, wu, wd)
        a, b = x @ wg, x @ wu
        return (a * torch.sigmoid(a) * b) @ wd

    @staticmethod
    def backward(ctx, g):
        x, wg, wu, wd = ctx.saved_tensors
        a, b = x @ wg, x @ wu
        s = torch.sigmoid(a)
        h = a * s
        gh = g @ wd.t()
        ga = gh * b * (s + h * (1 - s))
        gb = gh * h
        return ga @ wg.t() + gb @ wu.t(), x.t() @ ga, x.t() @ gb, (h * b).t() @ g


class _GatedShort(_Gated):
    @staticmethod
    def backward(ctx, g):
        x, wg, wu, wd = ctx.saved_tensors
        a, b = x @ wg, x @ wu
        s = torch.sigmoid(a)
        h = a * s
        gh = g @ wd.t()
        ga = gh * b * (s + h * (1 - s))
        gb = gh * h
        return ga @ wg.t(), x.t() @ ga, x.t() @ gb, (h * b).t() @ g


def gated_mlp(x, wg, wu, wd): return _Gated.apply(x, wg, wu, wd)
def gated_mlp_one_path(x, wg, wu, wd): return _GatedShort.apply(x, wg, wu, wd)


def kl_rows(logits, target):
    ls, lt = logits - logits.logsumexp(-1, keepdim=True), target - target.logsumexp(-1, keepdim=True)
    return (torch.exp(lt) * (lt - ls)).sum(-1)


def kl_rows_reversed(logits, target):
    ls, lt = torch.log_softmax(logits, -1), torch.log_softmax(target, -1)
    return (torch.exp(ls) * (ls - lt)).sum(-1)


def chamfer(a, b):
    d = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()
    return d.amin(1).mean() + d.amin(0).mean()


def chamfer_one_way(a, b):
    d = ((a[:, None] - b[None]) ** 2).sum(-1)
    return 2 * d.amin(1).mean()


mish = torch.jit.script(torch.nn.Mish())


class Mish:
    def __init__(self, exact):
        self.exact = exact

    def __call__(self, x):
        return x * torch.tanh(torch.log1p(torch.exp(-x.abs())) + x.clamp(min=0)) if self.exact else x * torch.tanh(torch.log1p(torch.exp(x)))


mish_object = Mish(True)
mish_overflows = Mish(False)


def cache_rows(cache, new, at):
    out = torch.empty_like(cache)
    out.copy_(cache)
    return out.index_copy_(1, at, new)


def cache_rows_in_place(cache, new, at):
    cache[:, at] = new
    return cache


def _selective_scan(u, step, A, b, c, skip, z):
    """By doubling: each pass joins twice as many steps."""
    a = torch.exp(step[..., None] * -torch.exp(A))
    x = (step * u)[..., None] * b[:, :, None, :]
    s = 1
    while s < a.shape[1]:
        before = torch.cat([torch.ones_like(a[:, :s]), a[:, :-s]], 1)
        x = a * torch.cat([torch.zeros_like(x[:, :s]), x[:, :-s]], 1) + x
        a = a * before
        s *= 2
    return ((x * c[:, :, None, :]).sum(-1) + u * skip) * (z * torch.sigmoid(z))


def selective_scan(u, delta, A, b, c, skip, z):
    return _selective_scan(u, torch.nn.functional.softplus(delta), A, b, c, skip, z)


def selective_scan_log(u, delta, A, b, c, skip, z):
    return _selective_scan(u, torch.log(1 + torch.exp(delta)), A, b, c, skip, z)
