"""The straightforward way to record a conformance suite, to measure against.

Reads expanded cases, one JSON object a line. For each it draws the inputs with
numpy in float64 and casts them, runs PyTorch forward and backward, and writes
one pickle of the inputs, one of the outputs and one of the gradients. Files are
deleted once they are counted. The last line printed is a JSON object; in it,
torch is the part of the CPU seconds that PyTorch's forward and backward took.
"""

import json
import os
import pickle
import resource
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
INTERFACES = {"torch": torch, "torch.nn.functional": F, "torch.linalg": torch.linalg}


def decode(v):
    if isinstance(v, list):
        return [decode(x) for x in v]
    if not isinstance(v, dict):
        return v
    if "$tuple" in v:
        return tuple(decode(x) for x in v["$tuple"])
    if "$np" in v:
        return np.dtype(v["$np"].rstrip("_")).type
    if "$float" in v:
        return float(v["$float"])
    if "$slice" in v:
        return slice(*decode(v["$slice"]))
    return {k: decode(x) for k, x in v.items()}


def draw(shape, dtype, gen):
    name, low, high = gen, 0, 10
    if isinstance(gen, dict):
        name, low, high = gen["fn"], gen.get("low", 0), gen.get("high", 10)
    name = name.split(".")[-1]
    if name == "randint":
        x = np.random.randint(low, high, shape)
    elif name == "uniform":
        x = np.random.uniform(low, high, shape)
    elif name == "rand":
        x = np.random.rand(*shape)
    elif name == "mask":
        x = np.random.randint(0, 2, shape)
    elif name in ("ones", "zeros", "empty"):
        x = getattr(np, name)(shape)
    elif name == "positive":
        x = np.abs(np.random.randn(*shape))
    elif name == "randn_int":
        x = np.random.randint(-128, 128, shape) if np.dtype(dtype).kind in "iu" else np.random.randn(*shape)
    elif name == "sym_mat":
        x = np.random.randn(*shape)
        x = x @ np.swapaxes(x, -1, -2) + 1e-3
    else:
        x = np.random.randn(*shape)
    return np.asarray(x).astype(dtype)


def inputs(item):
    kwargs, grads = {}, []
    for a in item["tensor_para"]["args"] if "args" in item["tensor_para"] else []:
        name, gen = a["ins"], a["gen_fn"]
        if "value" in a:
            kwargs[name] = np.array(a["value"]).astype(a["dtype"])
        elif a["shape"] is None:
            kwargs[name] = None
        elif a["gen_policy"] == "gen_tensor_list":
            low, high = a["gen_num_range"]
            n = low if low == high else np.random.randint(low, high)
            kwargs[name] = [draw(a["shape"], a["dtype"], gen) for _ in range(n)]
        elif a["gen_policy"] == "gen_tensor_list_diff_shape":
            kwargs[name] = [draw(s, a["dtype"], gen) for s in a["shape"]]
        else:
            shape = a["shape"] if isinstance(a["shape"], tuple) else (a["shape"],)
            kwargs[name] = draw(shape, a["dtype"], gen)
            if a.get("no_contiguous"):
                kwargs[name] = kwargs[name].transpose()
        if a["requires_grad"] == [True]:
            grads.append(name)
    kwargs.update(item["para"])
    return kwargs, grads


def tensors(v):
    if isinstance(v, np.ndarray):
        return torch.from_numpy(v)
    if isinstance(v, list) and v and isinstance(v[0], np.ndarray):
        return [torch.from_numpy(x) for x in v]
    if isinstance(v, type) and issubclass(v, np.generic):
        return getattr(torch, np.dtype(v).name)
    return v


def arrays(v):
    if isinstance(v, torch.Tensor):
        return v.detach().cpu().numpy()
    if isinstance(v, (list, tuple)):
        return [arrays(x) for x in v]
    return v


def function(case):
    if case["interface"] == "torch.Tensor":
        return lambda input, **kwargs: getattr(input, case["function"])(**kwargs)
    return getattr(INTERFACES[case["interface"]], case["function"])


def write(path, value):
    with open(path, "wb") as f:
        pickle.dump(value, f, protocol=4)
    n = os.path.getsize(path)
    os.remove(path)
    return n


def one(case, path, asked):
    item = decode(case["item"])
    kwargs, wanted = inputs(item)
    n = write(path, {"function_paras": {"kwargs": kwargs, "requires_grad": wanted}, "cfg": item})
    args = {k: tensors(v) for k, v in kwargs.items()}
    for k in wanted:
        if isinstance(args[k], torch.Tensor):
            args[k].requires_grad_()
    start = time.process_time()
    try:
        out = function(case)(**args)
    finally:
        asked.append(time.process_time() - start)
    n += write(path, arrays(out))
    leaves = {k: args[k] for k in wanted if isinstance(args[k], torch.Tensor)}
    if leaves:
        outs = [o for o in (out if isinstance(out, (list, tuple)) else [out]) if o.requires_grad]
        start = time.process_time()
        grads = torch.autograd.grad(outs, list(leaves.values()), [torch.ones_like(o) for o in outs], allow_unused=True)
        asked.append(time.process_time() - start)
        n += write(path, {k: None if g is None else arrays(g) for k, g in zip(leaves, grads)})
    return n


def main(cases, folder):
    path = os.path.join(folder, "case.pth")
    done = failed = total = 0
    start, asked = time.process_time(), []
    for line in open(cases):
        try:
            total += one(json.loads(line), path, asked)
            done += 1
        except Exception:
            failed += 1
    print(json.dumps({
        "cases": done, "failed": failed, "bytes": total, "cpu": time.process_time() - start, "torch": sum(asked),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


main(sys.argv[1], sys.argv[2])
