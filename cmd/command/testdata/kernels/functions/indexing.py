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


def index_add(input, index, source):
    out = input.clone()
    for k, i in enumerate(index.tolist()):
        out[i] = out[i] + source[k]
    return out


def index_add_put(input, index, source):
    out = input.clone()
    out[index] = out[index] + source
    return out
