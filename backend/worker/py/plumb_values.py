"""Arguments of requests as values of a framework, and values as they are in replies."""

from plumb_names import Unsupported

INT64 = range(-1 << 63, 1 << 63)


def decoder(adapter):
    """Returns what gives an argument its value; what others refer to is in `env`."""
    dtype, device, memory_format = adapter.dtype, adapter.device, adapter.memory_format

    def decode(a, env):
        if type(a) is not list:
            return a
        tag = a[0]
        if tag == "r":
            return env[a[1]]
        if tag == "u":
            return tuple([decode(e, env) for e in a[1]])
        if tag == "l":
            return [decode(e, env) for e in a[1]]
        if tag == "d":
            return dtype(a[1])
        if tag == "s":
            return slice(*[decode(e, env) for e in a[1:]])
        if tag == "e":
            return Ellipsis
        if tag == "f":
            return float(a[1])
        if tag == "c":
            return complex(float(a[1]), float(a[2]))
        if tag == "v":
            return device(a[1])
        if tag == "m":
            return memory_format(a[1])
        raise Unsupported("no argument of the kind %r" % (tag,))

    return decode


def encoder(adapter):
    """Returns what writes a value, whose tensors the run stores."""
    classes, is_tensor, is_module, word = adapter.tensor_classes, adapter.is_tensor, adapter.is_module, adapter.word

    def encode(run, v):
        kind = type(v)
        if kind in classes:
            return run.store(v)
        if v is None or kind is bool or kind is str:
            return v
        if kind is int:
            return v if v in INT64 else str(v)
        if kind is float:
            return v if v - v == 0 else ["f", repr(v)]
        if is_tensor(v):
            return run.store(v)
        if isinstance(v, (tuple, list)):
            return ["u", [encode(run, e) for e in v]]
        if is_module(v):
            return ["m"]
        if kind is complex:
            return ["c", encode(run, v.real), encode(run, v.imag)]
        text = word(v)
        return ["x", "%s.%s" % (kind.__module__, kind.__qualname__)] if text is None else text

    return encode


def only(adapter, t):
    """Returns the one element of a tensor."""
    v = adapter.array(t).tolist()
    while isinstance(v, list):
        v = v[0]
    return v
