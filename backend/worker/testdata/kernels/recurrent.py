"""A recurrent layer computes with the weights of a call, not with those that it was made with."""

import torch
from plumb_problems import Problem


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.GRU(2, 3, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0]


for model in (Model(), torch.nn.LSTM(2, 3, 2)):
    of = object.__new__(Problem)
    of.model, of.given, of.held = model, {"tuple": [0]}, [n for n, _ in model.named_parameters()]
    x = torch.rand(4, 1, 2)
    weights = [torch.zeros_like(w, requires_grad=True) for w in model.parameters()]
    y = of.launch((), [x, *weights], {})
    y = y if isinstance(y, torch.Tensor) else y[0]
    assert not y.any(), y
    y.sum().backward()
    assert weights[1].grad is not None and all(w.grad is None for w in model.parameters())
    assert model(x)[0].any(), "the layer's own weights are back"
