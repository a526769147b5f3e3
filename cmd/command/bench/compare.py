# The peers of `plumb bench compare`. Reads a size in bytes, then names of
# peers, one on a line; answers each with the seconds that one call took, or
# with why it cannot.
import sys
import time

import numpy

count = int(sys.stdin.readline()) // 4
x = numpy.random.default_rng(7).random(count, dtype=numpy.float32) * 2 - 1
y = x * (1 + (numpy.arange(count, dtype=numpy.int32) & 3).astype(numpy.float32) * numpy.float32(2**-23))


def numpy_allclose():
    return numpy.allclose(y, x, rtol=1.3e-6, atol=1e-5)


def torch_allclose():
    import torch

    torch.set_num_threads(1)
    global torch_allclose
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def torch_allclose():
        return torch.allclose(ty, tx, rtol=1.3e-6, atol=1e-5)

    return torch_allclose()


for line in sys.stdin:
    name = line.strip()
    try:
        start = time.perf_counter()
        close = globals()[name]()
        seconds = time.perf_counter() - start
        print(seconds if close else "not close", flush=True)
    except Exception as e:
        print(type(e).__name__, *str(e).split(), flush=True)
