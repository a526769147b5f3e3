# What torch makes of its own operators where it is handed functions, lists of
# parameters or other things that no subject can be given: the calls that
# PyTorch makes, recorded one by one.
import math
import random
from collections import defaultdict

import numpy as np
import torch


class ParameterList(torch.nn.Module):
    def __init__(self, values=()):
        super().__init__()
        self.size = 0
        self.extend(values)

    def append(self, value):
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            value = torch.nn.Parameter(value)
        setattr(self, str(self.size), value)
        self.size = self.size + 1
        return self

    def extend(self, values):
        for v in values:
            self.append(v)
        return self

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        at = list(range(self.size))[i]
        if isinstance(at, list):
            return ParameterList([getattr(self, str(k)) for k in at])
        return getattr(self, str(at))

    def __iter__(self):
        return iter([getattr(self, str(k)) for k in range(self.size)])


class ParameterDict(torch.nn.Module):
    def __init__(self, parameters=None):
        super().__init__()
        self.order = []
        self.update({} if parameters is None else parameters)

    def update(self, parameters):
        for name, value in parameters.items():
            self[name] = value

    def __setitem__(self, name, value):
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            value = torch.nn.Parameter(value)
        if name not in self.order:
            self.order.append(name)
        setattr(self, name, value)

    def __getitem__(self, name):
        return getattr(self, name)

    def __contains__(self, name):
        return name in self.order

    def __len__(self):
        return len(self.order)

    def __iter__(self):
        return iter(self.order)

    def keys(self):
        return list(self.order)

    def values(self):
        return [getattr(self, name) for name in self.order]

    def items(self):
        return [(name, getattr(self, name)) for name in self.order]


