"""Prints what the kit says of tables with mistakes, and of the shipped ones, in which there are none."""

import plumb_mistakes
import plumb_table

for table in (
    {"exp": "numpy.exp(input)", "mean": [{"call": "numpy.mean(input)", "when": {"dim": None}}, "numpy.mean(input, axis=dim)"], "sin": None},
    {"expp": "numpy.exp(input)"},
    {"exp": {"call": "numpy.exp(input)", "dtype": ["float32"]}},
    {"exp": "numpy.exp(input"},
    {"exp": "numpy.exp(*[v for v in [input]])"},
):
    print("; ".join(plumb_table.mistakes(table)) or "none")
for name in ("jax", "tensorflow", "mlx", "numpy", "mindspore", "onnx", "tinygrad"):
    for mistake in plumb_table.mistakes(plumb_table.load(name + ".json")):
        print(name, mistake)


class Own:
    table = {"softmax": [{"call": "self.soft(input, dim)", "when": {"dim": 0}}, "self.softened(input, dim)"], "exp": "numpy.exp(input)", "sin": None}

    def softened(self, t, dim):
        return t


print(*plumb_mistakes.absent(Own()))
