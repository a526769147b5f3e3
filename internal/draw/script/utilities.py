# What OneFlow's test_util and torch.nn.modules.utils define, for the test
# files that import it. The engine of test files runs this file.
import numpy as np


def FlattenArray(input_array):
    return np.array(input_array).reshape(-1).tolist()


def Array2Numpy(input_array, target_shape):
    return np.array(input_array).reshape(target_shape)


def Index2Coordinate(idx, tensor_shape):
    coordinate = []
    for size in reversed(tensor_shape):
        coordinate.insert(0, idx % size)
        idx = idx // size
    return coordinate


def Coordinate2Index(coordinate, tensor_shape):
    if len(coordinate) != len(tensor_shape):
        raise ValueError("wrong coordinate or shape")
    idx = 0
    for i, size in zip(coordinate, tensor_shape):
        idx = idx * size + i
    return idx


def _ntuple(n):
    def parse(x):
        if isinstance(x, (list, tuple)):
            return tuple(x)
        return (x,) * n

    return parse


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(t, n):
    return tuple([x for x in reversed(t) for i in range(n)])
