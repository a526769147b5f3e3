# torch.distributions: what a distribution computes from its parameters, by PyTorch's formulas.
# Draws are made of torch.rand and torch.randn, which both sides are given alike.

import math

import torch


def _tensors(*values):
    of = [v for v in values if isinstance(v, torch.Tensor)]
    dtype = of[0].dtype if of else torch.get_default_dtype()
    return torch.broadcast_tensors(*[v if isinstance(v, torch.Tensor) else torch.tensor(float(v), dtype=dtype) for v in values])


def _sum_rightmost(value, dims):
    if dims == 0:
        return value
    return value.reshape(list(value.shape[: value.dim() - dims]) + [-1]).sum(-1)


class Distribution:
    has_rsample = False
    event_shape = torch.Size([])

    def _shape(self, sample_shape):
        return list(sample_shape) + list(self.batch_shape) + list(self.event_shape)

    @property
    def stddev(self):
        return self.variance.sqrt()

    def draw(self, sample_shape):
        return self.rsample(sample_shape)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return self.draw(sample_shape).detach()

    def sample_n(self, n):
        return self.sample((n,))

    def perplexity(self):
        return torch.exp(self.entropy())


class _LocScale(Distribution):
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = _tensors(loc, scale)
        self.batch_shape = self.loc.shape


class Normal(_LocScale):
    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.pow(2)

    def rsample(self, sample_shape=()):
        return self.loc + torch.randn(self._shape(sample_shape), dtype=self.loc.dtype) * self.scale

    def log_prob(self, value):
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value):
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value):
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)


class LogNormal(Distribution):
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.base_dist = Normal(loc, scale)
        self.loc, self.scale, self.batch_shape = self.base_dist.loc, self.base_dist.scale, self.base_dist.batch_shape

    @property
    def mean(self):
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def variance(self):
        s = self.scale.pow(2)
        return s.expm1() * (2 * self.loc + s).exp()

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape).exp()

    def log_prob(self, value):
        return self.base_dist.log_prob(value.log()) - value.log()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class Uniform(Distribution):
    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = _tensors(low, high)
        self.batch_shape = self.low.shape

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def stddev(self):
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self):
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape=()):
        return self.low + torch.rand(self._shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value):
        lb = self.low.le(value).type_as(self.low)
        ub = self.high.gt(value).type_as(self.low)
        return torch.log(lb.mul(ub)) - torch.log(self.high - self.low)

    def cdf(self, value):
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return torch.log(self.high - self.low)


class Exponential(Distribution):
    has_rsample = True

    def __init__(self, rate, validate_args=None):
        (self.rate,) = _tensors(rate)
        self.batch_shape = self.rate.shape

    @property
    def mean(self):
        return self.rate.reciprocal()

    @property
    def stddev(self):
        return self.rate.reciprocal()

    @property
    def variance(self):
        return self.rate.pow(-2)

    def rsample(self, sample_shape=()):
        u = torch.rand(self._shape(sample_shape), dtype=self.rate.dtype)
        return -(-u).log1p() / self.rate

    def log_prob(self, value):
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value):
        return -torch.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - torch.log(self.rate)


class Laplace(_LocScale):
    @property
    def mean(self):
        return self.loc

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return (2**0.5) * self.scale

    def rsample(self, sample_shape=()):
        u = torch.rand(self._shape(sample_shape), dtype=self.loc.dtype) * 1.9999 - 0.99995
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value):
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value):
        return 0.5 - 0.5 * (value - self.loc).sign() * torch.expm1(-(value - self.loc).abs() / self.scale)

    def entropy(self):
        return 1 + torch.log(2 * self.scale)


class Cauchy(_LocScale):
    def rsample(self, sample_shape=()):
        u = torch.rand(self._shape(sample_shape), dtype=self.loc.dtype) * 0.9999 + 0.00005
        return self.icdf(u)

    def log_prob(self, value):
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocScale):
    @property
    def mean(self):
        return self.loc + self.scale * 0.57721566490153286060

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def rsample(self, sample_shape=()):
        u = torch.rand(self._shape(sample_shape), dtype=self.loc.dtype) * 0.9999 + 0.00005
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value):
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self):
        return self.scale.log() + (1 + 0.57721566490153286060)


class Gamma(Distribution):
    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = _tensors(concentration, rate)
        self.batch_shape = self.concentration.shape

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def log_prob(self, value):
        value = torch.as_tensor(value, dtype=self.rate.dtype)
        return torch.xlogy(self.concentration, self.rate) + torch.xlogy(self.concentration - 1, value) - self.rate * value - torch.lgamma(self.concentration)

    def entropy(self):
        a = self.concentration
        return a - torch.log(self.rate) + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)

    def rsample(self, sample_shape=()):
        raise NotImplementedError("draws of %s are not in test files" % type(self).__name__)


