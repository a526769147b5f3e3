import collections
import random
from abc import ABC, ABCMeta, abstractmethod
from enum import IntEnum
from functools import partial, reduce, wraps
from operator import mul
from typing import Any, Callable, Dict, NamedTuple, Sequence

import numpy as np
import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Independent, Normal, kl_divergence


class Transition(NamedTuple):
    obs: torch.Tensor
    action: int
    reward: float
    done: bool = False


class Mode(IntEnum):
    TRAIN = 0
    EVAL = 1


def discounted(rewards: Sequence[float], gamma: float) -> torch.Tensor:
    out, acc = [], 0.0
    for r in rewards[::-1]:
        acc = r + gamma * acc
        out.insert(0, acc)
    return torch.tensor(out, dtype=torch.float32)


def gae(rewards, values, dones, last, gamma=0.99, lam=0.95):
    adv = torch.zeros_like(rewards)
    running = torch.zeros_like(last)
    nxt = last
    for t in range(rewards.size(0) - 1, -1, -1):
        nonterminal = 1.0 - dones[t]
        delta = rewards[t] + gamma * nxt * nonterminal - values[t]
        running = delta + gamma * lam * nonterminal * running
        adv[t] = running
        nxt = values[t]
    return adv, adv + values


def layer_init(layer, std=np.sqrt(2), bias=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias)
    return layer


