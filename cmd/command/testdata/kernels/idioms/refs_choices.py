import torch


def vq_lookup(x, codes):
    return codes[torch.cdist(x, codes, compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)]


def vq_commit(x, codes):
    near = torch.cdist(x, codes, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
    return near, (codes[near] - x).square().mean()


def greedy(x, w):
    return (x @ w.t()).argmax(-1)


def greedy_scored(x, w):
    score, token = torch.log_softmax(x @ w.t(), -1).max(-1)
    return token.to(torch.int32), score


def route(x, w):
    score, expert = torch.softmax(x @ w.t(), -1).topk(2, -1)
    return score / score.sum(-1, keepdim=True), expert


def expert_load(x, w):
    chosen = (x @ w.t()).argmax(-1)
    return torch.bincount(chosen, minlength=w.shape[0]).to(x.dtype)


def rank_rows(x, w):
    return torch.argsort(x @ w, descending=True)


def beam_step(logits, scores):
    b, k, v = logits.shape
    all = torch.log_softmax(logits, -1) + scores[..., None]
    score, at = torch.topk(all.reshape(b, k * v), k, dim=-1)
    return score, at // v, at % v


def cache_append(cache, k, pos):
    cache[torch.arange(cache.shape[0]), pos] = k
    return cache.sum(1)