class Loss(torch.nn.Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        if reduce is not None and not reduce:
            reduction = "none"
        elif size_average is not None or reduce is not None:
            reduction = "mean" if size_average is None or size_average else "sum"
        self.reduction = reduction


class WeightedLoss(Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class WeightNormed(torch.nn.Module):
    """A module whose weight is a length times a direction, each of them a parameter."""

    def __init__(self, module, dim):
        super().__init__()
        self.dims = None if dim is None or dim == -1 else [d for d in range(module.weight.dim()) if d != dim % module.weight.dim()]
        self.whole = [module]
        self.weight_g = torch.nn.Parameter(self.length(module.weight.detach()))
        self.weight_v = torch.nn.Parameter(module.weight.detach())
        bias = None if isinstance(module, torch.nn.Embedding) else module.bias
        self.bias = bias if bias is None else torch.nn.Parameter(bias.detach())

    def length(self, v):
        return torch.norm(v) if self.dims is None else torch.norm(v, 2, self.dims, True)

    def forward(self, input):
        F, m = torch.nn.functional, self.whole[0]
        weight = self.weight_v * (self.weight_g / self.length(self.weight_v))
        if isinstance(m, torch.nn.Linear):
            return F.linear(input, weight, self.bias)
        if isinstance(m, torch.nn.Embedding):
            return F.embedding(input, weight)
        convolve = F.conv1d if isinstance(m, torch.nn.Conv1d) else F.conv2d if isinstance(m, torch.nn.Conv2d) else F.conv3d
        return convolve(input, weight, self.bias, m.stride, m.padding, m.dilation, m.groups)


def weight_norm(module, name="weight", dim=0):
    plain = isinstance(module, (torch.nn.Linear, torch.nn.Embedding))
    if name != "weight" or not plain and not isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):
        raise NotImplementedError("weight_norm is there for the weight of Linear, Embedding, Conv1d, Conv2d and Conv3d")
    normed = WeightNormed(module, dim)

    def replaced(*_):
        raise NotImplementedError("weight_norm: call the module that it returned, not the one that it was given")

    module.register_forward_pre_hook(replaced)
    return normed


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """The form whose reduction is a number."""
    kind = ["none", "mean", "sum"][reduction]
    return torch.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    if len(grads) == 0:
        return torch.tensor(0.0)
    with torch.no_grad():
        if norm_type == float("inf"):
            total = torch.stack([g.detach().abs().max() for g in grads]).max()
        else:
            total = torch.norm(torch.stack([torch.norm(g.detach(), norm_type) for g in grads]), norm_type)
        coefficient = torch.clamp(max_norm / (total + 1e-6), max=1.0)
        for g in grads:
            g.detach().mul_(coefficient)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.grad.clamp_(min=-clip_value, max=clip_value)


def parameters_to_vector(parameters):
    return torch.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    at = 0
    for p in parameters:
        n = p.numel()
        with torch.no_grad():
            p.copy_(vec[at : at + n].view_as(p))
        at += n


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    n = len(tensors)
    grads = [None] * n if grad_tensors is None else grad_tensors
    for i, (t, g) in enumerate(zip(tensors, grads)):
        keep = True if i < n - 1 else retain_graph
        t.backward(g, retain_graph=keep, create_graph=create_graph)


def einsum(*args):
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def text(sublist):
        return "".join(["..." if s is Ellipsis else letters[s] for s in sublist])

    n = len(args) // 2
    equation = ",".join([text(args[2 * i + 1]) for i in range(n)])
    if len(args) % 2 == 1:
        equation += "->" + text(args[-1])
    return torch.einsum(equation, *[args[2 * i] for i in range(n)])


class GradientHook(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, hook):
        ctx.hook = hook
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        replaced = ctx.hook(grad)
        return (grad if replaced is None else replaced), None


def cast(x, dtype):
    return x.to(dtype)


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=0.001, raise_exception=True, **others):
    inputs = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
    checked = [n for n, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")

    def outputs(args):
        out = func(*args)
        parts = []
        for y in [out] if isinstance(out, torch.Tensor) else list(out):
            parts += [y.real, y.imag] if y.is_complex() else [y]
        return parts

    results = outputs(inputs)
    smooth = [k for k, y in enumerate(results) if y.is_floating_point() and y.requires_grad and y.numel() > 0]
    right = True
    for n in checked:
        x = inputs[n]
        size = x.numel()

        def moved(i, by):
            step = torch.zeros(size, dtype=x.dtype)
            step[i] = by
            return outputs(inputs[:n] + [(x.detach() + step.view_as(x)).requires_grad_()] + inputs[n + 1 :])

        ends = [[moved(i, -eps), moved(i, eps)] for i in range(size)]
        across = [[moved(i, -eps * 1j), moved(i, eps * 1j)] for i in range(size)] if x.is_complex() else []
        for k in smooth if size > 0 else []:
            y = results[k]

            def slopes(ends):
                return torch.stack([((hi[k] - lo[k]) / (2 * eps)).detach().reshape(-1) for lo, hi in ends], 1)

            numerical = torch.complex(slopes(ends), slopes(across)) if x.is_complex() else slopes(ends)
            if torch.autograd.grad(y.sum(), x, retain_graph=True, allow_unused=True)[0] is None:
                analytical = torch.zeros_like(numerical)
            else:
                rows = [torch.autograd.grad(e, x, retain_graph=True)[0].reshape(-1) for e in y.reshape(-1)]
                analytical = torch.stack(rows)
            right = right and bool(torch.allclose(analytical, numerical, rtol, atol))
    if raise_exception and not right:
        raise RuntimeError("Jacobian mismatch: the numerical and the analytical gradient differ")
    return right


def gradgradcheck(func, inputs, grad_outputs=None, **others):
    inputs = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)

    def gradients(*xs):
        out = func(*xs)
        outs = [o for o in ([out] if isinstance(out, torch.Tensor) else list(out)) if o.requires_grad]
        along = [torch.ones_like(o) for o in outs] if grad_outputs is None else grad_outputs
        wanted = [x for x in xs if isinstance(x, torch.Tensor) and x.requires_grad]
        grads = torch.autograd.grad(outs, wanted, along, create_graph=True, allow_unused=True)
        return tuple([g for g in grads if g is not None and g.requires_grad])

    if len(gradients(*inputs)) == 0:
        return True
    return gradcheck(gradients, inputs, **{k: v for k, v in others.items() if k in ("eps", "atol", "rtol", "raise_exception")})