class Policy(ABC, nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = Mode.TRAIN

    @abstractmethod
    def dist(self, obs): ...

    def act(self, obs):
        d = self.dist(obs)
        return d.sample() if self.mode is Mode.TRAIN else d.mode_

    @property
    def n_params(self) -> int:
        return sum(reduce(mul, p.shape, 1) for p in self.parameters())


class ActorCritic(Policy):
    def __init__(self, obs=4, actions=3, hidden=8):
        super().__init__()
        self.actor = nn.Sequential(layer_init(nn.Linear(obs, hidden)), nn.Tanh(), layer_init(nn.Linear(hidden, actions), std=0.01))
        self.critic = nn.Sequential(layer_init(nn.Linear(obs, hidden)), nn.Tanh(), layer_init(nn.Linear(hidden, 1), std=1.0))

    def dist(self, obs):
        return Categorical(logits=self.actor(obs))

    def forward(self, obs, action):
        d = self.dist(obs)
        return d.log_prob(action), d.entropy(), self.critic(obs).squeeze(-1)


class Gaussian(Policy):
    def __init__(self, obs=4, actions=2):
        super().__init__()
        self.mean = nn.Linear(obs, actions)
        self.log_std = nn.Parameter(torch.zeros(1, actions))

    def dist(self, obs):
        mean = self.mean(obs)
        return Independent(Normal(mean, self.log_std.expand_as(mean).exp()), 1)


class NoisyLinear(nn.Module):
    def __init__(self, i, o, sigma0=0.5):
        super().__init__()
        self.i, self.o, self.sigma0 = i, o, sigma0
        self.w_mu = nn.Parameter(torch.empty(o, i))
        self.w_sigma = nn.Parameter(torch.empty(o, i))
        self.register_buffer("w_eps", torch.empty(o, i))
        self.b_mu = nn.Parameter(torch.empty(o))
        self.b_sigma = nn.Parameter(torch.empty(o))
        self.register_buffer("b_eps", torch.empty(o))
        self.reset()

    def reset(self):
        r = 1 / self.i**0.5
        self.w_mu.data.uniform_(-r, r)
        self.b_mu.data.uniform_(-r, r)
        self.w_sigma.data.fill_(self.sigma0 / self.i**0.5)
        self.b_sigma.data.fill_(self.sigma0 / self.o**0.5)
        self.set_noise(torch.linspace(-1, 1, self.i), torch.linspace(-2, 2, self.o))

    @staticmethod
    def f(x):
        return x.sign().mul_(x.abs().sqrt_())

    def set_noise(self, a, b):
        self.w_eps.copy_(torch.outer(self.f(b), self.f(a)))
        self.b_eps.copy_(self.f(b))

    def forward(self, x):
        if self.training:
            return F.linear(x, self.w_mu + self.w_sigma * self.w_eps, self.b_mu + self.b_sigma * self.b_eps)
        return F.linear(x, self.w_mu, self.b_mu)


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.v, self.a = nn.Linear(6, 1), nn.Linear(6, 3)

    def forward(self, x):
        h = self.body(x).relu()
        v, a = self.v(h), self.a(h)
        return v + a - a.mean(dim=-1, keepdim=True)


class Replay:
    def __init__(self, capacity: int, alpha=0.6):
        self.buf: collections.deque = collections.deque(maxlen=capacity)
        self.prio = collections.deque(maxlen=capacity)
        self.alpha = alpha

    def __len__(self):
        return len(self.buf)

    def __iadd__(self, item: Transition):
        self.buf.append(item)
        self.prio.append(max(self.prio, default=1.0))
        return self

    def batch(self, idx):
        picked = [self.buf[i] for i in idx]
        b = Transition(*zip(*picked))
        return torch.stack(b.obs), torch.tensor(b.action), torch.tensor(b.reward), torch.tensor(b.done, dtype=torch.float)

    def probabilities(self):
        p = torch.tensor(self.prio) ** self.alpha
        return p / p.sum()


class RunningMeanStd:
    def __init__(self, shape=()):
        self.mean, self.var, self.count = torch.zeros(shape), torch.ones(shape), 1e-4

    def update(self, x):
        m, v, n = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta = m - self.mean
        tot = self.count + n
        self.mean = self.mean + delta * n / tot
        m2 = self.var * self.count + v * n + delta**2 * self.count * n / tot
        self.var, self.count = m2 / tot, tot
        return self


def seeded(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    def inner(*a, **k):
        torch.manual_seed(k.pop("seed", 3))
        random.seed(3)
        return fn(*a, **k)

    return inner


@pytest.fixture(scope="module")
def obs():
    return torch.linspace(-1, 1, 20).view(5, 4)


@pytest.fixture
def buffer():
    r = Replay(4)
    for i in range(6):
        r += Transition(torch.full((4,), float(i)), i % 3, i / 2, i == 5)
    yield r
    r.buf.clear()


def test_discounted():
    assert torch.allclose(discounted([1, 0, 2], 0.5), torch.tensor([1.5, 1.0, 2.0]))
    g = discounted([1.0] * 10, 0.9)
    g = (g - g.mean()) / (g.std() + np.finfo(np.float32).eps.item())
    assert abs(float(g.mean())) < 1e-5


@pytest.mark.parametrize("lam", [0.0, 0.95, 1.0])
def test_gae(lam):
    rewards, values = torch.arange(6.0).view(3, 2), torch.ones(3, 2)
    dones = torch.tensor([[0, 0], [1, 0], [0, 0]]).float()
    adv, ret = gae(rewards, values, dones, torch.tensor([0.5, 0.25]), lam=lam)
    assert torch.equal(ret, adv + 1)
    if lam == 0.0:
        torch.testing.assert_close(adv[1, 0], torch.tensor(1.0))


def test_ppo_loss(obs):
    ac = ActorCritic()
    action = torch.tensor([0, 1, 2, 1, 0])
    with torch.no_grad():
        old, _, v_old = ac(obs, action)
    logp, ent, v = ac(obs + 0.1, action)
    ratio = (logp - old).exp()
    adv = torch.tensor([1.0, -1.0, 0.5, 2.0, -0.3])
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    pg = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - 0.2, 1 + 0.2)).mean()
    clipped = v_old + torch.clamp(v - v_old, -0.2, 0.2)
    returns = torch.ones(5)
    v_loss = 0.5 * torch.max((v - returns) ** 2, (clipped - returns) ** 2).mean()
    loss = pg - 0.01 * ent.mean() + v_loss * 0.5
    loss.backward()
    total = nn.utils.clip_grad_norm_(ac.parameters(), 0.5)
    assert total > 0
    approx_kl = ((ratio - 1) - (logp - old)).mean()
    assert approx_kl.item() >= -1e-6


