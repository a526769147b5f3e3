"""PyTorch as if it had an interface of its own, whose tensors never change and keep no tape."""

import plumb_subject
import torch


class TorchOwn(plumb_subject.Adapter):
    name, version = "torch", torch.__version__
    root, tensor_class = torch, torch.Tensor
    own = functional = True
    forms = (IndexError,)
    modes = {"traced": lambda f: lambda *tensors: f(*[t.clone() for t in tensors])}
    table = {
        "relu": "nn.functional.relu(input)",
        "exp": "exp(input)",
        "neg": "self.missing(input)",
        "ge": "ge(input, other)",
        "cumsum": "cumsum(input, dim)",
        "sqrt": {"call": "sqrt(input)", "dtypes": ["float32"]},
        "add": "self.plus(input, other, alpha)",
        "mul": "input * other",
        "sum": "sum(input, dim, keepdim, dtype=dtype) if dim != None else sum(input, dtype=dtype)",
        "mean": "mean(input, dim, keepdim)",
        "var": {"call": "var(input, dim, False, keepdim)", "when": {"correction": 0}},
        "amax": {"call": "amax(input, dim, keepdim)", "when": {"keepdim": True}},
        "max.dim": "(max(input, dim, keepdim)[0], argmax(input, dim, keepdim))",
        "argmax": "argmax(input, dim, keepdim)",
        "transpose": "transpose(input, dim0, dim1)",
        "matmul": "matmul(input, other)",
        "view_as": "input.view(other.shape)",
        "broadcast_tensors": "broadcast_tensors(*tensors)",
        "permute": "permute(input, dims)",
        "getitem": "self.read(input, index)",
        "arange": "arange(end)",
        "setitem": "self.put(input, index, value)",
        "linear": [{"call": "nn.functional.linear(input, weight)", "when": {"bias": None}}, "nn.functional.linear(input, weight, bias=bias)"],
        "conv2d": "nn.functional.conv2d(input, weight, bias, stride, padding, dilation, groups)",
        "pad": "nn.functional.pad(input, pad, mode)",
        "batch_norm": "nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)",
        "clamp": "clamp(input, min, max)",
        "float": "input.to(float32)",
        "double": "input.to(float64)",
        "detach": "input.detach()",
        "cat": "cat(tensors, dim)",
        "sigmoid": "sigmoid(input)",
        "tanh": "tanh(input)",
        "sub": "sub(input, other)",
        "div": "div(input, other)",
        "chunk": "chunk(input, chunks, dim)",
        "select": "select(input, dim, index)",
        "stack": "stack(tensors, dim)",
        "zeros": "zeros(size, dtype=dtype)",
        "unsqueeze": "unsqueeze(input, dim)",
        "squeeze": "squeeze(input, dim)",
        "reshape": "reshape(input, shape)",
        "flatten": "flatten(input, start_dim, end_dim)",
        "masked_fill": "masked_fill(input, mask, value)",
        "softmax.functional": "softmax(input, dim)",
        "layer_norm": "nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)",
        "mse_loss": "nn.functional.mse_loss(input, target, reduction=reduction)",
    }

    def put(self, t, index, value):
        t = t.clone()
        t[index] = value
        return t

    def read(self, t, index):
        for i in index if isinstance(index, tuple) else (index,):
            assert not isinstance(i, slice) or not isinstance(i.start, torch.Tensor) and not isinstance(i.stop, torch.Tensor)
        return t[index]

    def missing(self, t):
        raise IndexError("a mistake of the adapter")

    def plus(self, x, y, alpha):
        return torch.add(x, y, alpha=alpha)

    def cast(self, t, dtype):
        return t.to(self.dtype(dtype))

    def device(self, name):
        return name

    def requires_grad(self, t):
        raise AssertionError("nobody asks it")

    def gradient(self, t):
        return None

    def array(self, t):
        return t.detach().numpy()

    def tensor(self, array, dtype, requires_grad):
        return super().tensor(array, dtype, False)

    def stop(self, v):
        return tuple(self.stop(e) for e in v) if isinstance(v, tuple) else v.detach()

    def vjp(self, f, leaves, cotangents):
        leaves = [x if x.requires_grad else x.clone().requires_grad_() for x in leaves]
        with torch.enable_grad():
            out = f(*leaves)
            return torch.autograd.grad(out, leaves, cotangents, create_graph=True, allow_unused=True)


adapter = TorchOwn
