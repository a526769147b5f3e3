import torch
import torch.nn.functional as F


def cumsum(input, dim):
    out, step, n = input.clone(), 1, input.shape[dim]
    while step < n:
        head = out.narrow(dim, 0, step)
        tail = out.narrow(dim, step, n - step) + out.narrow(dim, 0, n - step)
        out = torch.cat([head, tail], dim)
        step *= 2
    return out


def cumsum_blocked(input, dim, block=64):
    x = input.movedim(dim, -1)
    n = x.shape[-1]
    padded = F.pad(x, (0, -n % block))
    parts = padded.reshape(*x.shape[:-1], -1, block).cumsum(-1)
    return parts.reshape(padded.shape)[..., :n].movedim(-1, dim)


def cumsum_exclusive(input, dim):
    total = torch.cumsum(input, dim)
    return total - input


def cumprod(input, dim):
    steps, running = [], None
    for part in input.unbind(dim):
        running = part if running is None else running * part
        steps.append(running)
    return torch.stack(steps, dim)


class CumProd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        out = torch.cumprod(x, dim)
        ctx.save_for_backward(x, out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        rest = (grad * out).flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim)
        return rest / x, None


def cumprod_grad(input, dim):
    return CumProd.apply(input, dim)
