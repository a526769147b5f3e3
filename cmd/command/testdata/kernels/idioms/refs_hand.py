import torch
import torch.nn.functional as F

def rms_norm(x, w): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w
def layer_norm(x, w, b): return F.layer_norm(x, (x.shape[-1],), w, b, 1e-5)
def huber(x, y): return F.huber_loss(x, y)
def bias_gelu(x, b): return F.gelu(x + b)
def logsumexp(x): return torch.logsumexp(x, -1)
def scale_rows(x, s): return x * s[:, None]
def std_rows(x): return x.std(-1)
def index_add(x, i, v): return x.index_add(0, i, v)
def top1(x): return x.max(-1)
def cross_entropy(x, t): return F.cross_entropy(x, t)
def dist(a, b): return torch.cdist(a, b)
def max_pool(x): return F.max_pool1d(x, 3, 2, 1)


def centre(x):
    return x - x.mean(-1, keepdim=True)
