"""Paddle: its functions are in paddle.json, its tape records as PyTorch's does."""

import linecache
import os
import warnings

os.environ.setdefault("GLOG_minloglevel", "3")
warnings.filterwarnings("ignore", "No ccache found")

import paddle
import plumb_subject
from plumb_names import Unsupported
from plumb_table import Module, promoted


paddle.disable_signal_handler()  # which may wait for ever in a process whose memory is broken

# Paddle reads the source of what it captures, when the file may be gone: a line
# cache without a time is not looked up again.
linecache.cache[__file__] = (0, None, linecache.getlines(__file__), __file__)


POWERS = ("float32", "float64", "int32", "int64", "complex64", "complex128")  # the dtypes of powers of a number
HELD = []  # what was captured: Paddle 3.3 ends the process in a later call where it is freed


def to_static(program, tensors, modules):
    """Runs a program as the static one that Paddle writes of it; its parameters are found where it reads them."""
    body = paddle.jit.not_to_static(lambda given: program(given, modules))

    def captured(given):
        return body(given)

    HELD.append(paddle.jit.to_static(captured, full_graph=True))
    return HELD[-1](tensors)


# What PyTorch's tape is asked for in calls.

def backward(adapter, t, gradient=None, retain_graph=None):
    if gradient is None and t.size != 1:
        raise Unsupported("the gradient of a loss that is no number is ones")
    paddle.autograd.backward([t], [gradient], bool(retain_graph))


def gradients(adapter, outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    return tuple(paddle.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused=allow_unused))


def requiring(adapter, t, requires_grad=True):
    t.stop_gradient = not requires_grad
    return t


def retain(adapter, t):
    t.retain_grads()


def parameter(adapter, data, requires_grad=True):
    return requiring(adapter, data.detach(), requires_grad)


def assign(adapter, owner, name, value):
    if name == "requires_grad" and adapter.is_tensor(owner):
        requiring(adapter, owner, value)
    elif name == "grad" and value is None:
        owner.clear_gradient(False)  # to None, not to zeros
    elif isinstance(owner, Module) and name in owner.state:
        owner.state[name] = value
    else:
        raise Unsupported("attribute %s cannot be assigned" % name)