def test_ppo_epochs(obs):
    ac = ActorCritic()
    opt = torch.optim.Adam(ac.parameters(), lr=2.5e-4, eps=1e-5)
    idx = np.arange(5)
    for epoch in range(2):
        for start in range(0, 5, 3):
            mb = idx[start : start + 3]
            lp, e, v = ac(obs[mb], torch.tensor([0, 1, 2, 1, 0])[mb])
            opt.zero_grad()
            (lp.mean() + v.pow(2).mean()).backward()
            opt.step()
        opt.param_groups[0]["lr"] = (1 - epoch / 2) * 2.5e-4
    assert ac.n_params == 4 * 8 + 8 + 8 * 3 + 3 + 4 * 8 + 8 + 8 + 1


def test_gaussian_policy(obs):
    p = Gaussian()
    d = p.dist(obs)
    a = torch.zeros(5, 2)
    lp = d.log_prob(a)
    assert lp.shape == (5,)
    squash = lp - torch.log(1 - torch.tanh(a).pow(2) + 1e-6).sum(-1)
    (squash.mean() + d.entropy().mean()).backward()
    assert p.log_std.grad is not None
    kl = kl_divergence(p.dist(obs), Independent(Normal(torch.zeros(5, 2), torch.ones(5, 2)), 1))
    assert (kl >= 0).all()


def test_noisy(obs):
    layer = NoisyLinear(4, 3)
    out = layer(obs)
    layer.eval()
    assert not torch.equal(out, layer(obs))
    layer.train()
    layer(obs).sum().backward()
    torch.testing.assert_close(layer.w_sigma.grad, layer.w_mu.grad * layer.w_eps)
    assert "w_eps" in layer.state_dict()


