"""Writes models in ONNX's format: a protobuf of which this file has the part that graphs need."""

import struct

import numpy as np

OPSET, IR = 20, 9
TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}
FLOAT, INT, STRING, FLOATS, INTS = 1, 2, 3, 6, 7  # kinds of attributes


def varint(n):
    n &= (1 << 64) - 1
    parts = bytearray()
    while n > 127:
        parts.append(n & 127 | 128)
        n >>= 7
    parts.append(n)
    return bytes(parts)


def number(field, n):
    return varint(field << 3) + varint(n)


def real(field, x):
    return varint(field << 3 | 5) + struct.pack("<f", x)


def message(field, data):
    if isinstance(data, str):
        data = data.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, v):
    """An AttributeProto of a number, a text, or a list of numbers of one kind."""
    if isinstance(v, float):
        kind, data = FLOAT, real(2, v)
    elif isinstance(v, int):
        kind, data = INT, number(3, v)
    elif isinstance(v, str):
        kind, data = STRING, message(4, v)
    elif any(isinstance(e, float) for e in v):
        kind, data = FLOATS, b"".join(real(7, e) for e in v)
    else:
        kind, data = INTS, b"".join(number(8, e) for e in v)
    return message(1, name) + data + number(20, kind)


def node(kind, inputs, outputs, attributes):
    """A NodeProto; an input that is not given has an empty name."""
    names = [message(1, name) for name in inputs] + [message(2, name) for name in outputs]
    return b"".join(names) + message(4, kind) + b"".join(message(5, attribute(k, v)) for k, v in attributes.items())


def tensor(name, array):
    """A TensorProto."""
    dims = b"".join(number(1, d) for d in array.shape)
    return dims + number(2, TYPES[array.dtype.name]) + message(8, name) + message(9, np.ascontiguousarray(array).tobytes())


def value(name, dtype=None, shape=()):
    """A ValueInfoProto; without a dtype the engine infers what the value is."""
    if dtype is None:
        return message(1, name)
    dims = b"".join(message(1, number(1, d)) for d in shape)
    return message(1, name) + message(2, message(1, number(1, TYPES[dtype]) + message(2, dims)))


def model(nodes, inputs, constants, outputs):
    """A ModelProto of nodes as `node` gives them in their order, inputs (name,
    dtype, shape), constants (name, array), and the names of outputs."""
    graph = [message(1, n) for n in nodes] + [message(2, "plumb")]
    graph += [message(5, tensor(*c)) for c in constants]
    graph += [message(11, value(*i)) for i in inputs] + [message(12, value(o)) for o in outputs]
    return number(1, IR) + message(7, b"".join(graph)) + message(8, number(2, OPSET))
