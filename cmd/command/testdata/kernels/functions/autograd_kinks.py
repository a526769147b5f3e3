import torch


class ReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.relu(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x >= 0, grad, torch.zeros_like(grad))


class Amax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim, keepdim):
        values, index = torch.max(x, dim, keepdim=True)
        ctx.save_for_backward(index)
        ctx.shape, ctx.dim, ctx.keepdim = x.shape, dim, keepdim
        return values if keepdim else values.squeeze(dim)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        wide = grad if ctx.keepdim else grad.unsqueeze(ctx.dim)
        return wide.new_zeros(ctx.shape).scatter(ctx.dim, index, wide), None, None


class MSE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.mean((x - y) ** 2)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        d = 2 * (x - y) * grad
        return d, -d


def relu(input):
    return ReLU.apply(input)


def amax(input, dim, keepdim=False):
    return Amax.apply(input, dim, keepdim)


def mse_loss(input, target):
    return MSE.apply(input, target)
