"""In-place methods, operators and item assignment: what they store, what views
see of it, and what gradients become.

A tensor that is changed is first made by a call: a leaf that requires a
gradient cannot be. Both the tensor and the call's result are compared.
"""
import torch
from plumb import *


def fresh(low=-2, high=2):
    """A tensor that may be changed, and on which a gradient depends."""
    return random_tensor(ndim=random(1, 4), dim0=random(1, 5), low=low, high=high) * 1.5


def matrix(rows=4, columns=3, low=-2, high=2):
    return random_tensor(ndim=2, dim0=rows, dim1=columns, low=low, high=high)


def integers(low=-9, high=9):
    return random_tensor(ndim=2, dim0=4, dim1=3, low=low, high=high, dtype=int) + 0


# Names.

@autotest()
def test_relu():
    x = fresh()
    y = x.relu_()
    return x, y


@autotest()
def test_add():
    x = matrix() * 2
    y = x.add_(matrix(), alpha=random(0, 5))
    return x, y


@autotest()
def test_add_number():
    x = fresh()
    return x.add_(1.5), x


@autotest()
def test_sub_mul_div():
    x = matrix() * 2
    x.sub_(matrix(1, 3), alpha=2).mul_(matrix(4, 1)).div_(matrix(4, 3, 1, 2))
    return x


@autotest()
def test_mul_number():
    x = fresh()
    x.mul_(2)
    return x


@autotest()
def test_div_rounding():
    x = fresh()
    x.div_(0.7, rounding_mode=oneof("trunc", "floor"))
    return x


@autotest()
def test_clamp():
    x = fresh()
    return x.clamp_(0, 1), x.clamp_min_(0.25), x.clamp_max_(0.75)


@autotest()
def test_functions():
    x = fresh(0.3, 0.9)
    x.sin_().neg_().exp_()
    return (x + 2).log_().neg_()


@autotest()
def test_functions_by_torch():
    x = fresh(0.3, 0.9)
    torch.square_(x)
    torch.cos_(x)
    torch.sigmoid_(x)
    return x


@autotest()
def test_rounding():
    x = fresh()
    y = x.clone()
    z = x.clone()
    return x.floor_(), y.ceil_(), z.round_(decimals=1)


@autotest()
def test_pow():
    x = fresh(0.5, 2)
    x.pow_(random(1, 4))
    return x


@autotest()
def test_lerp_addcmul_addcdiv():
    x = matrix() * 2
    x.lerp_(matrix(), 0.25).addcmul_(matrix(), matrix(), value=0.5).addcdiv_(matrix(), matrix(4, 3, 1, 2), value=2)
    return x


@autotest()
def test_addmm():
    x = matrix(4, 2) * 2
    x.addmm_(matrix(4, 3), matrix(3, 2), beta=0.5, alpha=2)
    return x


@autotest()
def test_cumsum_cumprod():
    x = matrix() * 2
    return x.cumsum_(0), x.cumprod_(1)


@autotest()
def test_tril_triu():
    x = matrix() * 2
    y = matrix() * 2
    return x.tril_(random(-1, 2)), y.triu_(random(-1, 2))


@autotest()
def test_comparison_keeps_the_dtype():
    x = matrix() * 2
    return x.gt_(0), x.eq_(1)


@autotest()
def test_logical_leaves_the_gradient():
    x = matrix() * 2
    return x.logical_not_()


@autotest(auto_backward=False)
def test_integers():
    x = integers()
    x.add_(3).mul_(2).bitwise_and_(5).fmod_(3)
    return x


@autotest()
def test_fill_and_zero():
    x = fresh()
    y = x * 1
    z = x * 1
    return y.fill_(2.5), z.zero_(), x


@autotest()
def test_fill_with_a_tensor():
    x = matrix() * 2
    v = random_tensor(ndim=0)
    return x.fill_(v)


@autotest()
def test_copy():
    x = matrix() * 2
    return x.copy_(matrix(1, 3)), x


@autotest(auto_backward=False)
def test_copy_converts():
    x = integers()
    return x.copy_(matrix() * 3), x


# Indices.

@autotest()
def test_masked_fill():
    x = matrix() * 2
    return x.masked_fill_(matrix() > 0, random(-3, 3)), x


@autotest()
def test_masked_scatter():
    x = matrix() * 2
    return x.masked_scatter_(matrix() > 0, matrix()), x


@autotest()
def test_scatter():
    x = matrix() * 2
    index = random_tensor(ndim=2, dim0=1, dim1=3, low=0, high=4, dtype=int)
    return x.scatter_(0, index, matrix(1, 3)), x


