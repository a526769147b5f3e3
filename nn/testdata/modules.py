"""Makes the modules of nn's live tests on PyTorch: one JSON request on stdin,
one JSON reply on stdout. State travels in safetensors files, read and written
here by their format, without pickle."""
import json
import struct
import sys
import warnings

import torch

warnings.simplefilter("ignore")
DTYPES = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}


def write(path, tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        kind = next(k for k, v in DTYPES.items() if v == t.dtype)
        raw = struct.pack("<%d%s" % (t.numel(), {"F32": "f", "F64": "d", "I64": "q"}[kind]), *t.detach().flatten().tolist())
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    n, = struct.unpack("<Q", raw[:8])
    out = {}
    for name, e in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        lo, hi = e["data_offsets"]
        data = bytearray(raw[8 + n + lo:8 + n + hi])
        out[name] = torch.frombuffer(data, dtype=DTYPES[e["dtype"]]).reshape(e["shape"]) if data else torch.empty(e["shape"], dtype=DTYPES[e["dtype"]])
    return out


def find(target):
    m = torch
    for part in target.split(".")[1:]:
        m = getattr(m, part, None)
    return m


def make(c):
    m = find(c["target"])
    kwargs = {k: getattr(torch, v) if k == "dtype" else v for k, v in c["kwargs"].items()}
    return m(*c["args"], **kwargs)


def describe(c):
    if find(c["target"]) is None:
        return {"error": "absent"}
    try:
        m = make(c)
    except Exception as e:
        return {"error": type(e).__name__}
    params = {n for n, _ in m.named_parameters()}
    return {"state": ["%s %s %s%s" % (n, "parameter" if n in params else "buffer", str(t.dtype)[6:], list(t.shape))
                      for n, t in m.state_dict().items()]}


def model():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 5 * 5, 6), nn.LayerNorm(6), nn.Linear(6, 3, bias=False))


def run(m, x):
    y = m(x)
    y.sum().backward()
    m.eval()
    return {"train": y.detach(), "eval": m(x).detach()}


def trip(r):
    torch.manual_seed(1)
    m, x = model(), torch.randn(3, 2, 5, 5)
    start = {k: v.clone() for k, v in m.state_dict().items()}
    write(r["out"], {**start, "x": x, **{"result." + k: v for k, v in run(m, x).items()}})


def back(r):
    tensors = read(r["in"])
    m = model()
    m.load_state_dict({k: v for k, v in tensors.items() if k != "x"}, strict=True)
    m.eval()
    write(r["out"], {"y": m(tensors["x"]), **m.state_dict()})


request = json.load(sys.stdin)
if "cases" in request:
    json.dump([describe(c) for c in request["cases"]], sys.stdout)
elif "in" in request:
    back(request)
else:
    trip(request)
