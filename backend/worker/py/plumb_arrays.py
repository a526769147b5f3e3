"""Tensors on their way to and from the host, as arrays of numpy. Those of
bfloat16, which numpy lacks, have the dtype float32.
"""

import numpy as np
from plumb_names import HALF, Unsupported

FEATURES = {"numpy": np.__version__}


def dtype_of(name):
    return np.bool_ if name == "bool" else np.dtype("float32" if name == "bfloat16" else name)


def read(memory, name, offset, shape, strides):
    """Returns a copy of a tensor in shared memory."""
    dtype = np.dtype(np.uint16 if name == "bfloat16" else dtype_of(name))
    n = int(np.prod(shape, dtype=np.int64))
    if strides is not None and n:
        n = 1 + sum((d - 1) * s for d, s in zip(shape, strides))
    flat = np.frombuffer(memory, dtype, n, offset) if n else np.empty(0, dtype)
    flat = (flat.astype(np.uint32) << 16).view(np.float32) if name == "bfloat16" else flat.copy()
    if strides is None or not flat.size:
        return flat.reshape(shape)
    return np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])


def write(memory, name, array):
    """Puts the elements of a tensor into shared memory and returns their offset."""
    array = np.ascontiguousarray(array)
    if name == "bfloat16" and array.dtype.name == name:  # that of ml_dtypes
        array = array.astype(np.float32)
    if array.dtype != dtype_of(name):
        raise Unsupported("the adapter's array() gave %s for a tensor of %s: want %s" % (array.dtype, name, np.dtype(dtype_of(name))))
    if name == "bool":
        array = array.view(np.uint8) != 0
    if name == "bfloat16":
        array = (array.view(np.uint32) >> 16).astype(np.uint16)
    if not array.nbytes:
        return memory.top
    offset = memory.reserve(array.nbytes)
    np.frombuffer(memory.bytes, np.uint8, array.nbytes, offset)[:] = array.reshape(-1).view(np.uint8)
    return offset


def cotangent(memory, name, offset, n, shape):
    """Returns a cotangent in a dtype: a stream of n numbers, or ones without an offset."""
    stream = np.ones(n) if offset is None else np.frombuffer(memory, np.float64, n, offset)
    if name in HALF:
        stream = stream.astype(np.float32)
    if name.startswith("complex"):
        stream = stream.view(np.complex128) if offset is not None else stream[::2]
    return stream.astype(dtype_of(name)).reshape(shape)
