import math
import torch


def adamw_step(p, g, m, v, lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1, step=3):
    """The reference: a step of AdamW as its paper has it."""
    p = p * (1 - lr * weight_decay)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - beta1 ** step)
    v_hat = v / (1 - beta2 ** step)
    return p - lr * m_hat / (v_hat.sqrt() + eps), m, v


def adamw_step_fused(p, g, m, v, lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1, step=3):
    p = p * (1 - lr * weight_decay)
    m = torch.lerp(g, m, beta1)
    v = torch.addcmul(v * beta2, g, g, value=1 - beta2)
    denominator = v.sqrt() / math.sqrt(1 - beta2 ** step) + eps
    return torch.addcdiv(p, m, denominator, value=-lr / (1 - beta1 ** step)), m, v


def adamw_step_eps_inside(p, g, m, v, lr=1e-2, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1, step=3):
    p = p * (1 - lr * weight_decay)
    m = torch.lerp(g, m, beta1)
    v = torch.addcmul(v * beta2, g, g, value=1 - beta2)
    denominator = (v / (1 - beta2 ** step) + eps).sqrt()
    return torch.addcdiv(p, m, denominator, value=-lr / (1 - beta1 ** step)), m, v


def momentum_step_(p, g, buffer):
    """The reference, in place."""
    buffer.mul_(0.9).add_(g)
    p.add_(buffer, alpha=-0.01)
    return p


def momentum_step_foreach_(p, g, buffer):
    torch._foreach_mul_([buffer], 0.9)
    torch._foreach_add_([buffer], [g])
    torch._foreach_add_([p], [buffer], alpha=-0.01)
    return p


def momentum_step_kept_(p, g, buffer):
    p.sub_(0.01 * (0.9 * buffer + g))
    return p
