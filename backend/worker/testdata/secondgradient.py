"""Asks for a second gradient through each call of which the kit knows whether it keeps tensors for its gradient:
prints how many are as the kit says, and what is not."""

import plumb_asked
import torch

F = torch.nn.functional


def other():
    return torch.rand(3, 3) + 0.5


FORMS = {  # of those that more than one tensor makes
    "mul": (lambda x: x * other(), lambda x: x * 2.0), "div": (lambda x: x / other(), lambda x: x / 2.0, lambda x: 1 / x), "pow": (lambda x: x ** 2, lambda x: x ** other()),
    "softmax": (lambda x: torch.softmax(x, -1),), "log_softmax": (lambda x: torch.log_softmax(x, -1),), "gelu": (F.gelu,), "prod": (torch.prod, lambda x: x.prod(1)),
    "norm": (torch.norm, lambda x: torch.norm(x, 1, 1)), "matmul": (lambda x: x @ other(), lambda x: x @ x), "mm": (lambda x: torch.mm(x, other()),),
    "bmm": (lambda x: torch.bmm(x[None], other()[None]),), "mv": (lambda x: torch.mv(x, other()[0]),), "dot": (lambda x: torch.dot(x[0], other()[0]),),
    "mse_loss": (lambda x: F.mse_loss(x, other()), lambda x: F.mse_loss(x, other(), reduction="sum")),
    "add": (lambda x: x + other(), lambda x: torch.add(x, 1, alpha=2)), "radd": (lambda x: 2.0 + x,), "sub": (lambda x: x - other(), lambda x: 1 - x), "sum": (torch.sum, lambda x: x.sum(1)),
    "reshape": (lambda x: x.reshape(9), lambda x: x.t().reshape(9)), "view": (lambda x: x.view(9),), "flatten": (torch.flatten,), "transpose": (lambda x: x.transpose(0, 1),),
    "permute": (lambda x: x.permute(1, 0),), "squeeze": (lambda x: x.squeeze(0),), "unsqueeze": (lambda x: x.unsqueeze(0),), "expand": (lambda x: x.expand(2, 3, 3),),
    "cat": (lambda x: torch.cat([x, other()]),), "stack": (lambda x: torch.stack([x, other()]),),
}


def keeps(f):
    x = other().requires_grad_()
    y = f(x)
    y.backward(torch.ones_like(y))
    try:
        y.backward(torch.ones_like(y))
    except RuntimeError:
        return True
    return False


agree = 0
for names, saves in ((plumb_asked.SAVING, True), (plumb_asked.LIGHT, False)):
    for name in sorted(names):
        wrong = [i for i, f in enumerate(FORMS.get(name) or (getattr(torch, name),)) if keeps(f) != saves]
        agree += not wrong
        if wrong:
            print(name, "forms", wrong)
print(agree)
