import torch


def embedding(input, weight, padding_idx=None):
    rows = weight.index_select(0, input.reshape(-1))
    if padding_idx is not None:
        rows = torch.where(input.reshape(-1, 1) == padding_idx, rows.detach(), rows)
    return rows.reshape(*input.shape, weight.shape[1])


class EmbeddingRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, weight, padding_idx):
        ctx.save_for_backward(ids)
        ctx.rows = weight.shape[0]
        return weight[ids]

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        total = grad.new_zeros(ctx.rows, grad.shape[-1])
        total.index_add_(0, ids.reshape(-1), grad.reshape(-1, grad.shape[-1]))
        return None, total, None


def embedding_rows(input, weight, padding_idx=None):
    return EmbeddingRows.apply(input, weight, padding_idx)


def index_add(input, dim, index, source):
    out = input.movedim(dim, 0).clone()
    rows = source.movedim(dim, 0)
    for k, i in enumerate(index.tolist()):
        out[i] = out[i] + rows[k]
    return out.movedim(0, dim)


def index_add_put(input, dim, index, source):
    out = input.movedim(dim, 0).clone()
    out[index] = out[index] + source.movedim(dim, 0)
    return out.movedim(0, dim)


def gather_rows(input, index):
    columns = torch.arange(index.shape[1]).expand_as(index)
    return input[index, columns]


def tril(input, diagonal=0):
    rows = torch.arange(input.shape[-2])[:, None]
    columns = torch.arange(input.shape[-1])[None, :]
    return torch.where(columns - rows <= diagonal, input, torch.zeros_like(input))


def topk(input, k):
    order = torch.argsort(input, -1, descending=True, stable=True)[..., :k]
    return input.gather(-1, order), order


def topk_padded(input, k, block=32):
    width = input.shape[-1]
    wide = input.new_zeros(*input.shape[:-1], width + -width % block)
    wide[..., :width] = input
    order = torch.argsort(wide, -1, descending=True, stable=True)[..., :k]
    return wide.gather(-1, order), order
