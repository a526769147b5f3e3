# The functions of einops, as calls of torch: reshape, permute, reductions, expand.
import torch


def _side(text):
    """The groups of one side of a pattern: lists of names, and an ellipsis of its own."""
    groups, inner = [], None
    for i, token in enumerate(text.replace("(", " ( ").replace(")", " ) ").split()):
        if token.isdigit() and token != "1":
            token = "%s#%d%s" % (token, i, text)  # an axis of its own
        if token == "1" and inner is not None:
            continue
        if token == "(":
            inner = []
        elif token == ")":
            groups.append(inner)
            inner = None
        elif inner is not None:
            inner.append(token)
        elif token == "...":
            groups.append(token)
        else:
            groups.append([] if token == "1" else [token])
    return groups


def _spread(groups, names):
    """The groups with names in the place of an ellipsis."""
    out = []
    for g in groups:
        if g == "...":
            out.extend([[n] for n in names])
        else:
            out.append([m for n in g for m in (names if n == "..." else [n])])
    return out


def _solved(groups, shape, sizes, others):
    """The length of each axis of the left side, and of those that are numbers."""
    known = dict(sizes)
    known.update({a: int(a.split("#")[0]) for a in others if "#" in a})
    for g, n in zip(groups, shape):
        missing = [a for a in g if a not in known]
        rest = 1
        for a in g:
            rest = rest * known.get(a, 1)
        if len(missing) > 1 or n % rest != 0 or (not missing and rest != n):
            raise RuntimeError("einops: the axes %s do not make a length of %d" % (g, n))
        if missing:
            known[missing[0]] = n // rest
    return known


def _apply(x, pattern, reduction, sizes):
    if isinstance(x, (list, tuple)):
        x = torch.stack(list(x))
    left, right = [_side(s) for s in pattern.split("->")]
    names = []
    if [g for g in left if "..." in g]:
        names = ["_%d" % i for i in range(x.dim() - len(left) + 1)]
    left, right = _spread(left, names), _spread(right, names)
    if len(left) != x.dim():
        raise RuntimeError("einops: a pattern of %d axes for a tensor of %d" % (len(left), x.dim()))
    before = [a for g in left for a in g]
    after = [a for g in right for a in g]
    known = _solved(left, list(x.shape), sizes, before + after)
    x = x.reshape([known[a] for a in before])
    gone = [i for i, a in enumerate(before) if a not in after]
    if gone:
        if reduction is None:
            raise RuntimeError("einops: the axes %s are on one side alone" % [before[i] for i in gone])
        if reduction == "prod":
            for i in reversed(gone):
                x = x.prod(dim=i)
        else:
            x = getattr(x, {"max": "amax", "min": "amin"}.get(reduction, reduction))(dim=gone)
        before = [a for a in before if a in after]
    kept = [a for a in after if a in before]
    if kept != before:
        x = x.permute([before.index(a) for a in kept])
    if kept != after:
        for i, a in enumerate(after):
            if a not in before:
                x = x.unsqueeze(i)
        x = x.expand([known[a] for a in after])
    shape = []
    for g in right:
        length = 1
        for a in g:
            length = length * known[a]
        shape.append(length)
    return x.reshape(shape)


def rearrange(tensor, pattern, **axes_lengths):
    return _apply(tensor, pattern, None, axes_lengths)


def repeat(tensor, pattern, **axes_lengths):
    return _apply(tensor, pattern, None, axes_lengths)


def reduce(tensor, pattern, reduction, **axes_lengths):
    return _apply(tensor, pattern, reduction, axes_lengths)


def einsum(*args):
    equation = args[-1]
    if isinstance(args[0], str):
        equation, args = args[0], args[1:] + (None,)
    names = {}
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = ""
    for word in equation.replace(",", " , ").replace("->", " -> ").split():
        if word in (",", "->", "..."):
            text += word
            continue
        if word not in names:
            names[word] = letters[len(names)]
        text += names[word]
    return torch.einsum(text, *args[:-1])


class Rearrange(torch.nn.Module):
    def __init__(self, pattern, **axes_lengths):
        super().__init__()
        self.pattern, self.axes_lengths = pattern, axes_lengths

    def forward(self, x):
        return _apply(x, self.pattern, None, self.axes_lengths)


class Reduce(torch.nn.Module):
    def __init__(self, pattern, reduction, **axes_lengths):
        super().__init__()
        self.pattern, self.reduction, self.axes_lengths = pattern, reduction, axes_lengths

    def forward(self, x):
        return _apply(x, self.pattern, self.reduction, self.axes_lengths)
