"""What functions say of their parameters, how arguments meet them, and fake tensors where nobody may hide operators."""

import os
import tempfile

import plumb_forms
import plumb_watch
import torch

# A function of pybind11's tells of its parameters in words.
told = plumb_forms.bound("f(arg0: torch.Tensor, dims: List[int, str] = [1, 2], *, eps: float = 1e-05) -> Tuple[torch.Tensor, int]\n\nMore: it is.")
assert [(p["name"], p["required"], p["keyword"], p["default"]) for p in told] == [
    ("arg0", True, False, ""), ("dims", False, False, "[1, 2]"), ("eps", False, True, "1e-05")], told
assert plumb_forms.bound("f(*args, **kwargs)\nOverloaded function.") is None

# A registered operator has those of its schema, in its order.
operator = plumb_forms.Kernel({"params": ["input", "normalized_shape", "weight", "eps"], "tensors": ["input", "weight"]}, torch.ops.aten.native_layer_norm)
assert [p["name"] for p in operator.parameters] == ["input", "normalized_shape", "weight", "bias", "eps"], operator.parameters
assert operator.bind(("x", "w"), {"normalized_shape": [2], "eps": 1.0}) == (["x", [2], "w"], {"eps": 1.0})

# A number among the tensors of a call is by its name, whatever is given in order.
middle = plumb_forms.Kernel({"params": ["x", "times", "bias"], "tensors": ["x", "bias"]}, lambda x, times, bias: (x, times, bias))
assert middle.bind(("x", "b"), {"times": 2}) == (["x", 2, "b"], {}), middle.bind(("x", "b"), {"times": 2})

# Fake tensors switch dispatch off for shapes; nothing else may.
plumb_watch.follow([])
if torch.__version__ >= "2":  # 1.13's cannot be made of a tensor there
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode() as mode:
        assert mode.from_tensor(torch.ones(2)).new_empty((3, 1)).shape == (3, 1)


def hidden(x):
    with torch._C._DisableTorchDispatch():
        return torch.exp(x)


seen = plumb_watch.recorded(lambda: hidden(torch.ones(2)))[1] if hasattr(torch._C, "_DisableTorchDispatch") else ["aten::exp"]
assert "aten::exp" in seen, seen

# What a registered operator runs is seen.
library = torch.library.Library("plumbforms", "DEF")
library.define("outer(Tensor x) -> Tensor")
library.impl("outer", lambda x: torch.exp(x) + 1, "CPU")
seen = plumb_watch.recorded(lambda: torch.ops.plumbforms.outer(torch.ones(2)))[1]
assert {"plumbforms::outer", "aten::exp", "aten::add"} <= set(seen) or torch.__version__ < "2", seen

# Of many matrices the first are looked at, which show what all have in common.
many = torch.ones(1, 5, 512, 512).tril()
assert plumb_forms.some(many).shape == (1, 512, 512), plumb_forms.some(many).shape
assert plumb_forms.described(many) == {"dtype": "float32", "shape": [1, 5, 512, 512], "lo": 0.0, "hi": 1.0, "pattern": "lower", "among": [0.0, 1.0]}
assert plumb_forms.some(many[0, :1]) is not many and plumb_forms.some(torch.ones(3)).shape == (3,)

# A sort that is stable leaves no choice among equal elements.
sorts = [plumb_watch.recorded(f)[1] for f in (lambda: torch.argsort(torch.ones(3)), lambda: torch.sort(torch.ones(3), stable=True))]
assert sorts == [["aten::sort"], ["aten::sort", "aten::sort.stable"]], sorts

# The same work by other operators, in place or not.
a, b = torch.ones(2, 2), torch.ones(2)
works = [plumb_watch.recorded(f)[1] for f in (
    lambda: a @ a, lambda: torch.einsum("ij,jk->ik", a, a), lambda: torch.nn.functional.linear(a, a), lambda: torch.nn.functional.linear(a, a, b), lambda: (a @ b).add_(b), lambda: torch.bmm(a[None], a[None]))]
assert works[0] == works[1] == works[2] == works[5] == ["aten::matmul"] and works[3] == works[4] == ["aten::add", "aten::matmul"], works

# A kernel's file that writes to a descriptor which is not its own is told.
text = "import os\ndef kernel(fd):\n    os.write(fd, b'ok')\n"
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "k.py")
    with open(path, "w") as f:
        f.write(text)
    watch, space = plumb_watch.Watch(path), {}
    exec(compile(text, path, "exec"), space)
    reads, writes = os.pipe()
    space["kernel"](writes)
    assert watch.evidence == [], watch.evidence  # it is not being watched
    watch.on = True
    os.write(writes, b"ours")
    assert watch.evidence == [], watch.evidence
    space["kernel"](writes)
    watch.on = False
    assert watch.evidence == [["spies", "writes to a descriptor by os.write"]], watch.evidence
    assert os.read(reads, 9) == b"okoursok"
