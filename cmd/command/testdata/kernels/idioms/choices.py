"""Kernels that choose by what they compute: of elements that rounding may order otherwise."""
import torch


def distances(x, codes):
    return (x[:, None] - codes[None]).square().sum(-1)


def vq_lookup(x, codes):
    return codes.index_select(0, distances(x, codes).argmin(1))


def vq_lookup_short(x, codes):
    """The last dimension does not count."""
    return codes.index_select(0, distances(x[:, :-1], codes[:, :-1]).argmin(1))


def vq_lookup_second(x, codes):
    """The second nearest of those that are nearly as near, to a thousandth."""
    d = distances(x, codes)
    least = d.amin(1, keepdim=True)
    last = d.shape[1] - 1 - (d.flip(1) <= least * 1.001).int().argmax(1)
    return codes.index_select(0, last)


def vq_commit(x, codes):
    near = distances(x, codes).argmin(1)
    off = torch.nn.functional.embedding(near, codes) - x
    return near, (off * off).sum() / off.numel()


def vq_commit_detached(x, codes):
    near = distances(x, codes).argmin(1)
    off = codes.detach()[near] - x
    return near, (off * off).sum() / off.numel()


def greedy(x, w):
    best = x.new_full(x.shape[:1], -torch.inf)
    at = torch.zeros(x.shape[0], dtype=torch.int64)
    for c in range(0, w.shape[0], 32):
        v, k = torch.mm(x, w[c:c + 32].t()).max(1)
        at = torch.where((v > best) | v.isnan() & ~best.isnan(), k + c, at)
        best = torch.where(best.isnan(), best, torch.maximum(best, v))
    return at


def greedy_last(x, w):
    """Of equal ones the last."""
    s = x @ w.t()
    return s.shape[1] - 1 - s.flip(1).argmax(1)


def greedy_half(x, w):
    return (x.bfloat16() @ w.bfloat16().t()).argmax(1)


def greedy_scored(x, w):
    s = x @ w.t()
    m, at = s.max(1)
    return at.int(), m - s.logsumexp(1)


def greedy_scored_logit(x, w):
    m, at = (x @ w.t()).max(1)
    return at.int(), m


def route(x, w):
    s, expert = torch.mm(x, w.t()).topk(2, 1)
    return torch.softmax(s, 1), expert


def route_doubled(x, w):
    """The first one twice, where the second is nearly as good."""
    s, expert = torch.mm(x, w.t()).topk(2, 1)
    close = s[:, 0] - s[:, 1] < 1e-3
    expert[close, 1] = expert[close, 0]
    return torch.softmax(s, 1), expert


def expert_load(x, w):
    at = (x[:, None] * w[None]).sum(-1).argmax(1)
    return torch.nn.functional.one_hot(at, w.shape[0]).sum(0).to(x.dtype)


def expert_load_second(x, w):
    at = (x[:, None] * w[None]).sum(-1).topk(2, 1).indices
    return torch.nn.functional.one_hot(at[:, 1], w.shape[0]).sum(0).to(x.dtype)


def rank_rows(x, w):
    return torch.sort((x[:, None] * w.t()[None]).sum(-1), descending=True).indices


def rank_rows_rounded(x, w):
    return torch.sort((x @ w * 64).round(), stable=True, descending=True).indices


def beam_step(logits, scores):
    k, v = logits.shape[1:]
    all = logits - logits.logsumexp(-1, keepdim=True) + scores[:, :, None]
    score, at = all.flatten(1).sort(dim=-1, descending=True)
    score, at = score[:, :k], at[:, :k]
    return score, torch.div(at, v, rounding_mode="floor"), at.remainder(v)


def beam_step_swapped(logits, scores):
    k, v = logits.shape[1:]
    all = logits - logits.logsumexp(-1, keepdim=True) + scores[:, :, None]
    score, at = all.flatten(1).topk(k, -1)
    return score, torch.div(at, k, rounding_mode="floor"), at.remainder(v)


def cache_append(cache, k, pos):
    b, s, d = cache.shape
    cache.scatter_(1, pos[:, None, None].expand(b, 1, d), k[:, None])
    return cache.sum(1)


def cache_append_copy(cache, k, pos):
    b, s, d = cache.shape
    return cache.scatter(1, pos[:, None, None].expand(b, 1, d), k[:, None]).sum(1)
