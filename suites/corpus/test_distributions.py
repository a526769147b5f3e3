"""torch.distributions: densities, moments, divergences and draws, with their gradients."""

import math
import pytest
import torch
import torch.distributions as D
from torch.distributions import kl_divergence, Normal, Beta, constraints
import torch.distributions.normal as N

CASES = [
    (lambda a, b: Normal(a, b.exp()), lambda v: v),
    (lambda a, b: D.LogNormal(a, b.exp()), lambda v: v.exp()),
    (lambda a, b: D.Uniform(a, a + b.exp(), validate_args=False), lambda v: v),
    (lambda a, b: D.Exponential(b.exp()), lambda v: v.abs()),
    (lambda a, b: D.Laplace(a, b.exp()), lambda v: v),
    (lambda a, b: D.Cauchy(a, b.exp()), lambda v: v),
    (lambda a, b: D.Gumbel(a, b.exp()), lambda v: v),
    (lambda a, b: D.Gamma(a.exp(), b.exp()), lambda v: v.abs() + 0.1),
    (lambda a, b: D.Chi2(a.exp()), lambda v: v.abs() + 0.1),
    (lambda a, b: D.Poisson(a.exp()), lambda v: v.abs().floor()),
    (lambda a, b: D.Dirichlet(a.exp()), lambda v: v.softmax(-1)),
    (lambda a, b: Beta(a.exp(), b.exp()), lambda v: v.sigmoid()),
    (lambda a, b: D.StudentT(a.exp(), b), lambda v: v),
    (lambda a, b: D.Bernoulli(logits=a), lambda v: (v > 0).float()),
    (lambda a, b: D.Bernoulli(probs=a.sigmoid()), lambda v: (v > 0).float()),
    (lambda a, b: D.Geometric(probs=a.sigmoid()), lambda v: v.abs().floor()),
    (lambda a, b: D.Categorical(logits=a), lambda v: (v[:, 0] > 0).long()),
    (lambda a, b: D.OneHotCategorical(logits=a), lambda v: torch.nn.functional.one_hot((v[:, 0] > 0).long(), 4).float()),
    (lambda a, b: D.Independent(Normal(a, b.exp()), 1), lambda v: v),
    (lambda a, b: D.MultivariateNormal(a, scale_tril=torch.tril(b[:, :, None] * b[:, None, :], -1) + torch.diag_embed(b.exp())), lambda v: v),
    (lambda a, b: D.MultivariateNormal(a, covariance_matrix=torch.diag_embed(b.exp()) + 0.1), lambda v: v),
    (lambda a, b: D.MultivariateNormal(a, precision_matrix=torch.diag_embed(b.exp()) + 0.1), lambda v: v),
]


@pytest.mark.parametrize("i", range(len(CASES)))
def test_log_prob_and_moments(i):
    make, value = CASES[i]
    a = torch.randn(3, 4, requires_grad=True)
    b = (torch.randn(3, 4) * 0.5).requires_grad_()
    d = make(a, b)
    lp = d.log_prob(value(torch.randn(3, 4)))
    lp.sum().backward()
    assert lp.shape == d.batch_shape
    for name in ("mean", "variance", "stddev"):
        try:
            m = getattr(d, name)
        except (NotImplementedError, AttributeError):
            continue
    try:
        e = d.entropy()
        assert e.shape == d.batch_shape
    except (NotImplementedError, AttributeError):
        pass


@pytest.mark.parametrize("i", [0, 2, 3, 4, 7, 9, 10, 11, 13, 16, 17, 18, 19])
def test_kl(i):
    make, _ = CASES[i]
    p, q = make(torch.randn(3, 4), torch.randn(3, 4) * 0.5), make(torch.randn(3, 4), torch.randn(3, 4) * 0.5)
    kl = kl_divergence(p, q)
    assert (kl > -1e-5).all()


@pytest.mark.parametrize("i", [0, 1, 2, 3, 4, 5, 6, 13, 15, 16, 17, 18, 19])
def test_draws(i):
    make, _ = CASES[i]
    p = make(torch.randn(3, 4), torch.randn(3, 4) * 0.5)
    x = p.sample((2,))
    assert x.shape[:2] == (2, 3)
    if p.has_rsample:
        y = p.rsample()
        assert torch.isfinite(p.log_prob(y)).all()
    assert torch.isfinite(p.log_prob(x)).all()


def test_normal_cdf():
    n = N.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    x = torch.tensor([0.5, 0.25])
    torch.testing.assert_close(n.cdf(n.icdf(x)), x)
    assert n.mean.tolist() == [0.0, 1.0]
    assert isinstance(n, torch.distributions.Distribution)
    assert n.batch_shape == torch.Size([2]) and n.event_shape == ()
    assert Normal(0.0, 1.0).log_prob(torch.tensor(0.0)).item() == pytest.approx(-0.5 * math.log(2 * math.pi))
