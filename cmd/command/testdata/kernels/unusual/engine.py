"""Parts of an engine in plain PyTorch: grouped heads, quantisation, an average that moves, a ring."""
import torch


def grouped_scores(q, k):
    g = q.shape[1] // k.shape[1]
    return torch.einsum("bhsd,bhtd->bhst", q, k.repeat_interleave(g, 1)) * q.shape[-1] ** -0.5


def grouped_scores_folded(q, k):
    b, h, s, d = q.shape
    q = (q * d ** -0.5).reshape(b, k.shape[1], -1, s, d)
    return (q @ k.unsqueeze(2).mT).reshape(b, h, s, -1)


def grouped_scores_interleaved(q, k):
    """Head h reads key h % groups: right for one group alone."""
    g = q.shape[1] // k.shape[1]
    return torch.einsum("bhsd,bhtd->bhst", q, k.repeat(1, g, 1, 1)) * q.shape[-1] ** -0.5


def quantise(x):
    scale = (x.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-8)
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def quantise_up(x):
    """Halves go up, not to even."""
    scale = (x.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-8)
    return (x / scale + 0.5).floor().clamp(-128, 127).to(torch.int8), scale


def quantise_toward_zero(x):
    scale = (x.abs().amax(-1, keepdim=True) / 127).clamp_min(1e-8)
    return (x / scale).clamp(-128, 127).to(torch.int8), scale


def moving_average(x):
    n = x.shape[1]
    t = torch.arange(n, device=x.device, dtype=x.dtype)
    w = torch.where(t[:, None] >= t, 0.1 * 0.9 ** (t[:, None] - t), 0.0)
    return x @ w.t()


def moving_average_from_first(x):
    """The average begins at the first element, not at 0."""
    h, out = x[:, 0], []
    for t in range(x.shape[1]):
        h = 0.9 * h + 0.1 * x[:, t]
        out.append(h)
    return torch.stack(out, 1)


def ring_write(ring, new, position):
    out = ring.clone()
    out[torch.arange(len(out)), position % ring.shape[1]] = new
    return out


def ring_write_clamped(ring, new, position):
    """What is beyond the end goes to the last place."""
    out = ring.clone()
    out[torch.arange(len(out)), position.clamp(max=ring.shape[1] - 1)] = new
    return out


def softmax_first_block(x):
    """The maximum is that of the first 128 elements."""
    e = (x - x[..., :128].amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def hinge_pairs_twice(x):
    """Each pair once and doubled, without the diagonal."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return 2 * torch.relu(1 - (x[:, i] - x[:, j]).abs()).sum(1) + x.shape[1]


def hinge_pairs_no_diagonal(x):
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return 2 * torch.relu(1 - (x[:, i] - x[:, j]).abs()).sum(1)


def gelu_bias(x, b):
    """Its gradient is PyTorch's own, which 1.13 never writes for a transposed cotangent."""
    return torch.nn.functional.gelu(x + b)
