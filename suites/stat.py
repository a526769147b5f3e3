"""Extremes, products, counts, moments, norms, distances and order statistics.

A dimension is drawn below the number of dimensions, so that no case is out of
range. Where PyTorch leaves open which of several equal elements an index
names, the values alone are compared.
"""
import torch
from plumb import *


def tensor_of(low=-2, high=2):
    return random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=low, high=high)


def integers():
    return random_tensor(ndim=random(0, 4), dim0=random(1, 6), low=-4, high=4, dtype=int)


@autotest()
def test_amax():
    return torch.amax(tensor_of()), tensor_of().amax()


@autotest()
def test_amax_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.amax(x, dim=random(-ndim, ndim).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_amax_dims():
    x = random_tensor(ndim=4, dim0=random(1, 6))
    return x.amax(oneof((0, 1), (1, 3), (-1, 0), (0, 1, 2, 3)), random_bool())


@autotest()
def test_amin():
    return torch.amin(tensor_of()), tensor_of().amin()


@autotest()
def test_amin_dims():
    x = random_tensor(ndim=4, dim0=random(1, 6))
    return torch.amin(x, dim=oneof((0, 1), (1, 3), (-1, 0), 2), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_extreme_int():
    x = integers()
    return x.amax(), torch.amin(x), x.min(), torch.aminmax(x)


@autotest()
def test_min():
    return torch.min(tensor_of())


@autotest(auto_backward="auto")
def test_min_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.min(x, dim=random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest()
def test_min_dim_values():
    return random_tensor(ndim=3, dim0=random(1, 6)).min(oneof(0, 1, 2, -1)).values


@autotest(auto_backward=False)
def test_argmax():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6), requires_grad=False)
    return x.argmax(), torch.argmax(x, dim=random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_argmin():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6), requires_grad=False)
    return torch.argmin(x), x.argmin(dim=random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_arg_int():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-9, high=9, dtype=int)
    return x.argmax(1), x.argmin(-1, True), torch.argmax(x.transpose(0, 2))


@autotest(auto_backward=False)
def test_aminmax():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6), dtype=torch.float32 | constant(torch.float64), requires_grad=False)
    return torch.aminmax(x), x.aminmax(dim=random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest()
def test_prod():
    # PyTorch 1.13 has no product of half types
    return torch.prod(random_tensor(ndim=random(0, 4), dim0=random(1, 4), dtype=torch.float32 | constant(torch.float64)))


@autotest()
def test_prod_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6), dtype=torch.float32 | constant(torch.float64))
    return x.prod(random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_prod_int():
    x = integers()
    return x.prod(), torch.prod(x, dtype=oneof(torch.int32, torch.float32, torch.float64))


@autotest(auto_backward=False)
def test_all():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 4), low=-1, high=2, dtype=oneof(int, float, torch.bool, torch.uint8), requires_grad=False)
    return torch.all(x), x.all(random(-ndim, ndim)), torch.all(x, dim=0, keepdim=random_bool())


@autotest(auto_backward=False)
def test_any():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 4), low=-1, high=2, dtype=oneof(int, float, torch.bool, torch.uint8), requires_grad=False)
    return torch.any(x), x.any(random(-ndim, ndim)), torch.any(x, dim=0, keepdim=random_bool())


@autotest(auto_backward=False)
def test_count_nonzero():
    x = random_tensor(ndim=3, dim0=random(1, 5), low=-2, high=3, dtype=oneof(int, float, torch.bool), requires_grad=False)
    return torch.count_nonzero(x), x.count_nonzero(oneof(0, -1, (0, 2), (1,)))


