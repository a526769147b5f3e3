"""The subject: PyTorch, what it is and how it runs the cases of a request."""

import gc
import os
import sys
import warnings

import plumb_capture
import plumb_dtensor
import plumb_host
import plumb_opinfo
import plumb_signatures
import plumb_targets
import plumb_transforms
import torch
from plumb_names import Unsupported
from plumb_together import together
from plumb_torch import DEVICE, META, Run, adapter, targets

# How a case runs, by mode.
MODES = {"eager": Run}
MODES.update((mode, plumb_capture.Captured) for mode in plumb_capture.modes())
MODES.update(plumb_transforms.modes())
MODES.update(plumb_dtensor.modes())


class PyTorch(plumb_host.Subject):
    """What plumb_worker asks of PyTorch."""

    def __init__(self):
        super().__init__(adapter)
        self.targets = targets

    def hello(self):
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
            "opinfo": "" if plumb_opinfo.complete() else "a stand-in for the package expecttest, which is missing (pip install expecttest)",
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

    def run_of(self, mode):
        return MODES[mode]

    def together(self, memory, cases):
        return together(memory, cases)

    def signatures(self, name):
        try:
            return plumb_signatures.of(name, plumb_targets.resolve(adapter, name))
        except Unsupported:
            return None

    def opinfo(self, request):
        """Lists PyTorch's own sample inputs, or writes those of an entry as programs."""
        try:
            if "entry" not in request:
                return {"entries": plumb_opinfo.listed()}
            return plumb_opinfo.cases(request["entry"], request.get("dtype"), request["seed"])
        except Exception as e:
            return {"error": str(e)}


def blas():
    """Returns the paths of the loaded BLAS libraries, "" when unknown."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if "/" in line}
    except OSError:
        return ""
    names = ("libblas", "libopenblas", "libcblas", "libmkl_rt", "libmkl_core", "libblis")
    return ":".join(sorted(p for p in paths if os.path.basename(p).startswith(names)))