class Chi2(Gamma):
    def __init__(self, df, validate_args=None):
        df = df if isinstance(df, torch.Tensor) else torch.tensor(float(df))
        Gamma.__init__(self, 0.5 * df, 0.5)

    @property
    def df(self):
        return self.concentration * 2


class Poisson(Distribution):
    def __init__(self, rate, validate_args=None):
        (self.rate,) = _tensors(rate)
        self.batch_shape = self.rate.shape

    @property
    def mean(self):
        return self.rate

    @property
    def variance(self):
        return self.rate

    def draw(self, sample_shape):
        return torch.poisson(self.rate.expand(self._shape(sample_shape)))

    def log_prob(self, value):
        rate, value = torch.broadcast_tensors(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()


class Dirichlet(Gamma):
    def __init__(self, concentration, validate_args=None):
        self.concentration = concentration
        self.batch_shape, self.event_shape = concentration.shape[:-1], concentration.shape[-1:]

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def variance(self):
        con0 = self.concentration.sum(-1, True)
        return self.concentration * (con0 - self.concentration) / (con0.pow(2) * (con0 + 1))

    def log_prob(self, value):
        return torch.xlogy(self.concentration - 1.0, value).sum(-1) + torch.lgamma(self.concentration.sum(-1)) - torch.lgamma(self.concentration).sum(-1)

    def entropy(self):
        k = self.concentration.size(-1)
        a0 = self.concentration.sum(-1)
        return torch.lgamma(self.concentration).sum(-1) - torch.lgamma(a0) - (k - a0) * torch.digamma(a0) - ((self.concentration - 1.0) * torch.digamma(self.concentration)).sum(-1)


class Beta(Dirichlet):
    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = _tensors(concentration1, concentration0)
        self.concentration = torch.stack([self.concentration1, self.concentration0], -1)
        self.batch_shape = self.concentration1.shape

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def log_prob(self, value):
        return Dirichlet.log_prob(self, torch.stack([value, 1.0 - value], -1))


class StudentT(Distribution):
    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = _tensors(df, loc, scale)
        self.batch_shape = self.df.shape

    def log_prob(self, value):
        y = (value - self.loc) / self.scale
        z = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + torch.lgamma(0.5 * self.df) - torch.lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * torch.log1p(y**2.0 / self.df) - z


class _Logits(Distribution):
    def _take(self, probs, logits):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = _tensors(probs)
            eps = torch.finfo(self.probs.dtype).eps
            clamped = self.probs.clamp(min=eps, max=1 - eps)
            self.logits = torch.log(clamped) - torch.log1p(-clamped)
        else:
            (self.logits,) = _tensors(logits)
            self.probs = torch.sigmoid(self.logits)
        self.batch_shape = self.logits.shape

    @property
    def param_shape(self):
        return self.logits.shape


class Bernoulli(_Logits):
    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def draw(self, sample_shape):
        return (torch.rand(self._shape(sample_shape), dtype=self.probs.dtype) < self.probs).to(self.probs.dtype)

    def log_prob(self, value):
        logits, value = torch.broadcast_tensors(self.logits, value)
        return -torch.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Geometric(_Logits):
    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def draw(self, sample_shape):
        u = torch.rand(self._shape(sample_shape), dtype=self.probs.dtype) * 0.9999 + 0.00005
        return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        value, probs = torch.broadcast_tensors(value, self.probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(Distribution):
    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
            eps = torch.finfo(probs.dtype).eps
            self.logits = self.probs.clamp(min=eps, max=1 - eps).log()
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
            self.probs = torch.nn.functional.softmax(self.logits, dim=-1)
        self.batch_shape = self.logits.shape[:-1]

    @property
    def param_shape(self):
        return self.logits.shape

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def draw(self, sample_shape):
        n = 1
        for k in sample_shape:
            n = n * k
        events = self.logits.shape[-1]
        return torch.multinomial(self.probs.reshape(-1, events), n, True).t().reshape(self._shape(sample_shape))

    def log_prob(self, value):
        value = value.long().unsqueeze(-1)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)


class OneHotCategorical(Distribution):
    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.probs, self.logits, self.batch_shape = self._categorical.probs, self._categorical.logits, self._categorical.batch_shape
        self.event_shape = self.logits.shape[-1:]

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def draw(self, sample_shape):
        return torch.nn.functional.one_hot(self._categorical.draw(sample_shape), self.event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value):
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()


class Independent(Distribution):
    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        batch = list(base_distribution.batch_shape)
        kept = len(batch) - reinterpreted_batch_ndims
        self.batch_shape = torch.Size(batch[:kept])
        self.event_shape = torch.Size(batch[kept:] + list(base_distribution.event_shape))

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def variance(self):
        return self.base_dist.variance

    def draw(self, sample_shape):
        return self.base_dist.draw(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)


class MultivariateNormal(Distribution):
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if len([m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if scale_tril is not None:
            tril = scale_tril
        elif covariance_matrix is not None:
            tril = torch.linalg.cholesky(covariance_matrix)
        else:  # PyTorch's _precision_to_scale_tril
            flipped = torch.linalg.cholesky(torch.flip(precision_matrix, (-2, -1)))
            inverse = torch.transpose(torch.flip(flipped, (-2, -1)), -2, -1)
            tril = torch.linalg.solve_triangular(inverse, torch.eye(precision_matrix.shape[-1], dtype=precision_matrix.dtype), upper=False)
        batch = torch.broadcast_shapes(tril.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(list(batch) + [-1])
        self.scale_tril = tril.expand(list(batch) + [-1, -1])
        self.batch_shape, self.event_shape = torch.Size(batch), self.loc.shape[-1:]

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def covariance_matrix(self):
        return torch.matmul(self.scale_tril, self.scale_tril.mT)

    @property
    def precision_matrix(self):
        return torch.cholesky_inverse(self.scale_tril)

    @property
    def variance(self):
        return self.scale_tril.pow(2).sum(-1)

    def rsample(self, sample_shape=()):
        eps = torch.randn(self._shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + torch.matmul(self.scale_tril, eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        diff = value - self.loc
        solved = torch.linalg.solve_triangular(self.scale_tril, diff.unsqueeze(-1), upper=False).squeeze(-1)
        half_log_det = self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + solved.pow(2).sum(-1)) - half_log_det

    def entropy(self):
        half_log_det = self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 0.5 * self.event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det


def _both(p, q, kind):
    return isinstance(p, kind) and isinstance(q, kind)


def kl_divergence(p, q):
    if _both(p, q, Normal):
        ratio = (p.scale / q.scale).pow(2)
        return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())
    if _both(p, q, LogNormal):
        return kl_divergence(p.base_dist, q.base_dist)
    if _both(p, q, Categorical):
        t = p.probs * (p.logits - q.logits)
        t = torch.where((q.probs == 0).expand_as(t), torch.full_like(t, float("inf")), t)
        return torch.where((p.probs == 0).expand_as(t), torch.zeros_like(t), t).sum(-1)
    if _both(p, q, OneHotCategorical):
        return kl_divergence(p._categorical, q._categorical)
    if _both(p, q, Bernoulli):
        t1 = p.probs * (torch.nn.functional.softplus(-q.logits) - torch.nn.functional.softplus(-p.logits))
        t1 = torch.where(q.probs == 0, torch.full_like(t1, float("inf")), t1)
        t1 = torch.where(p.probs == 0, torch.zeros_like(t1), t1)
        t2 = (1 - p.probs) * (torch.nn.functional.softplus(q.logits) - torch.nn.functional.softplus(p.logits))
        t2 = torch.where(q.probs == 1, torch.full_like(t2, float("inf")), t2)
        return t1 + torch.where(p.probs == 1, torch.zeros_like(t2), t2)
    if _both(p, q, Exponential):
        ratio = q.rate / p.rate
        return -ratio.log() + ratio - 1
    if _both(p, q, Uniform):
        result = ((q.high - q.low) / (p.high - p.low)).log()
        return torch.where((q.low > p.low) | (q.high < p.high), torch.full_like(result, float("inf")), result)
    if _both(p, q, Laplace):
        ratio = p.scale / q.scale
        t = (p.loc - q.loc).abs()
        return -ratio.log() + t / q.scale + ratio * torch.exp(-t / p.scale) - 1
    if _both(p, q, Poisson):
        return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)
    if _both(p, q, Dirichlet):
        sp, sq = p.concentration.sum(-1), q.concentration.sum(-1)
        t1 = sp.lgamma() - sq.lgamma()
        t2 = (q.concentration.lgamma() - p.concentration.lgamma()).sum(-1)
        t3 = p.concentration - q.concentration
        t4 = p.concentration.digamma() - sp.digamma().unsqueeze(-1)
        return t1 + t2 + (t3 * t4).sum(-1)
    if _both(p, q, Gamma):
        t1 = q.concentration * (p.rate / q.rate).log()
        t2 = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
        t3 = (p.concentration - q.concentration) * torch.digamma(p.concentration)
        return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)
    if _both(p, q, MultivariateNormal):
        n = p.event_shape[0]
        half1 = q.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) - p.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        t2 = torch.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False).pow(2).sum((-2, -1))
        t3 = torch.linalg.solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)
        return half1 + 0.5 * (t2 + t3 - n)
    if _both(p, q, Independent) and p.reinterpreted_batch_ndims == q.reinterpreted_batch_ndims:
        return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
    raise NotImplementedError("kl_divergence of %s and %s is not in test files" % (type(p).__name__, type(q).__name__))
