import torch


def matmul_rows(a, b):
    return torch.stack([(row[:, None] * b).sum(0) for row in a])


def bmm(input, mat2):
    return (input[:, :, :, None] * mat2[:, None, :, :]).sum(2)


def bmm_half(input, mat2):
    out = torch.zeros(input.shape[0], input.shape[1], mat2.shape[2], dtype=input.dtype)
    for k in range(input.shape[2]):
        out += input[:, :, k, None] * mat2[:, k, None, :]
    return out


def bmm_low(input, mat2):
    product = input.to(torch.bfloat16) @ mat2.to(torch.bfloat16)
    return product.to(input.dtype)


def baddbmm(input, batch1, batch2, beta=1, alpha=1):
    product = alpha * torch.bmm(batch1, batch2)
    return product if beta == 0 else beta * input + product


def baddbmm_always(input, batch1, batch2, beta=1, alpha=1):
    return beta * input + alpha * torch.bmm(batch1, batch2)


def cdist(x1, x2):
    return torch.linalg.vector_norm(x1[:, None] - x2[None], 2, -1)


def cdist_expanded(x1, x2):
    square = x1.square().sum(-1)[:, None] + x2.square().sum(-1)[None] - 2 * x1 @ x2.T
    return square.clamp(min=0).sqrt()


def outer(input, vec2):
    return input[:, None] * vec2[None, :]


def scale_columns(x, scale):
    return x * scale


def channel_scale(x, scale):
    return x * scale.reshape(-1, 1, 1)
