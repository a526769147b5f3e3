"""The subject: PyTorch, what it is and how it runs the cases of a request."""

import gc
import os
import sys
import warnings

import plumb_capture
import plumb_opinfo
import plumb_signatures
import plumb_transforms
import torch
from plumb_together import together
from plumb_torch import DEVICE, META, ON_CPU, Run, Unknown, resolve

seed_default = torch.default_generator.manual_seed

# How a case runs, by mode.
MODES = {"eager": Run}
MODES.update((mode, plumb_capture.Captured) for mode in plumb_capture.modes())
MODES.update(plumb_transforms.modes())


def hello():
    torch.set_num_threads(int(os.environ.get("PLUMB_WORKER_THREADS") or 1))
    warnings.simplefilter("ignore")
    gc.collect()
    gc.freeze()
    features = {
        "python": sys.version.split()[0],
        "threads": str(torch.get_num_threads()),
        "blas": blas(),
        "numpy": getattr(sys.modules.get("numpy"), "__version__", ""),
        "executable": sys.executable,
        "together": "compile" if "compile" in MODES else "",
    }
    capability = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
    if capability:
        features["cpu"] = capability()
    return {
        "name": "torch",
        "version": torch.__version__,
        "devices": [str(DEVICE)],
        "modes": list(MODES),
        "elements": not META,
        "compiling_modes": ["compile"] if "compile" in MODES else [],
        "features": {name: value for name, value in features.items() if value},
    }


def blas():
    """Returns the paths of the loaded BLAS libraries, "" when unknown."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    except OSError:
        return ""
    names = ("libblas", "libopenblas", "libcblas", "libmkl_rt", "libmkl_core", "libblis")
    return ":".join(sorted(p for p in paths if os.path.basename(p).startswith(names)))


def run(memory, cases):
    compiled = together(memory, cases)
    replies = []
    mark = memory.mark
    for i, case in enumerate(cases):
        if i in compiled:
            replies.append(compiled[i])
            continue
        mark[1] = 0
        mark[0] = i + 1
        seed_default(case["seed"])
        if not ON_CPU:
            torch.manual_seed(case["seed"])
        one = MODES[case.get("mode") or "eager"](memory, case)
        try:
            reply = one.run()
        except Exception as e:
            reply = one.failed(e)
        reply["elapsed"] = one.elapsed
        replies.append(reply)
        mark = memory.mark
    return replies


def signatures(name):
    try:
        return plumb_signatures.of(name, resolve(name))
    except Unknown:
        return None


def opinfo(request):
    """Lists PyTorch's own sample inputs, or writes those of an entry as programs."""
    try:
        if "entry" not in request:
            return {"entries": plumb_opinfo.listed()}
        return plumb_opinfo.cases(request["entry"], request.get("dtype"), request["seed"])
    except Exception as e:
        return {"error": str(e)}
