"""Tensors on their way to and from the host, as bytes, for a framework whose
Python has no numpy.
"""

import itertools
import math
import struct

from plumb_names import HALF, Unsupported

FEATURES = {}
FORMATS = {"bool": "?", "uint8": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "float16": "e", "bfloat16": "H",
           "float32": "f", "float64": "d", "complex64": "ff", "complex128": "dd"}


class Elements:
    """The elements of a tensor in row-major order."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, tuple(shape), data

    def tobytes(self):
        return self.data

    def flat(self):
        """Returns the elements as numbers."""
        kind = FORMATS[self.dtype]
        numbers = [v if len(v) > 1 else v[0] for v in struct.iter_unpack("<" + kind, self.data)]
        if self.dtype == "bfloat16":
            numbers = [struct.unpack("<f", struct.pack("<I", v << 16))[0] for v in numbers]
        return [complex(*v) for v in numbers] if len(kind) > 1 else numbers

    def tolist(self):
        numbers = self.flat()
        if not self.shape:
            return numbers[0]
        for d in reversed(self.shape[1:]):
            numbers = [numbers[i * d:(i + 1) * d] for i in range(len(numbers) // d if d else math.prod(self.shape[:-1]))]
        return numbers


def read(memory, name, offset, shape, strides):
    """Returns a copy of a tensor in shared memory."""
    width = struct.calcsize("<" + FORMATS[name])
    if strides is None:
        return Elements(name, shape, bytes(memory[offset:offset + width * math.prod(shape)]))
    starts = [offset + width * sum(i * s for i, s in zip(at, strides)) for at in itertools.product(*map(range, shape))]
    return Elements(name, shape, b"".join([memory[i:i + width] for i in starts]))


def write(memory, name, array):
    """Puts the elements of a tensor into shared memory and returns their offset."""
    data = array.tobytes()
    if not data:
        return memory.top
    offset = memory.reserve(len(data))
    memory.bytes[offset:offset + len(data)] = data
    return offset


def cotangent(memory, name, offset, n, shape):
    """Returns a cotangent in float64: a stream of n numbers, or ones without an offset."""
    if name.startswith("complex"):
        raise Unsupported("no complex numbers without numpy")
    data = struct.pack("<d", 1) * n if offset is None else bytes(memory[offset:offset + 8 * n])
    if name in HALF:
        data = struct.pack("<%dd" % n, *struct.unpack("<%df" % n, struct.pack("<%df" % n, *struct.unpack("<%dd" % n, data))))
    return Elements("float64", shape, data)