@autotest()
def test_nansum():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6), low=-2, high=2)
    x = torch.where(x > 1, float("nan"), x)
    return x.nansum(), torch.nansum(x, dim=random(-ndim, ndim).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_nanmean():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6), low=-2, high=2)
    x = torch.where(x > 1, float("nan"), x)
    return x.nanmean(), torch.nanmean(x, dim=random(-ndim, ndim).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_var():
    x = random_tensor(ndim=random(1, 5), dim0=random(2, 6))
    return torch.var(x), x.var(unbiased=random_bool())


@autotest()
def test_var_dim():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    return torch.var(x, oneof(0, -1, (0, 2), (1,)), unbiased=random_bool(), keepdim=random_bool() | nothing())


@autotest()
def test_var_correction():
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=random(4, 8))
    return torch.var(x, dim=oneof(0, 1, None), correction=random(0, 3).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_std():
    x = random_tensor(ndim=random(1, 5), dim0=random(2, 6))
    return x.std(), torch.std(x, random_bool())


@autotest()
def test_std_dim():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    return x.std(oneof(0, -1, (0, 2), (1,)), random_bool(), random_bool())


@autotest()
def test_std_correction():
    x = random_tensor(ndim=2, dim0=random(4, 8), dim1=random(4, 8))
    return x.std(dim=oneof(0, 1, (0, 1)), correction=random(0, 3).to(int))


@autotest()
def test_var_mean():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    v, m = torch.var_mean(x, oneof(0, -1, (0, 2)), unbiased=random_bool())
    return v, m


@autotest()
def test_std_mean():
    x = random_tensor(ndim=3, dim0=random(2, 6), dim1=random(2, 6), dim2=random(2, 6))
    s, m = torch.std_mean(x, dim=oneof(0, -1, (0, 2)), correction=random(0, 2).to(int), keepdim=random_bool())
    return s, m


@autotest()
def test_logsumexp():
    x = random_tensor(ndim=3, dim0=random(1, 6), low=-9, high=9)
    return torch.logsumexp(x, dim=oneof(0, 1, -1, (0, 2), (0, 1, 2)), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_logsumexp_int():
    return random_tensor(ndim=2, dim0=random(1, 6), low=-9, high=9, dtype=int).logsumexp(0)


@autotest()
def test_norm():
    x = random_tensor(ndim=random(0, 4), dim0=random(1, 6))
    return torch.norm(x), x.norm(), torch.norm(x, p=oneof(1, 2, 3, 0.5, 1.5, float("inf")))


@autotest()
def test_norm_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    p = oneof(0, 1, 2, 2.5, float("inf"), -float("inf"), "fro")
    return torch.norm(x, p=p, dim=random(-ndim, ndim).to(int), keepdim=random_bool() | nothing())


@autotest()
def test_norm_dims():
    # PyTorch 1.13 has a NaN gradient where 'fro' over two dimensions is 0
    x = random_tensor(ndim=4, dim0=random(1, 5), low=1, high=4)
    return x.norm(oneof(1, 2, "fro", 3.0), oneof((0, 1), (1, 3), (-1, 0)), random_bool())


@autotest()
def test_norm_dtype():
    x = random_tensor(ndim=2, dim0=random(1, 6), dtype=torch.float32)
    return torch.norm(x, p=2, dim=1, dtype=torch.float64)


@autotest()
def test_norm_of_zero_rows():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(1, 5)) * 0
    return x.norm(oneof(1, 2, 3, 1.5, float("inf")), 1)


@autotest()
def test_vector_norm():
    x = random_tensor(ndim=3, dim0=random(1, 5))
    ord = oneof(0, 0.5, 1, 2, 3.5, float("inf"), -float("inf"))
    return torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, ord, dim=oneof(0, -1, (0, 2), None), keepdim=random_bool())


@autotest()
def test_vector_norm_complex():
    x = random_tensor(ndim=2, dim0=random(1, 5), dtype=torch.complex64)
    return torch.linalg.vector_norm(x, oneof(1, 2, 3), dim=oneof(0, 1))


@autotest()
def test_linalg_norm():
    x = random_tensor(ndim=2, dim0=random(1, 5))
    return torch.linalg.norm(x), torch.linalg.norm(x, oneof(1, 2, 3.0, None), dim=oneof(0, -1)), torch.linalg.norm(x, "fro")


@autotest()
def test_normalize():
    x = random_tensor(ndim=random(2, 5), dim0=random(1, 6))
    return torch.nn.functional.normalize(x, p=oneof(1.0, 2.0, 3.0) | nothing(), dim=oneof(0, 1, -1) | nothing(), eps=constant(0.01) | nothing())


@autotest()
def test_cosine_similarity():
    a, b = random(1, 6), random(2, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b)
    return torch.cosine_similarity(x, y, dim=1), torch.nn.functional.cosine_similarity(x, y, dim=0, eps=constant(1e-6) | nothing())


@autotest()
def test_cosine_similarity_module():
    a, b, c = random(1, 5), random(2, 5), random(1, 5)
    m = torch.nn.CosineSimilarity(dim=oneof(1, 2, -1) | nothing(), eps=constant(1e-6) | nothing())
    return m(random_tensor(ndim=3, dim0=a, dim1=b, dim2=c), random_tensor(ndim=3, dim0=a, dim1=b, dim2=c))


@autotest()
def test_pairwise_distance():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    y = random_tensor(ndim=2, dim0=a | constant(1), dim1=b)
    return torch.nn.functional.pairwise_distance(x, y, p=oneof(1.0, 2.0, 3.0) | nothing(), eps=constant(0.001) | nothing(), keepdim=random_bool())


@autotest()
def test_pairwise_distance_module():
    a, b = random(1, 6), random(1, 6)
    m = torch.nn.PairwiseDistance(p=oneof(1.0, 2.0, 3.0) | nothing(), keepdim=random_bool() | nothing())
    return m(random_tensor(ndim=2, dim0=a, dim1=b), random_tensor(ndim=2, dim0=a, dim1=b))


