"""Random operators: dropout and its kin, rrelu, rand, normal, bernoulli, …

Both sides draw from streams of their own, so that supports and distributions
are judged and not elements; tensors are large enough for that now and then.
"""
import torch
from plumb import *

F = torch.nn.functional


def some(low=-2, high=2, requires_grad=True):
    return random_tensor(ndim=random(0, 5), dim0=random(1, 6), low=low, high=high, requires_grad=requires_grad)


def many(low=-2, high=2, requires_grad=True):
    return random_tensor(ndim=2, dim0=random(20, 80), dim1=random(20, 80), low=low, high=high, requires_grad=requires_grad)


def channels(ndim):
    return random_tensor(ndim=ndim, dim0=random(1, 6), dim1=random(1, 6))


@autotest()
def test_dropout():
    return F.dropout(some(), p=random(0.0, 1.0).to(float) | nothing(), training=random_bool() | nothing())


@autotest()
def test_dropout_many():
    return F.dropout(many(), p=random(0.0, 1.0).to(float) | nothing())


@autotest()
def test_dropout_ends():
    return F.dropout(some(), oneof(0.0, 1.0), random_bool())


@autotest()
def test_dropout_module():
    m = torch.nn.Dropout(p=random(0.0, 1.0).to(float) | nothing())
    m.train(random())
    return m(many())


@autotest()
def test_dropout_chained():
    x = some()
    return F.dropout(torch.exp(x), 0.3) * x


@autotest()
def test_dropout_beside():
    # what does not depend on the draws is compared as ever
    x = some()
    return torch.tanh(x), F.dropout(x, 0.3)


@autotest()
def test_dropout1d():
    return F.dropout1d(channels(random(2, 4)), p=random(0.0, 1.0).to(float) | nothing(), training=random_bool())


@autotest()
def test_dropout1d_module():
    m = torch.nn.Dropout1d(random(0.0, 1.0).to(float))
    m.train(random())
    return m(random_tensor(ndim=3, dim0=random(5, 30), dim1=random(5, 30)))


@autotest()
def test_dropout2d():
    return F.dropout2d(channels(random(2, 6)), p=random(0.0, 1.0).to(float) | nothing(), training=random_bool())


@autotest()
def test_dropout2d_module():
    m = torch.nn.Dropout2d(random(0.0, 1.0).to(float))
    m.train(random())
    return m(channels(4))


@autotest()
def test_dropout3d():
    return F.dropout3d(channels(random(2, 6)), p=random(0.0, 1.0).to(float) | nothing(), training=random_bool())


@autotest()
def test_dropout3d_module():
    m = torch.nn.Dropout3d(random(0.0, 1.0).to(float))
    m.train(random())
    return m(channels(5))


@autotest()
def test_alpha_dropout():
    return F.alpha_dropout(many(), p=random(0.0, 1.0).to(float) | nothing(), training=random_bool() | nothing())


@autotest()
def test_alpha_dropout_module():
    m = torch.nn.AlphaDropout(random(0.0, 1.0).to(float))
    m.train(random())
    return m(some())


@autotest()
def test_feature_alpha_dropout():
    return F.feature_alpha_dropout(channels(random(2, 5)), p=random(0.0, 1.0).to(float) | nothing(), training=random_bool() | nothing())


@autotest()
def test_feature_alpha_dropout_module():
    m = torch.nn.FeatureAlphaDropout(random(0.0, 1.0).to(float))
    m.train(random())
    return m(channels(4))


@autotest()
def test_rrelu():
    return F.rrelu(some(), lower=random(0.0, 0.3).to(float) | nothing(), upper=random(0.4, 0.9).to(float), training=random_bool() | nothing())


@autotest()
def test_rrelu_many():
    return F.rrelu(many(), 0.1, 0.5, True)


@autotest()
def test_rrelu_module():
    m = torch.nn.RReLU(lower=random(0.0, 0.3).to(float) | nothing(), upper=0.6)
    m.train(random())
    return m(many())


@autotest()
def test_bernoulli():
    return torch.bernoulli(many(0, 1))


@autotest()
def test_bernoulli_method():
    return some(0, 1).bernoulli()


@autotest(auto_backward=False)
def test_bernoulli_p():
    return torch.bernoulli(many(), p=random(0.0, 1.0).to(float))


@autotest(auto_backward=False)
def test_bernoulli_p_method():
    return some().bernoulli(random(0.0, 1.0).to(float))