class Paddle(plumb_subject.Adapter):
    name, version = "paddle", paddle.__version__
    root, tensor_class = paddle, paddle.Tensor
    own = True
    modes = {"to_static": to_static}
    table = plumb_subject.table("paddle.json")
    gaps = (
        "The kernel with key", "` is not registered", "Type promotion only support", "must be Tensor, but got", "does not match the type of data",
        "The data_type of input tensor in list", "not implemented", "not supported", "has no attribute", "Unimplemented",
        "PreconditionNotMet", "PermissionDenied",  # what a gradient needs, PyTorch's may not, was changed in place
        "doesn't have any grad op", "The TensorWrappers of",  # of a graph that was used up
    )
    watches = True
    calls = {"Tensor.backward": backward, "Tensor.requires_grad_": requiring, "torch.autograd.grad": gradients, "torch.nn.Parameter": parameter,
             "torch.nn.parameter.Parameter": parameter, "Tensor.retain_grad": retain, "setattr": assign}
    forms = (TypeError, ValueError, AssertionError)

    def seed(self, n):
        paddle.seed(n)

    def device(self, name):
        return name

    def tensor(self, array, dtype, requires_grad):
        t = paddle.to_tensor(array)
        t = t.astype(dtype) if dtype == "bfloat16" else t
        t.stop_gradient = not requires_grad
        return t

    def array(self, t):
        t = t.detach()
        return (t.astype("float32") if t.dtype == paddle.bfloat16 else t).numpy()

    def cast(self, t, dtype):
        return t.astype(dtype)

    def requires_grad(self, t):
        return not t.stop_gradient and (t.is_floating_point() or t.is_complex())

    def backward(self, values, cotangents):
        for v, cotangent in zip(values, cotangents):  # together they may not depend on each other
            paddle.autograd.backward([v], [cotangent], True)

    def backward_once(self, values, cotangents):
        summed = {}  # Paddle takes no tensor twice
        for v, cotangent in zip(values, cotangents):
            _, before = summed.get(id(v), (v, None))
            summed[id(v)] = v, cotangent if before is None else before + cotangent
        paddle.autograd.backward(*map(list, zip(*summed.values())))

    def is_tensor(self, v):
        return isinstance(v, (paddle.Tensor, paddle.pir.Value))

    def gradients_of(self, values, wanted, cotangents, create_graph):
        return paddle.grad(values, wanted, cotangents, retain_graph=True, create_graph=create_graph, allow_unused=True)

    def gap(self, e):
        # A function of C may go on after an exception, which is told as the cause of another.
        return super().gap(e) or isinstance(e, SystemError) and isinstance(e.__cause__, self.forms)

    # What the calls of the table use.

    def pair(self, *values):
        """Returns tensors of one dtype: numbers become such too, as in Paddle's operators."""
        dtype = promoted(self, values)
        return [paddle.full([], v, dtype) if not self.is_tensor(v) else v.astype(dtype) if self.dtype_name(v.dtype) != dtype else v
                for v in values]

    def power(self, base, exponent):
        """Returns what pow takes, which has a kernel for numbers in the dtypes POWERS."""
        base, power = self.pair(base, exponent)
        return (base, power) if self.is_tensor(exponent) or self.dtype_name(base.dtype) not in POWERS else (base, exponent)

    def rank(self, t, *ranks):
        """Returns a tensor, which has to have a batch."""
        if len(t.shape) not in ranks:
            raise Unsupported("no tensors of %d dimensions" % len(t.shape))
        return t

    def per(self, v, n):
        """Returns an argument of n dimensions as a list, where it is not a word and is given."""
        return v if isinstance(v, str) else list(self.each(v, n)) if isinstance(v, int) or v else None

    def spatial(self, t, v):
        """Returns a size or factor of each dimension of an image, which may be given as one for all."""
        return [v] * (len(t.shape) - 2) if isinstance(v, (int, float)) else v

    def plane(self, t, dim):
        """Returns the dimensions of the matrices whose norm is asked for; None where it is that of vectors."""
        return (0, 1) if dim is None and len(t.shape) == 2 else dim if isinstance(dim, (tuple, list)) and len(dim) == 2 else None

    def doubled(self, *values):
        return [v.astype("float64") if self.is_tensor(v) else float(v) for v in values]

    def sought(self, t, among):
        """Returns tensors; a number among which is sought is a list of one."""
        t, listed = self.pair(t, among)
        return t, listed if self.is_tensor(among) else listed.reshape([1])

    def whole(self, v):
        return isinstance(v, int)

    def kind(self, v, dtype):
        """Returns the dtype of what is made of a number."""
        return dtype or {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(v)]

    def leaf(self, t, requires_grad):
        return requiring(self, t, requires_grad)

    def unflat(self, found, t, inverse, dim):
        """Returns unique elements, with the places of all in the shape of the tensor."""
        return (found[0], found[1].reshape(t.shape), *found[2:]) if inverse and dim is None else found

    def classes(self, t):
        return 1 if len(t.shape) > 1 else 0

    def axis(self, dim):
        return self.axes(dim) if dim is None or isinstance(dim, int) or len(dim) != 1 else dim[0]

    def flat(self, loss, t, target):
        """Returns a loss of each example, in which Paddle keeps the classes' dimension where the target has it."""
        return loss.squeeze(self.classes(t)) if len(loss.shape) == len(t.shape) == len(target.shape) else loss

    def along(self, t, dim, index):
        """Returns what indexes one dimension alone."""
        return (slice(None),) * (dim % max(len(t.shape), 1)) + (index,)

    def swapped(self, t, dim0, dim1):
        """Returns the order of the dimensions with two of them swapped."""
        order = list(range(len(t.shape)))
        if order or dim0 not in (0, -1) or dim1 not in (0, -1):
            order[dim0], order[dim1] = order[dim1], order[dim0]
        return order

    def place(self, index):
        """Returns an index; one that is a list of others is a tuple for PyTorch."""
        return tuple(index) if isinstance(index, list) and not all(isinstance(i, (bool, int)) for i in index) else index

    def labels(self, t, target):
        """Returns classes, which a weight is there for: that of probabilities is another thing in Paddle."""
        if target.dtype == t.dtype:
            raise Unsupported("no weight of classes for probabilities")
        return target

    def indexed(self, v):
        """Returns maxima with their indices, which Paddle has as int32."""
        return (v[0], v[1].astype("int64")) if isinstance(v, (tuple, list)) else v

    def ceiled(self, t, kernel, stride, padding, ceil_mode):
        """Returns the mode of a pool whose last windows begin in the image, or before it: Paddle keeps others too."""
        n = len(t.shape) - 2
        kernel, stride, padding = self.each(kernel, n), self.each(stride or kernel, n), self.each(padding, n)
        for size, k, s, p in zip(t.shape[2:], kernel, stride, padding):
            if ceil_mode and -(-(size + 2 * p - k) // s) * s >= size + p:
                raise Unsupported("windows beyond the image are left out by PyTorch alone")
        return ceil_mode

    def fixed(self, v):
        """Returns an argument, which has no gradient."""
        if self.is_tensor(v) and self.requires_grad(v):
            raise Unsupported("no gradient by an argument")
        return v

    def settled(self, v):
        """Returns a bool, which is a tensor while a program is captured."""
        if self.is_tensor(v):
            raise Unsupported("a bool is not known while a program is captured")
        return v

    def truth(self, t):
        return bool(t.item())

    def setitem_(self, t, index, v):
        t[index] = v

    def copy_(self, t, v):
        if t.shape:
            t[()] = v
            return t
        return paddle.assign(v.astype(t.dtype).reshape([]), t)  # what is without dimensions cannot be set by an index


adapter = Paddle
