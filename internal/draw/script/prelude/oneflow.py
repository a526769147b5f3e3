# What OneFlow has beside PyTorch's functions, in these.
import torch


def of_slice(input, slice_tup_list):
    return input[tuple([slice(*t) for t in slice_tup_list])]


def of_slice_update(input, update, slice_tup_list):
    index = tuple([slice(*t) for t in slice_tup_list])
    input[index] = update
    return input


def _points(indices):
    return tuple([indices[..., i] for i in range(indices.shape[-1])])


def of_gather_nd(input, index):
    return input[_points(index)]


def of_scatter_nd(index, update, shape):
    return torch.zeros(shape, dtype=update.dtype).index_put(_points(index), update, accumulate=True)


def of_tensor_scatter_nd_update(tensor, indices, updates):
    return tensor.index_put(_points(indices), updates)


def of_batch_gather(input, indices):
    rows = torch.arange(indices.shape[0]).reshape(-1, 1)
    return input[rows, indices]


def of_in_top_k(targets, predictions, k):
    right = torch.gather(predictions, 1, targets.reshape(-1, 1).to(torch.int64))
    return torch.sum((predictions > right).to(torch.int64), 1) < k


def of_nn_functional_sparse_softmax_cross_entropy(labels, logits):
    flat = logits.reshape(-1, logits.shape[-1])
    out = torch.nn.functional.cross_entropy(flat, labels.reshape(-1).to(torch.int64), reduction="none")
    return out.reshape(labels.shape)


of__C_sparse_softmax_cross_entropy = of_nn_functional_sparse_softmax_cross_entropy


def of__C_dropout(input, p=0.5, training=True, inplace=False, generator=None):
    if generator is None:
        return torch.nn.functional.dropout(input, p=p, training=training, inplace=inplace)
    return torch.nn.functional.dropout(input, p=p, training=training, inplace=inplace, generator=generator)


def of__C_matrix_vector_product(input, vec):
    return torch.mv(input, vec)


def of__C_vector_matrix_product(vec, input):
    return torch.matmul(vec, input)


def of__C_sqrt_square_sum(input):
    return torch.sqrt(torch.sum(input * input))


def of_broadcast_like(x, like_tensor, broadcast_axes=None):
    return torch.broadcast_to(x, like_tensor.shape)


def of_matmul(input, other, transpose_a=False, transpose_b=False, alpha=1.0):
    if transpose_a:
        input = input.transpose(-1, -2)
    if transpose_b:
        other = other.transpose(-1, -2)
    out = torch.matmul(input, other)
    return out if alpha == 1.0 else out * alpha


of__C_matmul = of_matmul
