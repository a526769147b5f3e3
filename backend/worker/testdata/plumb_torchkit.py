"""PyTorch on the kit: what the kit computes is compared with what PyTorch's own worker does."""

import plumb_subject
import torch


class TorchKit(plumb_subject.Adapter):
    name, version = "torch", torch.__version__
    root, tensor_class, module_class = torch, torch.Tensor, torch.nn.Module
    table = {
        "torch.sub": "torch.subtract",
        "torch.tanh": None,
        "torch.sin": {"dtypes": ["float32"]},
        "torch.sum": {"rename": {"dim": "axis"}},
        "torch.all": {"flag": "keepdim"},
        "torch.clamp": {"order": ["max", "min"]},
        "torch.cumprod": {"fill": {"dtype": "input.dtype"}},
        "torch.cumsum": {"fill": {"dtype": "torch.float64"}},
        "torch.softmax": {"drop": {"dtype": None}},
        "torch.nn.functional.leaky_relu": {"fill": {"negative_slope": 0.5}},
    }


adapter = TorchKit
