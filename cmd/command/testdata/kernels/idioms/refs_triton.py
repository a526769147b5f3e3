import torch
import torch.nn.functional as F

def rms_norm(x, w): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w
def linear_recurrence(a, x):
    h = torch.zeros_like(x[:, 0]); out = []
    for t in range(x.shape[1]):
        h = a[:, t] * h + x[:, t]; out.append(h)
    return torch.stack(out, 1)
def retention(q, k, v):
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    i = torch.arange(q.shape[-2], device=q.device)
    d = (i[:, None] - i[None, :])
    g = torch.where(d >= 0, torch.pow(torch.tensor(0.9, dtype=q.dtype), d.clamp(min=0).to(q.dtype)), torch.zeros((), dtype=q.dtype))
    return (s * g) @ v
def tanh_mish(x): return x * torch.tanh(F.softplus(x))
def l2norm(x): return x / torch.sqrt((x * x).sum(-1, keepdim=True) + 1e-6)
def chunk_cumsum(x):
    B, T, D = x.shape
    return torch.cumsum(x, 1)
def argmax(x): return torch.argmax(x, -1)
def tanh_sum(x, b): return torch.tanh(x + b)
def var_mean(x): return torch.var(x, -1, unbiased=False), x.mean(-1)


def feed_forward(x, up, scale, down):
    return (torch.relu(x @ up).square() * scale) @ down


def squared_relu(x):
    return torch.relu(x).square()