@autotest()
def test_scatter_add():
    x = matrix() * 2
    index = random_tensor(ndim=2, dim0=4, dim1=3, low=0, high=4, dtype=int)
    return x.scatter_add_(0, index, matrix()), x


@autotest()
def test_index_add():
    x = matrix() * 2
    index = random_tensor(ndim=1, dim0=5, low=0, high=4, dtype=int)
    return x.index_add_(0, index, matrix(5, 3), alpha=2), x


@autotest()
def test_index_fill_and_copy():
    x = matrix() * 2
    x.index_fill_(0, torch.tensor([0, 2]), 1.5)
    x.index_copy_(1, torch.tensor([2, 0]), matrix(4, 2))
    return x


@autotest()
def test_fill_diagonal():
    x = matrix() * 2
    tall = random_tensor(ndim=2, dim0=random(5, 9), dim1=2) * 2
    cube = random_tensor(ndim=3, dim0=3, dim1=3, dim2=3) * 2
    return x.t().fill_diagonal_(0.5), tall.fill_diagonal_(3, wrap=random_bool()), cube.fill_diagonal_(-1), x


@autotest()
def test_index_put():
    x = matrix() * 2
    index = random_tensor(ndim=1, dim0=5, low=0, high=4, dtype=int)
    return x.index_put_((index,), matrix(1, 3), accumulate=True), x


@autotest()
def test_put():
    x = matrix() * 2
    index = random_tensor(ndim=1, dim0=5, low=0, high=12, dtype=int)
    return x.put_(index, random_tensor(ndim=1, dim0=5), accumulate=True), x


# Other views of the same memory.

@autotest()
def test_transposed_in_place():
    x = matrix() * 2
    y = x.t_()
    return x, y, x * 2


@autotest()
def test_shapes_in_place():
    x = matrix() * 2
    x.unsqueeze_(1).transpose_(0, 2)
    z = x.exp()
    x.squeeze_().swapaxes_(0, 1)
    return x, z


@autotest()
def test_view_sees_its_base():
    x = matrix() * 2
    v = x[1:]
    x.mul_(3)
    return v, x


@autotest()
def test_base_sees_its_view():
    x = matrix() * 2
    v = x[1:, ::2]
    v.mul_(matrix(3, 2))
    return v, x


@autotest()
def test_views_see_each_other():
    x = matrix() * 2
    v = x.t()
    w = x.view(12)
    v[0].add_(1)
    w[3:7].zero_()
    return v, w, x


@autotest()
def test_view_of_a_view():
    x = matrix(4, 6) * 2
    v = x.view(4, 2, 3).permute(2, 0, 1)
    w = v.select(0, random(0, 3).to(int).value()).narrow(0, 1, 2)
    w.exp_()
    return v, w, x


@autotest()
def test_view_of_changed_memory():
    x = matrix() * 2
    x[0].add_(1)
    v = x[:2]
    v.mul_(2)
    x.add_(v.sum())
    return v, x


@autotest()
def test_diagonal():
    x = matrix(3, 3) * 2
    d = x.diagonal()
    d.fill_(1.5)
    return d, x


@autotest(auto_backward=False)
def test_chunks():
    x = integers()
    a, b = x.chunk(2)
    a.add_(b)
    return a, b, x


@autotest()
def test_copies_stay():
    x = matrix() * 2
    y = x.clone()
    z = x.t().reshape(-1)
    w = x + 0
    x.zero_()
    return x, y, z, w


@autotest(auto_backward=False)
def test_detached():
    x = matrix() * 2
    d = x.detach()
    d.add_(1)
    return d, x


@autotest(auto_backward="auto")
def test_detach_in_place():
    x = matrix() * 2
    y = x * 3
    x.detach_()
    x.add_(1)
    return y, x


@autotest()
def test_same_object():
    x = matrix() * 2
    y = x.contiguous()
    y.t_()
    return x, y


# Operators.

@autotest()
def test_augmented_arithmetic():
    x = matrix() * 2
    y = x
    x += matrix()
    x -= 1
    x *= matrix(1, 3)
    x /= matrix(4, 3, 1, 2)
    return x, y


@autotest()
def test_augmented_power():
    x = fresh(0.5, 2)
    y = x
    x **= 2
    return x, y


@autotest(auto_backward=False)
def test_augmented_integers():
    x = integers()
    y = x
    x //= 2
    x &= 7
    x |= 8
    x ^= 3
    x <<= 1
    x >>= 2
    x %= 5
    return x, y


@autotest()
def test_augmented_matmul_makes_a_new_tensor():
    x = matrix(3, 3) * 2
    y = x
    x @= matrix(3, 3)
    return x, y


# Item assignment.

