"""Compares how tensors cross with numpy and without it: prints how many tensors are the same, and what is not."""

import random

import plumb_arrays
import plumb_plain


class Memory:
    """Shared memory, of which results take the place after the inputs."""

    def __init__(self):
        self.bytes, self.top = bytearray(random.Random(1).randbytes(4096)), 1024

    def reserve(self, n):
        self.top += n
        return self.top - n


alike = 0
for name in plumb_plain.FORMATS:
    if name == "bool":
        continue  # of random bytes
    for shape, strides in (((), None), ((2, 3), None), ((2, 3), [1, 2]), ((0, 3), None), ((3, 2), [0, 5]), ((1,), [7])):
        written = []
        for arrays in (plumb_arrays, plumb_plain):
            memory = Memory()
            offset = arrays.write(memory, name, arrays.read(memory.bytes, name, 64, shape, strides))
            written.append((offset, memory.top, bytes(memory.bytes[offset:memory.top])))
        alike += written[0] == written[1]
        if written[0] != written[1]:
            print(name, shape, strides, written)
    if not name.startswith("complex"):
        streams = [arrays.cotangent(Memory().bytes, "float64", 64, 6, (2, 3)).tolist() for arrays in (plumb_arrays, plumb_plain)]
        numbers = [arrays.read(Memory().bytes, "int16" if name == "bfloat16" else name, 64, (2, 1, 3), None).tolist() for arrays in (plumb_arrays, plumb_plain)]
        alike += repr(streams[0]) == repr(streams[1]) and repr(numbers[0]) == repr(numbers[1])
print(alike)
