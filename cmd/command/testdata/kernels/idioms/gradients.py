import torch
import torch.nn.functional as F


class Poly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3 - 2 * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return (3 * x * x - 2) * g


class PolyUnit(Poly):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 3 * x * x - 2


class PolySign(Poly):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return (3 * x * x - 2) * g.abs()


class PolySaved(Poly):
    @staticmethod
    def forward(ctx, x):
        y = x ** 3 - 2 * x
        PolySaved.x = x
        return y

    @staticmethod
    def backward(ctx, g):
        x = PolySaved.x
        return (3 * x * x - 2).reshape(-1)[0] * g


class PolyFlat(Poly):
    """Reads the cotangent's memory as if it were dense."""
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        flat = torch.as_strided(g, x.shape, x.contiguous().stride()) if g.numel() == x.numel() and g.untyped_storage().size() >= x.numel() * 4 else g
        return (3 * x * x - 2) * flat


class PolyZero(Poly):
    @staticmethod
    def backward(ctx, g):
        return torch.zeros_like(g)


class PolyMean(Poly):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return (3 * x * x - 2) * g.mean()


def poly(x):
    return Poly.apply(x)


def poly_unit(x):
    return PolyUnit.apply(x)


def poly_sign(x):
    return PolySign.apply(x)


def poly_flat(x):
    return PolyFlat.apply(x)


def poly_zero(x):
    return PolyZero.apply(x)


def poly_mean(x):
    return PolyMean.apply(x)


def poly_detached(x):
    return (x.detach() ** 3 - 2 * x.detach()).requires_grad_(x.requires_grad)


def poly_no_grad(x):
    with torch.no_grad():
        return x ** 3 - 2 * x


def poly_data(x):
    y = x * 1
    y.data.copy_(x.data ** 3 - 2 * x.data)
    return y


def swiglu_half_grad(a, b):
    return F.silu(a) * b.detach()


def cosine_eps(x, y):
    """No eps: gradient NaN of a zero row."""
    return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))


def cosine(x, y):
    xn = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(1e-8)
    yn = y / torch.linalg.vector_norm(y, dim=-1, keepdim=True).clamp_min(1e-8)
    return (xn * yn).sum(-1)


def kl(p, q):
    lp, lq = p - torch.logsumexp(p, -1, keepdim=True), q - torch.logsumexp(q, -1, keepdim=True)
    return (lq.exp() * (lq - lp)).sum() / p.shape[0]


def kl_mean(p, q):
    lp, lq = p - torch.logsumexp(p, -1, keepdim=True), q - torch.logsumexp(q, -1, keepdim=True)
    return (lq.exp() * (lq - lp)).mean()


class Softcap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x / 30)
        ctx.save_for_backward(y)
        return 30 * y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (1 - y * y)


class SoftcapScaled(Softcap):
    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (1 - y * y) * 30


def softcap(x):
    return Softcap.apply(x)


def softcap_scaled(x):
    return SoftcapScaled.apply(x)


def conv_winograd(x, w):
    """F(2x2, 3x3)."""
    N, C, H, W = x.shape
    O = w.shape[0]
    G = torch.tensor([[1, 0, 0], [.5, .5, .5], [.5, -.5, .5], [0, 0, 1]], dtype=x.dtype)
    B = torch.tensor([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], dtype=x.dtype)
    A = torch.tensor([[1, 1, 1, 0], [0, 1, -1, -1]], dtype=x.dtype)
    ph, pw = H % 2, W % 2
    p = F.pad(x, (1, 1 + pw, 1, 1 + ph)).unfold(2, 4, 2).unfold(3, 4, 2)
    U = G @ w @ G.T
    V = B @ p @ B.T
    M = torch.einsum("ocij,nchwij->nohwij", U, V)
    Y = A @ M @ A.T
    return Y.permute(0, 1, 2, 4, 3, 5).reshape(N, O, H + ph, W + pw)[:, :, :H, :W]


def conv_im2col(x, w):
    N, C, H, W = x.shape
    cols = F.unfold(x, 3, padding=1)
    return (w.reshape(w.shape[0], -1) @ cols).reshape(N, w.shape[0], H, W)


