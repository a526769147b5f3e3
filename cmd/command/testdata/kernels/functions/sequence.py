import torch


def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    turned = torch.cat([-b, a], -1)
    return x * torch.cat([cos, cos], -1) + turned * torch.cat([sin, sin], -1)


def rotary_pairs(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


def rotary_sign(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos - a * sin], -1)


def swiglu(x, w):
    f = w.shape[1] // 2
    gate, up = x @ w[:, :f], x @ w[:, f:]
    return gate * torch.sigmoid(gate) * up


def swiglu_fused(x, w):
    f = w.shape[1] // 2
    h = x @ w
    return h[..., :f] * torch.sigmoid(h[..., f:]) * h[..., f:]


def int8_linear(x, w, scale):
    return (x @ w.to(x.dtype).transpose(0, 1)) * scale


def int8_linear_packed(x, w, scale):
    top = x.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    step = top / 127
    xq = torch.round(x / step).to(torch.int32)
    return (xq @ w.to(torch.int32).transpose(0, 1)).to(x.dtype) * step * scale


def int8_linear_rowscale(x, w, scale):
    return x @ (w.to(x.dtype) * scale.mean()).transpose(0, 1)


def residual_layer_norm(x, residual, weight, bias):
    h = x + residual
    h = h - h.mean(-1, keepdim=True)
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5) * weight + bias