@autotest()
def test_cdist():
    a, m = random(1, 4), random(1, 6)
    dtype = torch.float32 | constant(torch.float64)
    x = random_tensor(ndim=3, dim0=a, dim1=random(1, 6), dim2=m, dtype=dtype)
    y = random_tensor(ndim=3, dim0=a | constant(1), dim1=random(1, 6), dim2=m, dtype=dtype)
    return torch.cdist(x, y, p=oneof(1.0, 2.0, 1.5, 3.0, 0.0) | nothing())


@autotest()
def test_cdist_infinity():
    m = random(1, 6)
    x = random_tensor(ndim=2, dim0=random(1, 6), dim1=m, dtype=torch.float64)
    y = random_tensor(ndim=2, dim0=random(1, 6), dim1=m, dtype=torch.float64)
    return torch.cdist(x, y, p=float("inf"), compute_mode="donot_use_mm_for_euclid_dist")


@autotest()
def test_median():
    x = tensor_of()
    return torch.median(x), x.nanmedian()


@autotest(auto_backward="auto")
def test_median_dim():
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.median(x, dim=random(-ndim, ndim), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_median_of_long_rows():
    x = random_tensor(ndim=2, dim0=random(1, 4), dim1=random(20, 200), low=-9, high=9, dtype=oneof(int, float))
    return torch.median(x, 1), x.nanmedian(0)


@autotest(auto_backward=False)
def test_nanmedian_dim():
    x = random_tensor(ndim=2, dim0=random(1, 9), dim1=random(1, 9), requires_grad=False)
    x = torch.where(x > 0.7, float("nan"), x)
    return torch.nanmedian(x, oneof(0, 1, -1), random_bool()).values, x.median(0).values, x.nanmedian(), x.median()


@autotest()
def test_median_of_distinct():
    # the steps of a running sum of positive numbers are far larger than rounding
    x = random_tensor(ndim=1, dim0=random(1, 9), low=1, high=2, dtype=torch.float64).cumsum(0)
    return torch.median(x, 0).values, x.nanmedian(0).values


@autotest(auto_backward=False)
def test_median_int():
    x = random_tensor(ndim=2, dim0=random(1, 7), low=-9, high=9, dtype=int)
    return x.median(), x.median(0).values, torch.nanmedian(x)


@autotest(auto_backward="auto")
def test_mode():
    # up to 16 elements, which PyTorch's sort keeps in order
    ndim = random(1, 5)
    x = random_tensor(ndim=ndim, dim0=random(1, 9), dim1=random(1, 9), dim2=random(1, 5), dim3=random(1, 5))
    return torch.mode(x, dim=random(-ndim, ndim) | nothing(), keepdim=random_bool() | nothing())


@autotest(auto_backward=False)
def test_mode_int():
    x = random_tensor(ndim=2, dim0=random(1, 7), low=-2, high=3, dtype=oneof(int, torch.bool))
    return x.mode(), torch.mode(x, 0, True)


@autotest()
def test_quantile():
    # up to 16 elements, which PyTorch's sort keeps in order
    ndim = random(1, 3)
    x = random_tensor(ndim=ndim, dim0=random(1, 5), dim1=random(1, 5), dtype=torch.float32 | constant(torch.float64))
    mode = oneof("linear", "lower", "higher", "midpoint", "nearest") | nothing()
    return torch.quantile(x, random(0.0, 1.0), dim=random(-ndim, ndim) | nothing(), keepdim=random_bool() | nothing(), interpolation=mode)


@autotest()
def test_quantiles():
    x = random_tensor(ndim=3, dim0=random(1, 6), dim1=random(1, 3), dim2=1, dtype=torch.float64)
    q = random_tensor(ndim=1, dim0=random(1, 4), low=0, high=1, dtype=torch.float64)
    return x.quantile(q, oneof(0, 1, -1, None), random_bool()), torch.quantile(x, oneof(0.0, 0.5, 1.0))


@autotest()
def test_nanquantile():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(2, 5), dtype=torch.float64)
    x = torch.where(x > 0.6, float("nan"), x)
    q = random_tensor(ndim=1, dim0=random(1, 4), low=0, high=1, dtype=torch.float64)
    return torch.nanquantile(x, q, oneof(0, 1, None)), x.nanquantile(random(0.0, 1.0), 1, True), x.quantile(0.4, 0)


@autotest(auto_backward=False)
def test_bincount():
    n = random(1, 20)
    x = random_tensor(ndim=1, dim0=n, low=0, high=9, dtype=oneof(int, torch.uint8, torch.int32))
    weights = random_tensor(ndim=1, dim0=n, dtype=oneof(torch.float64, torch.float32, int), requires_grad=False)
    return torch.bincount(x, minlength=random(0, 12) | nothing()), x.bincount(weights), torch.bincount(x, weights, 12)


