"""Modules of PyTorch's that are several steps: networks over time, attention,
transformers, and what holds modules. They are made of PyTorch's functions, which
a framework's table knows.
"""

import functools
import math

from plumb_names import Unsupported
from plumb_table import MADE, STEPS, Module, call

SIDES = ("", "_reverse")  # the endings of the names of a direction's parameters


class Layers(Module):
    """A module whose call is a function of this file."""

    def __call__(self, *args, **kwargs):
        return FORWARDS[self.target[len("torch.nn."):]](self, *args, **kwargs)

    def run(self, name, *args, **kwargs):
        """Calls one of PyTorch's functions."""
        return call(self.adapter, "torch." + name, *args, **kwargs)

    def part(self, prefix, target, **arguments):
        """Returns a module within the module, whose state has the names behind a prefix."""
        made = Layers(self.adapter, "torch.nn." + target, arguments, {})
        made.training = self.training
        made.state = {name[len(prefix):]: t for name, t in self.state.items() if name.startswith(prefix)}
        return made

    def linear(self, x, weight, bias):
        return self.run("nn.functional.linear", x, self.state[weight], self.state.get(bias))

    def kept(self, p):
        """Says that nothing is drawn by a dropout."""
        if self.training and p > 0:
            raise Unsupported("no dropout within %s" % self.target)


# Networks over time.

def step(kind, run, x, state, weights):
    """Returns the states after a time; `weights` are those of the input and of the state, and their biases."""
    wi, wh, bi, bh = weights
    a, b = run("nn.functional.linear", x, wi, bi), run("nn.functional.linear", state[0], wh, bh)
    if kind in ("tanh", "relu"):
        return (run(kind, run("add", a, b)),)
    if kind == "LSTM":
        into, forget, fresh, out = run("chunk", run("add", a, b), 4, -1)
        kept = run("mul", run("sigmoid", forget), state[1])
        cell = run("add", kept, run("mul", run("sigmoid", into), run("tanh", fresh)))
        return run("mul", run("sigmoid", out), run("tanh", cell)), cell
    (xr, xz, xn), (hr, hz, hn) = run("chunk", a, 3, -1), run("chunk", b, 3, -1)
    reset, update = run("sigmoid", run("add", xr, hr)), run("sigmoid", run("add", xz, hz))
    fresh = run("tanh", run("add", xn, run("mul", reset, hn)))
    return (run("add", run("mul", run("sub", state[0], fresh), update), fresh),)