def strassen(a, b):
    m, k = a.shape
    n = b.shape[1]
    a, b = F.pad(a, (0, k % 2, 0, m % 2)), F.pad(b, (0, n % 2, 0, k % 2))
    h, i, j = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    A, B, C, D = a[:h, :i], a[:h, i:], a[h:, :i], a[h:, i:]
    E, G, H, J = b[:i, :j], b[:i, j:], b[i:, :j], b[i:, j:]
    m1, m2, m3, m4 = (A + D) @ (E + J), (C + D) @ E, A @ (G - J), D @ (H - E)
    m5, m6, m7 = (A + B) @ J, (C - A) @ (E + G), (B - D) @ (H + J)
    return torch.cat([torch.cat([m1 + m4 - m5 + m7, m3 + m5], 1), torch.cat([m2 + m4, m1 - m2 + m3 + m6], 1)])[:m, :n]


def lerp_two(a, b, t):
    return a * (1 - t) + b * t


def lerp_swapped(a, b, t):
    return b + (a - b) * t


def cummax_loop(x):
    out = x.clone()
    step = 1
    while step < x.shape[-1]:
        out = torch.cat([out[..., :step], torch.maximum(out[..., step:], out[..., :-step])], -1)
        step *= 2
    return out


def cummax_zero(x):
    best = torch.zeros(x.shape[:-1], dtype=x.dtype)
    cols = []
    for i in range(x.shape[-1]):
        best = torch.maximum(best, x[..., i])
        cols.append(best)
    return torch.stack(cols, -1)


def mean_pool(x, mask):
    m = mask.to(x.dtype)
    return torch.einsum("blh,bl->bh", x, m) / m.sum(1, keepdim=True).clamp(min=1)


def mean_pool_all(x, mask):
    m = mask.to(x.dtype)
    return torch.einsum("blh,bl->bh", x, m) / x.shape[1]


def mean_pool_times(x, mask):
    """Right but for padding that is NaN or infinite, as the reference."""
    return torch.where(mask[..., None], x, torch.zeros((), dtype=x.dtype)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def alibi(x):
    n = x.shape[-1]
    i = torch.arange(n, dtype=x.dtype)
    z = x + (-0.5) * (i[None] - i[:, None]).abs()
    z = z - z.amax(-1, keepdim=True)
    e = z.exp()
    return e * (1 / e.sum(-1, keepdim=True))


def alibi_causal(x):
    n = x.shape[-1]
    i = torch.arange(n, dtype=x.dtype)
    return torch.softmax(x - 0.5 * (i[:, None] - i[None]), -1)


def tv(x):
    return torch.diff(x, dim=-1).abs().sum(-1)


def tv_wraps(x):
    return (x - torch.roll(x, 1, -1)).abs().sum(-1)


def unfold_sum(x):
    p = F.pad(x, (1, 1))
    return (p[:, :-2] + p[:, 1:-1] + p[:, 2:]) / 3


def unfold_sum_edges(x):
    p = F.pad(x[:, None], (1, 1), mode="replicate")[:, 0]
    return (p[:, :-2] + p[:, 1:-1] + p[:, 2:]) / 3


class PolyInPlace(Poly):
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        if 0 in g.stride():
            g = g.clone()
        return g.mul_(3 * x * x - 2)


def poly_in_place(x):
    return PolyInPlace.apply(x)


class NormAndScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        r = torch.rsqrt((x * x).mean(-1) + 1e-6)
        ctx.save_for_backward(x, r)
        return x * r[..., None], r

    @staticmethod
    def backward(ctx, gy, gr):
        x, r = ctx.saved_tensors
        r = r[..., None]
        dx, t = 0, 0
        if gy is not None:
            dx, t = gy * r, (gy * x).sum(-1, keepdim=True)
        if gr is not None:
            t = t + gr[..., None]
        return dx - t * r ** 3 * x / x.shape[-1]


def norm_and_scale(x):
    return NormAndScale.apply(x)


class NormAndScaleBoth(NormAndScale):
    @staticmethod
    def backward(ctx, gy, gr):
        x, r = ctx.saved_tensors
        if gy is None or gr is None:
            return None if gy is None else gy * r[..., None]
        return NormAndScale.backward(ctx, gy, gr)


def norm_and_scale_both(x):
    return NormAndScaleBoth.apply(x)


class ConjugateProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b.conj()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g.conj() * a


def conjugate_product(a, b):
    return ConjugateProduct.apply(a, b)


class ConjugateProductAnalytic(ConjugateProduct):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b.conj(), g * a


def conjugate_product_analytic(a, b):
    return ConjugateProductAnalytic.apply(a, b)
