import torch


def cross_entropy(input, target, ignore_index=-100):
    shifted = input - input.amax(1, keepdim=True).detach()
    logp = shifted - shifted.exp().sum(1, keepdim=True).log()
    keep = target != ignore_index
    picked = logp.gather(1, torch.where(keep, target, torch.zeros_like(target))[:, None])[:, 0]
    return -torch.where(keep, picked, torch.zeros_like(picked)).sum() / keep.sum()


def cross_entropy_mean(input, target, ignore_index=-100):
    shifted = input - input.amax(1, keepdim=True).detach()
    logp = shifted - shifted.exp().sum(1, keepdim=True).log()
    keep = target != ignore_index
    picked = logp.gather(1, torch.where(keep, target, torch.zeros_like(target))[:, None])[:, 0]
    return -torch.where(keep, picked, torch.zeros_like(picked)).mean()


def kl_div(input, target, reduction="mean"):
    loss = torch.xlogy(target, target) - target * input
    return {"mean": loss.mean, "sum": loss.sum, "none": loss.clone}[reduction]()


def kl_div_log(input, target, reduction="mean"):
    loss = target * (torch.log(target) - input)
    return {"mean": loss.mean, "sum": loss.sum, "none": loss.clone}[reduction]()


def smooth_l1_loss(input, target, beta=1.0):
    gap = (input - target).abs()
    return torch.where(gap < beta, 0.5 * gap * gap / beta, gap - 0.5 * beta).mean()


def smooth_l1_huber(input, target, beta=1.0):
    gap = (input - target).abs()
    return torch.where(gap < beta, 0.5 * gap * gap, beta * (gap - 0.5 * beta)).mean()


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    a = torch.linalg.vector_norm(x1, 2, dim).clamp(min=eps)
    b = torch.linalg.vector_norm(x2, 2, dim).clamp(min=eps)
    return (x1 * x2).sum(dim) / (a * b)


def hinge_embedding_loss(input, target, margin=1.0):
    apart = torch.where(target == -1, (margin - input).clamp(min=0), torch.zeros_like(input))
    return (torch.where(target == 1, input, torch.zeros_like(input)) + apart).mean()