def single(kind, adapter, input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """Makes a step that a program asks for."""
    def run(name, *args):
        return call(adapter, "torch." + name, *args)

    state = step(kind, run, input, hx if kind == "LSTM" else [hx], (w_ih, w_hh, b_ih, b_hh))
    return state if len(state) > 1 else state[0]


STEPS.update({name: functools.partial(single, kind) for name, kind in
              (("lstm_cell", "LSTM"), ("gru_cell", "GRU"), ("rnn_tanh_cell", "tanh"), ("rnn_relu_cell", "relu"))})


def kind_of(m):
    """Returns which cell a module has: LSTM, GRU, or the function of a simple one."""
    name = m.target.rpartition(".")[2].replace("Cell", "")
    return m.arguments["nonlinearity"] if name == "RNN" else name


def advance(m, suffix, x, state):
    weights = [m.state.get(name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    state = step(kind_of(m), m.run, x, state, weights)
    if "weight_hr" + suffix in m.state:
        state = (m.linear(state[0], "weight_hr" + suffix, None), *state[1:])
    return state


def states_of(m, x, hx, *shape):
    """Returns the given states, or zeros; an LSTM has two."""
    sizes = [m.arguments.get("proj_size") or m.arguments["hidden_size"]] + [m.arguments["hidden_size"]] * (kind_of(m) == "LSTM")
    shapes = [(*shape, size) for size in sizes]
    if hx is None:
        return [m.run("zeros", s, dtype=x.dtype) for s in shapes]
    given = [hx] if len(sizes) == 1 else list(hx)
    if [tuple(h.shape) for h in given] != shapes:
        raise Unsupported("states of other shapes than %s takes" % m.target)
    return given


def cell(m, input, hx=None):
    ranked(m, input, 1, 2)
    state = advance(m, "", input, states_of(m, input, hx, *input.shape[:-1]))
    return state if len(state) > 1 else state[0]


def ranked(m, input, *ranks):
    if len(input.shape) not in ranks:
        raise Unsupported("%s of %d dimensions" % (m.target, len(input.shape)))


def network(m, input, hx=None):
    ranked(m, input, 2, 3)
    count, sides = m.arguments["num_layers"], SIDES[:1 + m.arguments["bidirectional"]]
    if count > 1:
        m.kept(m.arguments["dropout"])
    first = m.arguments["batch_first"] and len(input.shape) == 3
    x = m.run("transpose", input, 0, 1) if first else input
    if not x.shape[0]:
        raise Unsupported("no network over no time")
    states = states_of(m, x, hx, count * len(sides), *x.shape[1:-1])
    last = []
    for layer in range(count):
        outs = []
        for side in sides:
            begin = [m.run("select", s, 0, len(last)) for s in states]
            out, end = over(m, "_l%d%s" % (layer, side), x, begin, side)
            outs.append(out)
            last.append(end)
        x = m.run("cat", outs, -1) if len(outs) > 1 else outs[0]
    ends = tuple([m.run("stack", list(s), 0) for s in zip(*last)])
    return m.run("transpose", x, 0, 1) if first else x, ends if len(ends) > 1 else ends[0]


def over(m, suffix, x, state, reverse):
    """Runs one layer in one direction; returns what it gives at each time, and its last states."""
    n = x.shape[0]
    outs = [None] * n
    for t in reversed(range(n)) if reverse else range(n):
        state = advance(m, suffix, m.run("select", x, 0, t), state)
        outs[t] = state[0]
    return m.run("stack", outs, 0), state


# Attention.

def attention(m, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False):
    if is_causal or m.arguments["add_bias_kv"] or m.arguments["add_zero_attn"]:
        raise Unsupported("attention with is_causal, add_bias_kv or add_zero_attn")
    m.kept(m.arguments["dropout"])
    batched, first = len(query.shape) == 3, m.arguments["batch_first"]
    q, k, v = projected(m, query, key, value)
    if not batched:
        q, k, v = (m.run("unsqueeze", t, 0) for t in (q, k, v))
    elif not first:
        q, k, v = (m.run("transpose", t, 0, 1) for t in (q, k, v))
    heads = m.arguments["num_heads"]
    q, k, v = (headed(m, t, heads) for t in (q, k, v))
    scaled = m.run("div", q, math.sqrt(q.shape[-1]))
    scores = m.run("matmul", scaled, m.run("transpose", k, -2, -1))
    for mask in masks(m, attn_mask, key_padding_mask, q, k):
        scores = m.run("add", scores, mask)
    weights = m.run("nn.functional.softmax", scores, -1)
    out = m.run("flatten", m.run("transpose", m.run("matmul", weights, v), 1, 2), 2)
    out = m.linear(out, "out_proj.weight", "out_proj.bias")
    told = None
    if need_weights:
        told = m.run("mean", weights, 1) if average_attn_weights else weights
    if not batched:
        out, told = m.run("squeeze", out, 0), m.run("squeeze", told, 0) if need_weights else None
    elif not first:
        out = m.run("transpose", out, 0, 1)
    return out, told


def projected(m, *given):
    """Returns the projections of query, key and value."""
    bias = m.state.get("in_proj_bias")
    biases = (None, None, None) if bias is None else m.run("chunk", bias, 3)
    weight = m.state.get("in_proj_weight")
    weights = [m.state[name + "_proj_weight"] for name in "qkv"] if weight is None else m.run("chunk", weight, 3)
    return [m.run("nn.functional.linear", *each) for each in zip(given, weights, biases)]


def headed(m, t, heads):
    """Returns [batch, heads, time, features]."""
    batch, time, features = t.shape
    return m.run("transpose", m.run("reshape", t, (batch, time, heads, features // heads)), 1, 2)


def masks(m, mask, padding, q, k):
    """Lists what is added to the scores."""
    batch, heads, rows, columns = *q.shape[:3], k.shape[2]
    if mask is not None:
        many = len(mask.shape) == 3
        yield additive(m, m.run("reshape", mask, (batch, heads, rows, columns) if many else (1, 1, rows, columns)), q)
    if padding is not None:
        yield additive(m, m.run("reshape", padding, (batch, 1, 1, columns)), q)


def additive(m, mask, t):
    """Returns 0 and -inf of a mask that is true where nothing is attended to."""
    if not m.adapter.dtype_name(mask.dtype).startswith("bool"):
        return mask
    return m.run("masked_fill", m.run("zeros", tuple(mask.shape), dtype=t.dtype), mask, -math.inf)


# Transformers.

def norm(m, name, x):
    shape = (m.arguments["d_model"],)
    return m.run("nn.functional.layer_norm", x, shape, m.state[name + ".weight"], m.state.get(name + ".bias"), m.arguments["layer_norm_eps"])


def residual(m, i, x, f):
    """Adds what f gives; the norm comes before f with norm_first, else after the sum."""
    name = "norm%d" % i
    return m.run("add", x, f(norm(m, name, x))) if m.arguments["norm_first"] else norm(m, name, m.run("add", x, f(x)))


def attended(m, name, x, memory, mask, padding):
    inner = m.part(name + ".", "MultiheadAttention", embed_dim=m.arguments["d_model"], num_heads=m.arguments["nhead"], dropout=0.0,
                   add_bias_kv=False, add_zero_attn=False, batch_first=m.arguments["batch_first"])
    return inner(x, memory, memory, padding, False, mask)[0]


def feed(m, x):
    x = m.run("nn.functional." + m.arguments["activation"], m.linear(x, "linear1.weight", "linear1.bias"))
    return m.linear(x, "linear2.weight", "linear2.bias")


def encoder_layer(m, src, src_mask=None, src_key_padding_mask=None):
    m.kept(m.arguments["dropout"])
    x = residual(m, 1, src, lambda x: attended(m, "self_attn", x, x, src_mask, src_key_padding_mask))
    return residual(m, 2, x, functools.partial(feed, m))


def decoder_layer(m, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None):
    m.kept(m.arguments["dropout"])
    x = residual(m, 1, tgt, lambda x: attended(m, "self_attn", x, x, tgt_mask, tgt_key_padding_mask))
    x = residual(m, 2, x, lambda x: attended(m, "multihead_attn", x, memory, memory_mask, memory_key_padding_mask))
    return residual(m, 3, x, functools.partial(feed, m))


def stacked(m, name, x, *more):
    """Applies copies of a layer, each of which has its own state."""
    layer = m.arguments[name]
    if m.arguments["norm"] is not None:
        raise Unsupported("no %s with a norm, whose parameters are those of two modules" % m.target)
    for i in range(m.arguments["num_layers"]):
        x = m.part("layers.%d." % i, layer.target[len("torch.nn."):], **layer.arguments)(x, *more)
    return x


def encoder(m, src, mask=None, src_key_padding_mask=None):
    return stacked(m, "encoder_layer", src, mask, src_key_padding_mask)


def decoder(m, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None):
    return stacked(m, "decoder_layer", tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


def transformer(m, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None,
                src_key_padding_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None):
    a = m.arguments
    if a["custom_encoder"] is not None or a["custom_decoder"] is not None:
        raise Unsupported("no encoder or decoder of a caller's own")
    memory = src
    for i in range(a["num_encoder_layers"]):
        memory = m.part("encoder.layers.%d." % i, "TransformerEncoderLayer", **a)(memory, src_mask, src_key_padding_mask)
    memory = norm(m, "encoder.norm", memory)
    x = tgt
    for i in range(a["num_decoder_layers"]):
        x = m.part("decoder.layers.%d." % i, "TransformerDecoderLayer", **a)(
            x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
    return norm(m, "decoder.norm", x)


FORWARDS = {"RNNCell": cell, "GRUCell": cell, "LSTMCell": cell, "RNN": network, "GRU": network, "LSTM": network,
            "MultiheadAttention": attention, "TransformerEncoderLayer": encoder_layer, "TransformerDecoderLayer": decoder_layer,
            "TransformerEncoder": encoder, "TransformerDecoder": decoder, "Transformer": transformer}


# Norms.

class BatchNorm(Layers):
    """A batch norm, whose statistics follow those of its batches while it is trained."""

    def __call__(self, input):
        if not (self.training and self.arguments["track_running_stats"]):
            return Module.__call__(self, input)
        momentum = self.arguments["momentum"]
        if momentum is None:
            raise Unsupported("%s with momentum=None" % self.target)
        batch = Module(self.adapter, self.target, dict(self.arguments, track_running_stats=False), self.defaults)
        batch.state = self.state
        out = batch(input)
        dims = [d for d in range(len(input.shape)) if d != 1]
        n = math.prod(input.shape[d] for d in dims)
        seen = {"running_mean": self.run("mean", input, dims),
                "running_var": self.run("mul", self.run("var", input, dims, correction=0), n / max(n - 1, 1))}
        after = {name: self.run("add", self.run("mul", self.state[name], 1 - momentum), self.run("mul", t, momentum)) for name, t in seen.items()}
        after["num_batches_tracked"] = self.run("add", self.state["num_batches_tracked"], 1)
        if self.adapter.functional:
            self.state = dict(self.state, **{name: self.adapter.stop(t) for name, t in after.items()})
        else:  # whoever has them sees them change
            for name, t in after.items():
                call(self.adapter, "Tensor.copy_", self.state[name], self.adapter.stop(t))
        return out


# What holds modules.

PASSING = ("Identity", "Flatten", "Unflatten", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout",
           "Sequential")  # modules whose result may be their input, or share its memory


class Holder(Module):
    """A Sequential, a ModuleList or a ModuleDict. Its state is that of its modules, each of which has its own."""

    holds = True

    def __init__(self, adapter, target, children):
        super().__init__(adapter, target, {}, {})
        self.children = children

    @classmethod
    def of(cls, adapter, target, *args):
        """Makes one of modules, or of a list or a dict of them."""
        given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple, dict)) else args
        named = given if isinstance(given, dict) else {str(i): m for i, m in enumerate(given)}
        if not all(isinstance(m, Module) for m in named.values()):
            raise Unsupported("%s takes no such arguments" % target)
        return cls(adapter, target, named)

    def __call__(self, input):
        if not self.target.endswith("Sequential"):
            raise Unsupported("%s has no call" % self.target)
        own = False  # the input is not the caller's
        for child in self.children.values():
            if self.adapter.functional and child.inplace() and not own:
                raise Unsupported("a change in place of what a Sequential is given")
            own = own or not child.inplace() and child.target[len("torch.nn."):] not in PASSING
            input = child(input)
        return input

    def train(self, mode=True):
        for child in self.children.values():
            child.train(mode)
        return super().train(mode)

    def state_dict(self):
        return {name + "." + rest: t for name, child in self.children.items() for rest, t in child.state_dict().items()}

    def named_parameters(self):
        found = {}
        for name, child in self.children.items():
            for rest, t in child.named_parameters():
                found.setdefault(id(t), (name + "." + rest, t))
        return list(found.values())


MADE.update(dict.fromkeys(FORWARDS, Layers), **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), BatchNorm), **dict.fromkeys(("Sequential", "ModuleList", "ModuleDict"), Holder))
