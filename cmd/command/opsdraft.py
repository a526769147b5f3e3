"""Prints what PyTorch says of a function of a name: its schemas, its names, its sentence."""
import json
import sys

import torch

name = sys.argv[1]
schemas = [str(s) for s in torch._C._jit_get_schemas_for_operator("aten::" + name)]
owners = {"torch": torch, "torch.nn.functional": torch.nn.functional, "torch.special": torch.special, "torch.linalg": torch.linalg, "Tensor": torch.Tensor}
names = [owner + "." + name for owner, o in owners.items() if callable(getattr(o, name, None))]
doc = ""
for owner, o in owners.items():
    text = (getattr(getattr(o, name, None), "__doc__", None) or "").strip()
    lines = [l.strip() for l in text.split("\n") if l.strip() and "->" not in l and not l.strip().startswith("..")]
    if lines and not doc:
        doc = lines[0]
print(json.dumps({"schemas": schemas, "names": names, "doc": doc or "TODO"}))
