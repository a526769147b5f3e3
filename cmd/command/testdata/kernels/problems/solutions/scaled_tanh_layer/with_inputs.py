import torch, torch.nn as nn
class ScaledTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, g):
        t = torch.tanh(torch.einsum('bi,oi->bo', x, w))
        ctx.save_for_backward(x, w, g, t)
        return t * g
    @staticmethod
    def backward(ctx, d):
        x, w, g, t = ctx.saved_tensors
        h = d * g * (1 - t * t)
        return (h @ w, h.t() @ x, (d * t).sum(0)) if ctx.needs_input_grad[0] else (None, None, (d * t).sum(0))
class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.w = nn.Parameter(torch.randn(outputs, inputs) / inputs ** 0.5)
        self.g = nn.Parameter(torch.ones(outputs))
    def forward(self, x):
        return ScaledTanh.apply(x, self.w, self.g)