@autotest(auto_backward=False)
def test_rand():
    return torch.rand((random(1, 70).to(int), random(1, 70).to(int)), dtype=oneof(torch.float32, torch.float64, torch.bfloat16, torch.float16) | nothing())


@autotest(auto_backward=False)
def test_randn():
    return torch.randn((random(1, 70).to(int), random(1, 70).to(int)), dtype=oneof(torch.float32, torch.float64, torch.bfloat16, torch.float16) | nothing())


@autotest(auto_backward=False)
def test_rand_like():
    return torch.rand_like(many(requires_grad=False), dtype=oneof(torch.float32, torch.float64) | nothing())


@autotest(auto_backward=False)
def test_randn_like():
    return torch.randn_like(many(requires_grad=False), dtype=oneof(torch.float32, torch.float64) | nothing())


@autotest(auto_backward=False)
def test_randint():
    return torch.randint(random(-9, 3).to(int), random(3, 30).to(int), (random(1, 50).to(int), random(1, 50).to(int)), dtype=oneof(torch.int32, torch.int8, torch.float32) | nothing())


@autotest(auto_backward=False)
def test_randint_high():
    return torch.randint(random(1, 5).to(int), (random(1, 500).to(int),))


@autotest(auto_backward=False)
def test_randint_like():
    return torch.randint_like(many(requires_grad=False), random(-9, 3).to(int), random(3, 30).to(int))


@autotest(auto_backward=False)
def test_randperm():
    return torch.randperm(random(0, 500).to(int), dtype=oneof(torch.int32, torch.float32) | nothing())


@autotest()
def test_normal():
    x = many()
    return torch.normal(x, torch.abs(x))


@autotest()
def test_normal_mean():
    return torch.normal(some(), std=random(0.0, 2.0).to(float) | nothing())


@autotest()
def test_normal_std():
    return torch.normal(random(-2.0, 2.0).to(float), many(0, 2))


@autotest(auto_backward=False)
def test_normal_size():
    return torch.normal(random(-2.0, 2.0).to(float), random(0.0, 2.0).to(float), (random(1, 50).to(int), random(1, 50).to(int)))


@autotest(auto_backward=False)
def test_multinomial():
    x = random_tensor(ndim=2, dim0=random(1, 40), dim1=5, low=0.1, high=1)
    return torch.multinomial(x, random(1, 6).to(int))


@autotest(auto_backward=False)
def test_multinomial_replacement():
    x = random_tensor(ndim=1, dim0=random(1, 9), low=0.1, high=1)
    return torch.multinomial(x, random(1, 900).to(int), replacement=True)


@autotest(auto_backward=False)
def test_multinomial_method():
    return random_tensor(ndim=2, dim0=random(1, 5), dim1=4, low=0.1, high=1).multinomial(random(1, 5).to(int))


@autotest()
def test_poisson():
    return torch.poisson(many(0, 30))


@autotest()
def test_poisson_small():
    return torch.poisson(some(0, 3))


@autotest()
def test_uniform_in_place():
    x = random_tensor(ndim=2, dim0=20, dim1=random(1, 30)) * 2
    x.uniform_()
    y = random_tensor(ndim=1, dim0=60) + 1
    return x, y.uniform_(-2, random(0, 4).to(int))


@autotest()
def test_normal_in_place():
    x = random_tensor(ndim=2, dim0=20, dim1=random(1, 30)) * 2
    x[0].normal_(mean=3, std=0.5)
    y = random_tensor(ndim=1, dim0=60) + 1
    return x, y.normal_()


@autotest(auto_backward=False)
def test_exponential_and_geometric():
    x = torch.zeros(random(1, 80).to(int))
    return x.clone().exponential_(), x.exponential_(lambd=random(0.5, 2.0)), torch.zeros(50, dtype=torch.int64).geometric_(0.4), torch.zeros(40).log_normal_(0, 0.5), torch.zeros(40).cauchy_(1)


@autotest(auto_backward=False)
def test_bernoulli_and_random_in_place():
    n = random(1, 80).to(int)
    p = random_tensor(ndim=1, dim0=n, low=0, high=1, requires_grad=False)
    return torch.zeros(n).bernoulli_(), torch.zeros(n, dtype=torch.int32).bernoulli_(0.3), torch.zeros(2, n).bernoulli_(p), torch.zeros(n).random_(), torch.zeros(n).random_(7), torch.zeros(n, dtype=torch.int64).random_(-3, 5)