class TensorDataset:
    def __init__(self, *tensors):
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple([t[index] for t in self.tensors])

    def __len__(self):
        return self.tensors[0].size(0)


class IterableDataset:
    pass


class Subset:
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


class ConcatDataset:
    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __len__(self):
        return sum([len(d) for d in self.datasets])

    def __getitem__(self, index):
        at = index if index >= 0 else len(self) + index
        for d in self.datasets:
            if at < len(d):
                return d[at]
            at -= len(d)
        raise IndexError("absolute value of index should not exceed dataset length")


def random_split(dataset, lengths, generator=None):
    n = len(dataset)
    if any([isinstance(length, float) for length in lengths]) and sum(lengths) <= 1:
        parts = [int(math.floor(n * f)) for f in lengths]
        for i in range(n - sum(parts)):
            parts[i % len(parts)] += 1
        lengths = parts
    if sum(lengths) != n:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _shuffled(n)
    out, start = [], 0
    for length in lengths:
        out.append(Subset(dataset, order[start : start + length]))
        start += length
    return out


# An order that is the test's data: the same on either side.
def _shuffled(n):
    order = list(range(n))
    random.shuffle(order)
    return order


class Sampler:
    def __init__(self, data_source=None):
        pass


class SequentialSampler(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(list(range(len(self.data_source))))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source, self.replacement = data_source, replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self):
        n = len(self.data_source)
        if self.replacement:
            return iter([random.randrange(n) for _ in range(self.num_samples)])
        order = []
        while len(order) < self.num_samples:
            order += _shuffled(n)
        return iter(order[: self.num_samples])

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    def __init__(self, indices, generator=None):
        self.indices = list(indices)

    def __iter__(self):
        return iter([self.indices[i] for i in _shuffled(len(self.indices))])

    def __len__(self):
        return len(self.indices)


class BatchSampler(Sampler):
    def __init__(self, sampler, batch_size, drop_last):
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        batch = []
        for i in self.sampler:
            batch.append(i)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if len(batch) > 0 and not self.drop_last:
            yield batch

    def __len__(self):
        whole, rest = len(self.sampler) // self.batch_size, len(self.sampler) % self.batch_size
        return whole + (1 if rest and not self.drop_last else 0)


class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, **others):
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.collate_fn = default_collate if collate_fn is None else collate_fn
        self.streams = not hasattr(dataset, "__getitem__")
        self.sampler = sampler
        if sampler is None and not self.streams:
            self.sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self.batch_sampler = batch_sampler
        if batch_sampler is None and batch_size is not None and not self.streams:
            self.batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)

    def __len__(self):
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def __iter__(self):
        if self.streams:
            batch = []
            for sample in self.dataset:
                batch.append(sample)
                if len(batch) == self.batch_size:
                    yield self.collate_fn(batch)
                    batch = []
            if len(batch) > 0 and not self.drop_last:
                yield self.collate_fn(batch)
        elif self.batch_sampler is None:
            for i in self.sampler:
                sample = self.dataset[i]
                yield sample if self.collate_fn is default_collate else self.collate_fn(sample)
        else:
            for batch in self.batch_sampler:
                yield self.collate_fn([self.dataset[i] for i in batch])


def default_collate(batch):
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(list(batch))
    if isinstance(first, dict):
        return {k: default_collate([b[k] for b in batch]) for k in first}
    if isinstance(first, str):
        return list(batch)
    if isinstance(first, (tuple, list)):
        return [default_collate(list(part)) for part in zip(*batch)]
    if isinstance(first, float):
        return torch.tensor(list(batch), dtype=torch.float64)
    if isinstance(first, np.ndarray):
        return torch.stack([torch.as_tensor(b) for b in batch])
    return torch.tensor(list(batch))