@autotest()
def test_set_number():
    x = matrix() * 2
    x[0] = 3
    x[1:, 0] = 1.5
    x[..., -1] = 2
    return x


@autotest()
def test_set_tensor():
    x = matrix() * 2
    x[0] = random_tensor(ndim=1, dim0=3)
    x[1:3] = matrix(1, 3)
    x[:, 1] = random_tensor(ndim=0)
    return x


@autotest()
def test_set_seen_through_views():
    x = matrix() * 2
    v = x.t()
    x[1, ::2] = random_tensor(ndim=1, dim0=2)
    return v, x


@autotest()
def test_set_by_mask():
    x = matrix() * 2
    x[x > 0] = 1.5
    return x


@autotest()
def test_set_by_indices():
    x = matrix() * 2
    index = torch.tensor([2, 0])
    x[index] = matrix(2, 3)
    x[1:, index] = matrix(3, 2)
    x[[0, 3]] = 1
    return x


@autotest(auto_backward=False)
def test_set_converts():
    x = integers()
    x[0] = 2.7
    x[1:] = matrix(3, 3) * 3
    return x


@autotest()
def test_set_in_expanded():
    x = matrix(1, 3) * 2
    x[0, None] = random_tensor(ndim=1, dim0=3)
    return x, x.expand(4, 3)


@autotest()
def test_update_of_a_part():
    x = matrix() * 2
    x[1:3] += matrix(2, 3)
    x[0] *= 2
    return x


# The flag.

@autotest()
def test_flag():
    x = matrix() * 2
    y = torch.nn.functional.relu(x, inplace=True)
    return x, y + 1, y


@autotest()
def test_flag_by_position():
    x = matrix() * 2
    y = torch.nn.functional.leaky_relu(x, 0.1, random_bool())
    return x, y


@autotest()
def test_flag_of_activations():
    x = matrix() * 2
    f = torch.nn.functional
    return f.elu(x * 1, inplace=True), f.silu(x * 1, inplace=True), f.hardtanh(x, inplace=True), x


@autotest(auto_backward=False)
def test_flag_returns_its_argument():
    x = matrix() * 2
    y = torch.nn.functional.relu(x, inplace=True)
    y.add_(1)
    return x, y


@autotest()
def test_module():
    m = torch.nn.ReLU(inplace=True)
    x = matrix() * 2
    y = m(x)
    return x, y


@autotest()
def test_modules_in_a_row():
    linear = torch.nn.Linear(3, 2)
    relu = torch.nn.ReLU(inplace=True)
    hardtanh = torch.nn.Hardtanh(inplace=True)
    return hardtanh(relu(linear(matrix())) * 1.5)


# What is refused: each of these is drawn in a legal form too.

def either():
    return random_bool().value()


@autotest()
def test_leaf():
    x = matrix()
    y = x if either() else x * 1
    y.add_(1)
    return y


@autotest()
def test_view_of_leaf():
    x = matrix()
    y = x if either() else x * 1
    y[1:].zero_()
    return y


@autotest(auto_backward=False, refusals=True)
def test_result_of_another_kind_refused():
    x = integers()
    x.add_(oneof(2, 1.5).value())
    return x


@autotest(refusals=True)
def test_shape_that_would_grow_refused():
    x = matrix(1, 3) * 2
    x.add_(matrix(oneof(1, 4).value(), 3))
    return x


@autotest()
def test_expanded():
    x = matrix(1, 3) * 2
    y = x.expand(4, 3) if either() else x
    y.mul_(2)
    return y


@autotest(refusals=True)
def test_overlap_refused():
    x = random_tensor(ndim=1, dim0=6) * 2
    x[1:].add_(x[:-1] if either() else x[1:])
    return x


@autotest()
def test_several_views():
    x = matrix() * 2
    a, b = x.split(2) if either() else (x[:2], x[2:])
    a.add_(1)
    return x


@autotest(refusals=True)
def test_saved_input_refused():
    x = matrix() * 2
    y = x.sin() if either() else x + 1
    x.add_(1)
    return y


@autotest(refusals=True)
def test_saved_result_refused():
    x = matrix() * 2
    y = x.exp_()
    if either():
        y.mul_(2)
    return y


@autotest(refusals=True)
def test_saved_factor_refused():
    x = matrix() * 2
    x.mul_(x if either() else x.clone())
    return x


@autotest(refusals=True)
def test_saved_through_a_view_refused():
    x = matrix() * 2
    y = x[:1].cos() if either() else x[:1] * 3
    x[2:].add_(1)
    return y


@autotest()
def test_saved_by_shape_change():
    x = matrix() * 2
    y = x.pow(2) if either() else x.mul(3)
    x.t_()
    return y
