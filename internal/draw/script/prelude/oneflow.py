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


of_Tensor_broadcast_like = of_broadcast_like


def of__C_reshape_like(x, like):
    return torch.reshape(x, like.shape)


def of__C_square_relu(x):
    return torch.square(torch.relu(x))


def _filled(input, other):
    return other if isinstance(other, torch.Tensor) else torch.full_like(input, other)


def of_logical_and(input, other):
    return torch.logical_and(input, _filled(input, other))


def of_logical_or(input, other):
    return torch.logical_or(input, _filled(input, other))


def of_logical_xor(input, other):
    return torch.logical_xor(input, _filled(input, other))


def of_nms(boxes, scores, iou_threshold):
    n = boxes.shape[0]
    order = torch.argsort(scores, descending=True)
    at = boxes[order]
    low = torch.maximum(at[:, None, :2], at[None, :, :2])
    high = torch.minimum(at[:, None, 2:], at[None, :, 2:])
    common = torch.prod(torch.clamp(high - low, min=0), 2)
    area = torch.prod(at[:, 2:] - at[:, :2], 1)
    over = common / (area[:, None] + area[None, :] - common) > iou_threshold
    over = torch.triu(over.to(torch.int64), 1)
    dropped = torch.zeros(n, dtype=torch.int64)
    for i in range(n - 1):
        dropped = torch.maximum(dropped, over[i] * (1 - dropped[i]))
    return order[torch.nonzero(dropped == 0).flatten()]


def _bounds(input, formula, scheme, per_layer):
    flat = input.reshape(1 if per_layer else input.shape[0], -1)
    if formula == "google" and scheme == "affine":
        return torch.amax(flat, 1), torch.amin(flat, 1)
    most = torch.amax(torch.abs(flat), 1)
    return most, most


def _scale_of(most, least, formula, bits, scheme):
    if formula == "cambricon":
        return torch.floor(torch.log2(most)) - (bits - 2), torch.zeros_like(most)
    if scheme == "symmetric":
        return most / (2.0 ** (bits - 1) - 1), torch.zeros_like(most)
    scale = (most - least) / (2.0 ** bits - 1)
    return scale, -torch.round(least / scale)


def _levels(input, scale, zero_point, formula, bits, scheme):
    if scale.shape[0] > 1:
        shape = [-1] + [1] * (input.dim() - 1)
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    high = 2 ** (bits - 1) - 1
    low = -high - 1
    if formula == "cambricon":
        scale, low = torch.pow(2.0, scale), -high
    elif scheme == "affine":
        low, high = 0, 2 ** bits - 1
    return torch.clamp(torch.round(input / scale + zero_point), low, high), scale, zero_point


class of_nn_MinMaxObserver(torch.nn.Module):
    def __init__(self, quantization_formula="google", quantization_bit=8, quantization_scheme="symmetric", per_layer_quantization=True):
        super().__init__()
        self.quantization = (quantization_formula, quantization_bit, quantization_scheme)
        self.per_layer_quantization = per_layer_quantization

    def forward(self, input):
        formula, bits, scheme = self.quantization
        with torch.no_grad():
            most, least = _bounds(input, formula, scheme, self.per_layer_quantization)
            return _scale_of(most, least, formula, bits, scheme)


class of_nn_MovingAverageMinMaxObserver(torch.nn.Module):
    def __init__(self, stop_update_after_iters=1, quantization_formula="google", quantization_bit=8, quantization_scheme="symmetric", momentum=0.95):
        super().__init__()
        self.quantization = (quantization_formula, quantization_bit, quantization_scheme)
        self.stop_update_after_iters = stop_update_after_iters
        self.momentum = momentum
        self.register_buffer("moving_max", torch.zeros(1))
        self.register_buffer("moving_min", torch.zeros(1))

    def reset_running_stats(self):
        self.moving_max.fill_(0)
        self.moving_min.fill_(0)

    def forward(self, input, current_train_step):
        formula, bits, scheme = self.quantization
        with torch.no_grad():
            if self.training and current_train_step.item() <= self.stop_update_after_iters:
                for moving, now in zip((self.moving_max, self.moving_min), _bounds(input, formula, scheme, True)):
                    mean = moving * self.momentum + now * (1 - self.momentum)
                    moving.copy_(torch.where(moving == 0, now, mean))
            return _scale_of(self.moving_max, self.moving_min, formula, bits, scheme)


class of_nn_Quantization(torch.nn.Module):
    def __init__(self, quantization_formula="google", quantization_bit=8, quantization_scheme="symmetric"):
        super().__init__()
        self.quantization = (quantization_formula, quantization_bit, quantization_scheme)

    def forward(self, input, scale, zero_point):
        return _levels(input, scale, zero_point, *self.quantization)[0]


class of_nn_FakeQuantization(torch.nn.Module):
    def __init__(self, quantization_formula="google", quantization_bit=8, quantization_scheme="symmetric"):
        super().__init__()
        self.quantization = (quantization_formula, quantization_bit, quantization_scheme)

    def forward(self, input, scale, zero_point):
        with torch.no_grad():
            levels, scale, zero_point = _levels(input, scale, zero_point, *self.quantization)
            moved = (levels - zero_point) * scale - input
        return input + moved


def of_matmul(input, other, transpose_a=False, transpose_b=False, alpha=1.0):
    if transpose_a:
        input = input.transpose(-1, -2)
    if transpose_b:
        other = other.transpose(-1, -2)
    out = torch.matmul(input, other)
    return out if alpha == 1.0 else out * alpha


of__C_matmul = of_matmul


class of_nn_CombinedMarginLoss(torch.nn.Module):
    def __init__(self, m1=1.0, m2=0.0, m3=0.0):
        super().__init__()
        self.margins = (m1, m2, m3)

    def forward(self, x, label):
        m1, m2, m3 = self.margins
        right = torch.arange(x.shape[1]).to(label.dtype) == label.reshape(-1, 1)
        moved = x
        if m1 != 1.0 or m2 != 0.0:
            moved = torch.cos(torch.acos(torch.where(right, x, torch.zeros_like(x))) * m1 + m2)
        return torch.where(right, moved - m3, x)
