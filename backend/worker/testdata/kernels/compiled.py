"""Kernels compiled to PTX without a GPU: plumb_tritonptx.py."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # as in that of which it is a fork
import triton.language  # noqa: E402, F401

import plumb_tritonptx  # noqa: E402

SPEC = {"form": "function", "file": os.path.join(os.path.dirname(os.path.abspath(__file__)), "launched.py"), "name": "launch", "role": "compiler"}


def launched(name, signature, **constants):
    return {"module": "launched", "name": name, "signature": dict(signature, **{n: "constexpr" for n in constants}),
            "constants": {n: {"value": repr(v)} for n, v in constants.items()}, "options": {}}


line = {"x": "*fp32", "y": "*fp32", "n": "i32"}
square = {"x": "*fp32", "y": "*fp32", "out": "*fp32"}
told = plumb_tritonptx.compile_all(SPEC, [
    launched("exponential", line, BLOCK=64), launched("doubled", line, BLOCK=64), launched("product", square, N=16), launched("uneven", line, BLOCK=64)])
assert told["compiled"] == 3, told
assert [e for e in told["errors"] if e.startswith("uneven does not compile for sm_80: ")] == told["errors"] != [], told
assert any(n.startswith("exponential takes the exponential approximately") for n in told["notes"]), told
assert any(n.startswith("product multiplies float32 as TF32") for n in told["notes"]), told
assert not any("doubled" in n for n in told["notes"]), told

gone = plumb_tritonptx.compile_all(SPEC, [launched("nowhere", line), launched("doubled", dict(line, x="?"), BLOCK=64)])
assert gone["compiled"] == 0 and not gone["errors"] and len(gone["notes"]) == 2, gone

wide, narrow, other = launched("doubled", line, BLOCK=4096), launched("doubled", line, BLOCK=64), launched("exponential", line, BLOCK=128)
assert plumb_tritonptx.smallest_first([wide, narrow, other]) == [narrow, other, wide]
plumb_tritonptx.LONGEST = -1  # one is compiled
some = plumb_tritonptx.compile_all(SPEC, [wide, narrow, other])
assert some["compiled"] == 1 and "2 more launched signatures were not compiled" in some["notes"], some