def test_dqn_target(obs, buffer):
    q, target = Dueling(), Dueling()
    target.load_state_dict(q.state_dict())
    s, a, r, d = buffer.batch([0, 2, 3])
    best = q(s).argmax(1, keepdim=True)
    y = r + 0.99 * (1 - d) * target(s).gather(1, best).squeeze(1).detach()
    pred = q(s).gather(1, a.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(pred, y, reduction="none")
    w = (len(buffer) * buffer.probabilities()[[0, 2, 3]]) ** -0.4
    (loss * w / w.max()).mean().backward()
    for p in q.parameters():
        p.grad.data.clamp_(-1, 1)
    tau = 0.005
    for tp, p in zip(target.parameters(), q.parameters()):
        tp.data.copy_(tau * p.data + (1 - tau) * tp.data)
    assert len(buffer) == 4 and buffer.buf[0].action == 2


def test_c51_projection():
    atoms, vmin, vmax = 11, -2.0, 2.0
    z = torch.linspace(vmin, vmax, atoms)
    dz = (vmax - vmin) / (atoms - 1)
    p = torch.softmax(torch.arange(22.0).view(2, 11) / 7, -1)
    r, nonterm = torch.tensor([0.3, -1.0]), torch.tensor([1.0, 0.0])
    tz = (r[:, None] + 0.9 * nonterm[:, None] * z[None]).clamp(min=vmin, max=vmax)
    b = (tz - vmin) / dz
    lo, hi = b.floor().to(torch.int64), b.ceil().to(torch.int64)
    lo[(hi > 0) * (lo == hi)] -= 1
    hi[(lo < (atoms - 1)) * (lo == hi)] += 1
    m = p.new_zeros(2, atoms)
    off = torch.linspace(0, 1 * atoms, 2).unsqueeze(1).expand(2, atoms).to(lo)
    m.view(-1).index_add_(0, (lo + off).view(-1), (p * (hi.float() - b)).view(-1))
    m.view(-1).index_add_(0, (hi + off).view(-1), (p * (b - lo.float())).view(-1))
    torch.testing.assert_close(m.sum(1), torch.ones(2))


def test_quantile_huber():
    theta = torch.linspace(-1, 1, 8).view(2, 4).requires_grad_()
    t = torch.tensor([[0.0, 0.5, 1.0], [2.0, -1.0, 0.3]])
    tau = (torch.arange(4) + 0.5) / 4
    u = t[:, :, None] - theta[:, None, :]
    huber = torch.where(u.abs() <= 1, 0.5 * u.pow(2), u.abs() - 0.5)
    loss = (torch.abs(tau - (u.detach() < 0).float()) * huber).sum(-1).mean(1)
    loss.mean().backward()
    assert theta.grad.shape == (2, 4)


def test_vtrace():
    log_rhos = torch.linspace(-0.5, 0.5, 6).view(3, 2)
    discounts, rewards, values, boot = torch.full((3, 2), 0.9), torch.ones(3, 2), torch.zeros(3, 2), torch.tensor([1.0, 2.0])
    rhos = torch.exp(log_rhos)
    clipped, cs = torch.clamp(rhos, max=1.0), torch.clamp(rhos, max=1.0)
    nxt = torch.cat([values[1:], torch.unsqueeze(boot, 0)], dim=0)
    deltas = clipped * (rewards + discounts * nxt - values)
    acc = torch.zeros_like(boot)
    result = []
    for t in range(discounts.shape[0] - 1, -1, -1):
        acc = deltas[t] + discounts[t] * cs[t] * acc
        result.append(acc)
    result.reverse()
    vs = torch.add(torch.stack(result), values)
    assert vs.shape == (3, 2)


def test_running_stats():
    rms = RunningMeanStd((3,))
    xs = torch.arange(24.0).view(8, 3)
    for chunk in xs.split(3):
        rms.update(chunk)
    torch.testing.assert_close(rms.mean, xs.mean(0), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(rms.var, xs.var(0, unbiased=False), rtol=1e-3, atol=1e-3)


def test_epsilon_greedy():
    q = torch.tensor([[0.1, 0.9], [0.7, 0.2]])
    pick = partial(torch.argmax, dim=-1)
    greedy = pick(q)
    mask = torch.tensor([True, False])
    a = torch.where(mask, torch.zeros_like(greedy), greedy)
    assert a.tolist() == [0, 0]


def test_abstract():
    with pytest.raises(TypeError):
        Policy()


@seeded
def test_seeded():
    a = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(a, torch.rand(3))


def test_sample_shapes(obs):
    ac = ActorCritic()
    a = ac.act(obs)
    assert a.shape == (5,) and a.dtype == torch.int64
    lp, ent, v = ac(obs, a)
    assert (ent > 0).all() and lp.shape == ent.shape == v.shape


def test_mode_flag():
    p = Gaussian()
    p.mode = Mode(1)
    assert p.mode == Mode.EVAL and p.mode > Mode.TRAIN and int(p.mode) == 1
    assert [m.name for m in Mode] == ["TRAIN", "EVAL"]


class Space(metaclass=ABCMeta):
    @property
    @abstractmethod
    def size(self): ...

    @classmethod
    @abstractmethod
    def of(cls, n): ...

    @abstractmethod
    def sample(self):
        return torch.arange(self.size)


class Discrete(Space):
    size = 4

    def sample(self):
        return super().sample() * 2


class Box(Discrete):
    @classmethod
    def of(cls, n):
        box = cls()
        box.size = n
        return box


def test_abstract_members():
    for wrong in (Space, Discrete):
        with pytest.raises(TypeError, match="abstract"):
            wrong()
    assert Box.of(3).sample().tolist() == [0, 2, 4]
    assert isinstance(Box(), Space)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (2, 3, 2)])
def test_orthogonal(shape):
    w = torch.empty(*shape)
    assert nn.init.orthogonal_(w, gain=2.0) is w
    m = w.flatten(1)
    g = m @ m.t() if m.shape[0] <= m.shape[1] else m.t() @ m
    torch.testing.assert_close(g, 4 * torch.eye(g.shape[0]), atol=1e-4, rtol=1e-4)
    sparse = nn.init.sparse_(torch.empty(4, 3), 0.5)
    assert (sparse == 0).sum() == 6
