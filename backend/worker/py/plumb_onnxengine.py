"""The engines that run ONNX: how each compiles a model, and what it says of what it lacks."""

import io

import numpy as np
from plumb_names import Unsupported


class ORT:
    """ONNX Runtime on the CPU."""

    gaps = ("NOT_IMPLEMENTED", "Could not find an implementation", "Type Error", "INVALID_GRAPH", "not supported", "unsupported", "Type parameter", "Ellipsis for input")
    refusals = ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented")
    package, absent = "onnxruntime", ()

    def __init__(self):
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        onnxruntime.set_default_logger_severity(4)
        self.version, self.session = onnxruntime.__version__, onnxruntime.InferenceSession
        self.operators = {s.name for s in state.get_all_operator_schema() if s.domain == ""}
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = self.options.inter_op_num_threads = 1

    def compile(self, model):
        session = self.session(model, self.options, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        return lambda arrays: session.run(None, dict(zip(names, arrays)))


class Refused(Unsupported):
    """What the engine says of a model that it does not take."""


class OpenVINO:
    """OpenVINO on the CPU, which computes float64 in float32."""

    gaps = ("not supported", "unsupported", "not implemented", "Conversion failed", "No translator", "does not support", "has no conversion rule")
    refusals = ("Refused",)
    package, absent = "openvino", ("float64",)
    operators = None

    def __init__(self):
        import openvino

        self.version, self.core = openvino.__version__.partition("-")[0], openvino.Core()
        self.settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}  # bfloat16 is its default

    def compile(self, model):
        try:
            compiled = self.core.compile_model(self.core.read_model(io.BytesIO(model)), "CPU", self.settings)
        except RuntimeError as e:
            raise Refused("openvino refuses the model: " + " ".join(str(e).split())) from None  # whose first line says where, not why
        return lambda arrays: [np.array(v) for v in compiled(arrays).to_tuple()]


ENGINES = {"ort": ORT, "openvino": OpenVINO}