@autotest(auto_backward=False)
def test_histc():
    x = random_tensor(ndim=2, dim0=random(1, 9), dim1=random(1, 9), dtype=torch.float32 | constant(torch.float64), requires_grad=False)
    return torch.histc(x, bins=random(1, 12) | nothing()), x.histc(random(1, 12), -1, oneof(0.5, 1, 2))


@autotest()
def test_diff():
    ndim = random(1, 4)
    x = random_tensor(ndim=ndim, dim0=random(1, 6))
    return torch.diff(x, n=random(0, 4) | nothing(), dim=random(-ndim, ndim) | nothing())


@autotest()
def test_diff_edges():
    a, b = random(1, 6), random(1, 6)
    x = random_tensor(ndim=2, dim0=a, dim1=b)
    edge = random_tensor(ndim=2, dim0=a, dim1=random(1, 4))
    return x.diff(prepend=edge), torch.diff(x, 2, 1, append=edge), torch.diff(x, 1, 1, edge, edge)


@autotest(auto_backward=False)
def test_diff_int():
    x = random_tensor(ndim=2, dim0=random(1, 6), low=-9, high=9, dtype=oneof(int, torch.bool))
    return torch.diff(x), x.diff(dim=0)


@autotest()
def test_prod_complex():
    return random_tensor(ndim=2, dim0=random(1, 5), dtype=torch.complex128).prod(oneof(0, 1)).abs()


@autotest()
def test_moments_complex():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(2, 5), dtype=torch.complex128)
    return x.var(), torch.std(x, 0), torch.var_mean(x, 1)[1].abs()


@autotest(auto_backward=False)
def test_reductions_without_elements():
    x = random_tensor(ndim=3, dim0=random(0, 2), dim1=0, dim2=random(0, 3), requires_grad=False)
    return x.prod(), x.prod(1), x.all(1), x.any(), x.count_nonzero(), x.var(), x.nansum(1), x.norm(), x.logsumexp(1), torch.linalg.vector_norm(x, 2, 1)


@autotest(auto_backward=False, refusals=True)
def test_extremes_refused():
    x = random_tensor(ndim=2, dim0=0, dim1=random(0, 3), requires_grad=False)
    return oneof(torch.amax, torch.argmin, torch.median, torch.mode)(x, oneof(0, 1))


@autotest(auto_backward="auto")
def test_reductions_of_scalar():
    x = random_tensor(ndim=0)
    return x.amax(), x.amin(0), x.min(0).values, x.argmax(), x.norm(), x.logsumexp(0), x.median(), x.mode().values, x.all(), x.std(unbiased=False)


@autotest(auto_backward="auto")
def test_reductions_of_channels_last():
    x = random_tensor(ndim=4, dim0=2, dim1=random(2, 4), dim2=random(2, 4), dim3=random(2, 4)).contiguous(memory_format=torch.channels_last)
    d = oneof(0, 1, 2, 3)
    return x.amax(d), x.std(d), x.norm(dim=d), x.logsumexp(d), x.argmin(d), x.min(d).values, x.cumsum(d), x.all(d)


@autotest()
def test_matrix_norm():
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=random(1, 5))
    p = oneof(1, -1, float("inf"), float("-inf"), "fro")
    return torch.linalg.norm(x[0], p), torch.linalg.norm(x, p, dim=(0, 2), keepdim=random_bool()), torch.linalg.matrix_norm(x, p), torch.linalg.matrix_norm(x, p, (1, 0), True)


@autotest()
def test_trapezoid():
    y = random_tensor(ndim=2, dim0=random(1, 5), dim1=4)
    x = random_tensor(ndim=1, dim0=4)
    return torch.trapezoid(y), torch.trapezoid(y, x), torch.trapz(y, dx=0.5, dim=0), torch.trapz(y, y), torch.cumulative_trapezoid(y, x), torch.cumulative_trapezoid(y, dx=random(1, 3).to(int), dim=oneof(0, 1))


@autotest()
def test_distances():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(1, 5))
    p = oneof(1, 1.5, 2, 3)
    return torch.dist(x, x[0] * 2 + 1, p), x.dist(x + 1), torch.pdist(x), torch.nn.functional.pdist(x, random(1.0, 3.0))


@autotest()
def test_covariance():
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=random(3, 6))
    return torch.cov(x), x.cov(correction=0), x[0].cov()


@autotest()
def test_correlation():
    x = random_tensor(ndim=2, dim0=random(2, 5), dim1=random(4, 7))
    return torch.corrcoef(x), x.corrcoef() * 2


@autotest()
def test_sum_to_size():
    x = random_tensor(ndim=3, dim0=2, dim1=random(1, 4), dim2=3)
    return x.sum_to_size(1, 3), x.sum_to_size((2, 1, 1)), x.sum_to_size(3)
