"""References of libraries_triton.py and formulas.py, by PyTorch's own functions."""
import torch
import torch.nn.functional as F


def kl_div(logp, logq): return F.kl_div(logp, logq, reduction="batchmean", log_target=True)
def geglu(a, b): return F.gelu(a, approximate="tanh") * b
def expert_linear(x, w, ids): return torch.bmm(x[:, None], w[ids])[:, 0]
def row_max(x): return x.amax(-1)
def column_sums(x): return x.sum(0)
def inclusive_sum(x): return torch.cumsum(x, 0)
def group_norm_silu(x, w, b): return F.silu(F.group_norm(x, 4, w, b, 1e-5))
def softmax_backward(dy, y): return y * (dy - (dy * y).sum(-1, keepdim=True))
def log_softmax_middle(x): return F.log_softmax(x, 1)
def gemv(a, x): return a @ x


def paged_decode(q, k, v, table):
    k, v = (c[table].flatten(1, 2).transpose(1, 2) for c in (k, v))
    p = torch.softmax((q[:, :, None] @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5, -1)
    return (p @ v)[:, :, 0]


def pixel_shuffle(x): return F.pixel_shuffle(x, 2)
def group_dequant(w, s): return (w.float().unflatten(1, (-1, 8)) * s[:, :, None]).flatten(1)


def wkv(w, u, k, v):
    """RWKV-4, as its formula has it."""
    T = k.shape[1]
    out = []
    for t in range(T):
        e = [torch.exp(k[:, i] + w * (t - 1 - i)) for i in range(t)] + [torch.exp(u + k[:, t])]
        out.append(sum(x * v[:, i] for i, x in enumerate(e)) / sum(e))
    return torch.stack(out, 1)


def running_max(x): return torch.cummax(x, -1).values
def reflect(x): return F.pad(x, (3, 3), mode="reflect")
def upsample(x): return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
def cosine(x, y): return F.cosine_similarity(x, y, -1)
def huber(x, y): return F.huber_loss(x, y, delta=0.5)
def blend(x, y, m): return torch.lerp(x, y, m)


def rope_neox(x, cos, sin):
    a, b = x.chunk(2, -1)
    cos, sin = cos.detach(), sin.detach()  # tables
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def router(x, w):
    p = torch.softmax((x @ w.t()).float(), -1)
    v, i = torch.topk(p, 2, -1)
    return v / v.sum(-1, keepdim=True), i


def log_cosh(x, y): return (F.softplus(-2 * (x - y)) + (x - y) - 0.6931471805599453).mean()
def elu(x): return F.elu(x)
def gru_cell(x, h, wi, wh, bi, bh): return torch.gru_cell(x, h, wi, wh, bi, bh)
def lstm_cell(x, h, c, wi, wh): return torch.lstm_cell(x, (h, c), wi, wh)
def weight_norm_linear(x, v, g): return F.linear(x, torch._weight_norm(v, g, 0))


def rotary_complex(x, angle):
    a, b = x[..., ::2], x[..., 1::2]
    c, s = angle.cos(), angle.sin()
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


def response_norm(x): return F.local_response_norm(x, 5)


def contrastive(a, b):
    z = F.normalize(torch.cat([a, b]), dim=-1)
    s = z @ z.t() / 0.5
    s = s.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(a)
    return F.cross_entropy(s, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def smooth_ce(x, t): return F.cross_entropy(x, t, label_smoothing=0.1)


def geglu_halves(x):
    a, b = x.chunk(2, -1)
    return (a.float() * F.gelu(b.float())).to(x.dtype)
