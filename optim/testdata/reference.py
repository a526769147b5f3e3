"""Runs the cases of the optim tests on PyTorch: one JSON request on stdin, one
JSON reply on stdout. The expressions in it are the test's own constants."""
import contextlib
import io
import json
import math
import sys
import warnings

import torch
from torch.optim import lr_scheduler as S

warnings.simplefilter("ignore")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "complex64": torch.complex64}


def flat(t):
    t = torch.view_as_real(t) if t.is_complex() else t
    return t.detach().double().flatten().tolist()


def tensor(data, shape, dtype):
    if dtype.is_complex:
        return torch.view_as_complex(torch.tensor(data, dtype=torch.float64).reshape(list(shape) + [2])).to(dtype)
    return torch.tensor(data, dtype=torch.float64).reshape(shape).to(dtype)


def pack_state(opt):
    d = opt.state_dict()
    def value(v):
        if isinstance(v, torch.Tensor):
            return {"dtype": str(v.dtype)[6:], "shape": list(v.shape), "data": flat(v)}
        return v
    return {"state": {str(i): {k: value(v) for k, v in st.items()} for i, st in d["state"].items()},
            "groups": [{"options": {k: v for k, v in g.items() if k != "params"}, "params": g["params"]}
                       for g in d["param_groups"]]}


def unpack_state(d, opt):
    def value(v):
        if isinstance(v, dict):
            return tensor(v["data"], v["shape"], DTYPES[v["dtype"]])
        return v
    groups = []
    for own, g in zip(opt.state_dict()["param_groups"], d["groups"]):
        groups.append({**own, **{k: tuple(v) if k == "betas" else v for k, v in g["options"].items()}, "params": g["params"]})
    return {"state": {int(i): {k: value(v) for k, v in st.items()} for i, st in d["state"].items()}, "param_groups": groups}


def train(c):
    dtype = DTYPES[c["dtype"]]
    params = [torch.nn.Parameter(tensor(p, s, dtype)) for p, s in zip(c["params"], c["shapes"])]
    half = len(params) // 2
    groups = [{"params": params[:half], **c["groups"][0]}, {"params": params[half:], **c["groups"][1]}]
    opt = getattr(torch.optim, c["optimizer"])(groups, **c["options"])
    if "state" in c:
        opt.load_state_dict(unpack_state(c["state"], opt))
    x, y = (tensor(c[k]["data"], c[k]["shape"], dtype) for k in "xy") if "x" in c else (None, None)
    steps, norms = [], []
    for i in range(c["steps"]):
        opt.zero_grad()
        if "grads" in c:
            for p, g in zip(params, c["grads"][i]):
                p.grad = tensor(g, p.shape, dtype)
        else:
            F = torch.nn.functional
            parts = c.get("parts", 1)
            for u, v in zip(x.chunk(parts), y.chunk(parts)):
                out = F.linear(torch.sin(F.linear(u, params[0], params[1])), params[2], params[3])
                (F.mse_loss(out, v) / parts).backward()
        if "clip_norm" in c:
            norms.append(float(torch.nn.utils.clip_grad_norm_(params, *map(float, c["clip_norm"]))))
        if "clip_value" in c:
            torch.nn.utils.clip_grad_value_(params, c["clip_value"])
        opt.step()
        steps.append([v for p in params for v in flat(p)])
    return {"steps": steps, "norms": norms, "state": pack_state(opt)}


def schedule(c):
    a, b = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    opt = getattr(torch.optim, c["optimizer"])([{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.02}], **c["options"])
    scope = {"S": S, "opt": opt, "math": math}
    rates, text = [], io.StringIO()
    def note():
        for g in opt.param_groups:
            rates.append(g["lr"])
            rates.append(g["betas"][0] if "betas" in g else g["momentum"])
    with contextlib.redirect_stdout(text):
        s = eval(c["python"], scope)
        note()
        for i in range(c["steps"]):
            opt.step()
            s.step(*([c["metrics"][i]] if "metrics" in c else []))
            note()
    return {"rates": rates, "text": text.getvalue()}


request = json.load(sys.stdin)
reply = {"version": torch.__version__,
         "train": {n: train(c) for n, c in request.get("train", {}).items()},
         "schedules": {n: schedule(c) for n, c in request.get("schedules", {}).items()}}
json.dump(reply, sys.stdout)
