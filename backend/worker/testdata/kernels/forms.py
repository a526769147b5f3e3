"""What functions say of their parameters, how arguments meet them, and fake tensors where nobody may hide operators."""

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
