"""What a user of the wheel of examples/userop relies on. Run with the package on the path."""

import gc
import os
import sys
import threading
import timeit

import numpy as np
import userlib
from userlib import Error, ops

x = np.arange(8, dtype="f4") - 3


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.dtype, want.shape)
    assert (got.view("u1") == want.view("u1")).all() if got.flags.c_contiguous and want.flags.c_contiguous else (got == want).all(), (got, want)


def refused(f, kind, op, argument):
    try:
        f()
    except Error as e:
        assert isinstance(e, kind) and e.op == op and e.argument == argument and str(e), (type(e).__mro__, e.op, e.argument, str(e))
    else:
        raise AssertionError("it is taken")


# the user's operators, and Plumb's
same(ops.leaky_relu_yzh(x, 0.25), np.where(x > 0, x, x * np.float32(0.25)))
same(ops.leaky_relu(x, negative_slope=0.25), ops.leaky_relu_yzh(x, alpha=0.25))
seen = np.zeros(8, "i8")
values, indices = ops.peaks(x, seen, 3)
same(values, x[2:])
assert indices.tolist() == list(range(2, 8)) and seen.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
same(ops.add(x, x), x + x)
same(ops.add(x, x, alpha=2), x + 2 * x)
assert "leaky_relu_yzh(Tensor x, float alpha=0.01)" in ops.leaky_relu_yzh.__doc__ and "peaks" in dir(ops)

# every layout that numpy has, every dtype
m = np.arange(24.0).reshape(4, 6)
for v in [m.T, m[::2, 1::2], m[::-1], m[:, ::-1], np.broadcast_to(m[0], (4, 6)), m[:0], m[0, 0:1].reshape(()), np.asfortranarray(m), m.astype(">f8")]:
    assert (ops.neg(v) == -v).all() and ops.neg(v).shape == v.shape
packed = np.zeros(5, dtype=[("a", "u1"), ("b", "f4")])["b"]  # neither aligned nor of whole strides
same(ops.add(packed + 1, packed), packed + 1)
unaligned = np.frombuffer(bytes(range(1, 34)), "u1")[1:].view("f4")
same(ops.neg(unaligned), -unaligned)
for d in "? u1 i1 i2 i4 i8 f2 f4 f8 c8 c16".split():
    a = np.array([0, 1, 1], d)
    same(ops.mul(a, a), a * a)
big = np.arange(10, dtype="i8") + (1 << 62)
same(ops.clone(big), big)

# views are views, results of unknown shape their own
t = ops.transpose(m, 0, 1)
assert np.shares_memory(t, m) and (t == m.T).all()
parts = ops.split(x, 3)
assert [p.tolist() for p in parts] == [[-3, -2, -1], [0, 1, 2], [3, 4]]
n = ops.nonzero(x)
del parts
gc.collect()
assert n[:, 0].tolist() == [0, 1, 2, 4, 5, 6, 7]
assert ops.equal(x, x) is True and ops.cat([x, x]).shape == (16,)
kept = ops.transpose(np.ones((300, 300)), 0, 1)
gc.collect()
assert kept.sum() == 90000, "a view outlives the name of what it views"

# a number is what it is: 1, 1.0, True and -0.0 are not one call
assert ops.full([2], 1).dtype == "i8" and ops.full([2], 1.0).dtype == "f4" and ops.full([2], True).dtype == "?"
assert np.signbit(ops.full([1], -0.0))[0] and not np.signbit(ops.full([1], 0.0))[0]

# errors are Python's, and say what is to blame
refused(lambda: ops.leaky_relu_yzh(x, "a"), TypeError, "leaky_relu_yzh", "alpha")
refused(lambda: ops.leaky_relu_yzh(x, beta=1), TypeError, "leaky_relu_yzh", "beta")
refused(lambda: ops.leaky_relu_yzh(x.astype("i4")), RuntimeError, "leaky_relu_yzh", "")
refused(lambda: ops.softmax(x, 7), IndexError, "softmax", "")
refused(lambda: ops.no_such, AttributeError, "no_such", "")
try:
    ops.neg(np.array(["a"]))
except TypeError as e:
    assert "dtype" in str(e)

# what changes an argument changes the array itself
mean, var = np.zeros(2), np.ones(2)
ops.batch_norm(np.arange(8.0).reshape(4, 2), mean, var, training=True)
assert mean.any()
mean.flags.writeable = False
try:
    ops.batch_norm(np.arange(8.0).reshape(4, 2), mean, var, training=True)
except ValueError as e:
    assert "read-only" in str(e)
else:
    raise AssertionError("a read-only array was changed")

# draws follow from the seed
userlib.manual_seed(3)
first, second = ops.rand([8]), ops.rand([8])
userlib.manual_seed(3)
assert (ops.rand([8]) == first).all() and (first != second).any()


class Foreign:
    """An array of another library's, which speaks DLPack."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **kw):
        return self.a.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()

    def __array_namespace__(self):
        class namespace:
            @staticmethod
            def from_dlpack(x):
                return Foreign(np.from_dlpack(x))

        return namespace


f = ops.add(Foreign(x), Foreign(x))
assert isinstance(f, Foreign) and (f.a == x + x).all()


def work():
    for _ in range(100):
        assert (ops.mul(m, m) == m * m).all()
        ops.nonzero(m)


threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]

# a child of a fork, and its child
pid = os.fork()
if pid == 0:
    try:
        work()
        inner = os.fork()
        if inner == 0:
            work()
            os._exit(0)
        os._exit(os.waitpid(inner, 0)[1] != 0)
    finally:
        os._exit(9)
assert os.waitpid(pid, 0)[1] == 0, "a child cannot call operators"

if len(sys.argv) > 1:  # another package, in this process
    other = __import__(sys.argv[1])
    assert other.ops is not ops and (other.ops.add(x, x) == ops.add(x, x)).all()

f8, n = np.ones(8, "f4"), 500
best = min(timeit.repeat(lambda: ops.add(f8, f8), number=n, repeat=200)) / n
print(f"ops.add of two float32[8]: {best * 1e6:.2f} µs")