def hann_window(window_length, periodic=True, dtype=torch.float32, device=None, requires_grad=False):
    if window_length == 1:
        return torch.ones(1, dtype=dtype, requires_grad=requires_grad)
    n = window_length if periodic else window_length - 1
    turns = torch.arange(window_length, dtype=dtype) * (2 * torch.pi / n)
    return (0.5 - 0.5 * torch.cos(turns)).requires_grad_(requires_grad)


# What it saves is memory: the values are those of the call.
def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    return function(*args, **kwargs)


def make_tensor(*shape, dtype, device=None, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False, memory_format=None):
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    drawn = list(shape)
    if noncontiguous and drawn:
        drawn[-1] = 2 * drawn[-1]
    if dtype == torch.bool:
        x = torch.randint(0, 2, drawn).to(dtype)
    elif dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        info = torch.iinfo(dtype)
        least = max(info.min, -9 if low is None else int(math.ceil(low)))
        most = min(info.max, 10 if high is None else int(math.floor(high)))
        x = torch.randint(least, most, drawn, dtype=dtype)
    else:
        least, most = -9 if low is None else low, 9 if high is None else high
        x = torch.rand(drawn, dtype=dtype) * (most - least) + least
    if exclude_zero:
        x = torch.where(x == 0, torch.ones_like(x), x)
    if noncontiguous and drawn:
        x = x[..., ::2]
    return x.detach().requires_grad_(requires_grad)


# Those of PyTorch's own TestCase, which hold tensors to be close.
def assertEqual(x, y, msg=None, *, atol=None, rtol=None, equal_nan=True, exact_dtype=True, exact_device=False, exact_layout=False, exact_stride=False, exact_is_coalesced=False):
    if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
        if not isinstance(x, torch.Tensor):
            x, exact_dtype = torch.tensor(x, dtype=y.dtype), False
        if not isinstance(y, torch.Tensor):
            y, exact_dtype = torch.tensor(y, dtype=x.dtype), False
        torch.testing.assert_close(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=exact_dtype)
    elif isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        assert len(x) == len(y), "sequences of %d and %d elements" % (len(x), len(y))
        for a, b in zip(x, y):
            assertEqual(a, b, atol=atol, rtol=rtol, equal_nan=equal_nan, exact_dtype=exact_dtype)
    elif isinstance(x, dict) and isinstance(y, dict):
        assert sorted(x) == sorted(y), "the keys differ"
        for k in x:
            assertEqual(x[k], y[k], atol=atol, rtol=rtol, equal_nan=equal_nan, exact_dtype=exact_dtype)
    elif isinstance(x, float) or isinstance(y, float) or hasattr(x, "dtype") and hasattr(x, "shape"):
        torch.testing.assert_close(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False)
    else:
        assert x == y, "%s != %s" % (x, y)


def assertNotEqual(x, y, msg=None, *, atol=None, rtol=None):
    try:
        assertEqual(x, y, atol=atol, rtol=rtol)
    except AssertionError:
        return
    raise AssertionError("%s == %s" % (x, y))


def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    longest = max([s.size(0) for s in sequences])
    rows = []
    for s in sequences:
        end = [0, 0] * (s.dim() - 1) + [0, longest - s.size(0)]
        rows.append(torch.nn.functional.pad(s, end, value=padding_value))
    return torch.stack(rows, dim=0 if batch_first else 1)


# What a file's own optimizers derive from.
class Optimizer:
    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group):
        group = dict(group)
        params = group["params"]
        group["params"] = [params] if isinstance(params, torch.Tensor) else list(params)
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if set_to_none:
                        p.grad = None
                    else:
                        p.grad.detach_()
                        p.grad.zero_()

    def state_dict(self):
        return {"state": dict(self.state), "param_groups": [{k: v for k, v in g.items()} for g in self.param_groups]}

    def step(self, closure=None):
        raise NotImplementedError
