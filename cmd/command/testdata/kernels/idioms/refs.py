import torch
import torch.nn.functional as F

def masked_dropout(x, keep, p):
    return torch.where(keep, x / (1 - p), torch.zeros_like(x))

def bincount16(x):
    return (x[:, None] == torch.arange(16)).sum(0)

def int4_matmul(x, packed, scale):
    # packed: int32[K/8, N], eight nibbles along K; zero point 8
    shifts = torch.arange(8, dtype=torch.int32) * 4
    w = (packed[:, None, :] >> shifts[None, :, None]) & 15
    w = w.reshape(-1, packed.shape[1]) - 8
    return x @ (w.to(x.dtype) * scale)

def selective_scan(u, delta, A, B, C):
    # u, delta: [T, D]; A: [D, N]; B, C: [T, N]
    h = torch.zeros_like(A)
    out = []
    for t in range(u.shape[0]):
        h = torch.exp(delta[t][:, None] * A) * h + (delta[t] * u[t])[:, None] * B[t][None]
        out.append((h * C[t][None]).sum(-1))
    return torch.stack(out)

def layer_norm(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b, 1e-5)

def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

def matmul_leaky(a, b):
    return F.leaky_relu(a @ b, 0.01)

def matmul(a, b):
    return a @ b

def softmax(x):
    return torch.softmax(x, -1)

def attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v

def causal(q, k, v):
    s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    mask = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    return torch.softmax(s.masked_fill(~mask, float("-inf")), -1) @ v

def gqa(q, k, v):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    return attention(q, k, v)

def sort_rows(x):
    return torch.sort(x, -1).values

def argmax_rows(x):
    return torch.argmax(x, -1)

def label_smoothing(x, t):
    return F.cross_entropy(x, t, label_smoothing=0.1)

def nll(x, t):
    return F.cross_entropy(x, t)

def nll_ignore(x, t):
    return F.cross_entropy(x, t, ignore_index=0)

def revcumsum(x):
    return x.flip(-1).cumsum(-1).flip(-1)

def embedding(w, i):
    return w[i]

def silu_group_norm(x, w, b):
    return F.silu(F.group_norm(x, 2, w, b))

def quant_rows(x):
    s = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return torch.round(x / s).clamp(-128, 127).to(torch.int8), s

def masked_softmax(x, mask):
    return torch.softmax(x.masked_fill(~mask, float("-inf")), -1)

def var_rows(x):
    return x.var(-1, unbiased=False)

def total(x):
    return x.sum()

def absmax(x):
    return x.abs().max()

def maxpool2(x):
    return F.max_pool2d(x, 2)

def conv2d(x, w):
    return F.conv2d(x, w, padding=1)

def conv3x3_stride(x, w):
    return F.conv2d(x, w, padding=1, stride=2)

def add(x, y):
    return x + y

def geglu(a, b):
    return F.gelu(a) * b

def swiglu(a, b):
    return F.silu(a) * b

def bias_dropout_add(x, bias, res):
    return res + (x + bias)

def relu2(x):
    return F.relu(x) ** 2

def lerp(a, b, t):
    return a + (b - a) * t

def cummax_values(x):
    return torch.cummax(x, -1).values

def l2norm(x):
    return F.normalize(x, dim=-1)

def dequant(w, scale):
    return w.to(scale.dtype) * scale[:, None]

def moe_gate(x):
    p = torch.softmax(x, -1)
    v, i = p.topk(2, -1)
    return v / v.sum(-1, keepdim=True), i

def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

def alibi(x):
    n = x.shape[-1]
    i = torch.arange(n, dtype=x.dtype)
    return torch.softmax(x - 0.5 * (i[:, None] - i[None]).abs(), -1)

def tv(x):
    return (x[:, 1:] - x[:, :-1]).abs().sum(-1)

def pairwise_l1(x, y):
    return (x[:, None] - y[None]).abs().sum(-1)

def poly_grad(x):
    return x ** 3 - 2 * x

def gelu(x):
    return F.gelu(x)

def softcap(x):
    return 30 * torch.tanh(x / 30)

def mean_pool(x, mask):
    m = mask.to(x.dtype)[..., None]
    return (x * m).sum(1) / m.sum(1).clamp(min=1)
def cosine(x, y):
    return F.cosine_similarity(x, y, dim=-1)
def kl(p, q):
    return F.kl_div(torch.log_softmax(p, -1), torch.softmax(q, -1), reduction="batchmean")
def unfold_sum(x):
    return F.avg_pool1d(x[:, None], 3, 1, 1)[:, 0]


def norm_and_scale(x):
    r = torch.rsqrt(x.pow(2).mean(-1) + 1e-6)
    return x * r[..., None], r


def conjugate_product(a, b):
    return a * b.conj()
