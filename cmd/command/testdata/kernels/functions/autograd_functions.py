import torch


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        centred = x - x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
        ctx.save_for_backward(centred * rstd, rstd, weight)
        return centred * rstd * weight + bias

    @classmethod
    def backward(cls, ctx, grad):
        hat, rstd, weight = ctx.saved_tensors
        g = grad * weight
        dx = g - g.mean(-1, keepdim=True) - hat * (g * hat).mean(-1, keepdim=True)
        return dx * rstd, (grad * hat).reshape(-1, weight.numel()).sum(0), grad.reshape(-1, weight.numel()).sum(0)


class LayerNormFast(LayerNorm):
    @classmethod
    def backward(cls, ctx, grad):
        hat, rstd, weight = ctx.saved_tensors
        g = grad * weight
        dx = g - hat * (g * hat).mean(-1, keepdim=True)
        return dx * rstd, (grad * hat).reshape(-1, weight.numel()).sum(0), grad.reshape(-1, weight.numel()).sum(0)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True))


def layer_norm(x, weight, bias):
    return LayerNorm.apply(x, weight, bias)


def layer_norm_fast(x, weight, bias):
    return LayerNormFast.apply(x, weight, bias)


def softmax_rows(x):
    return Softmax.apply(x)
