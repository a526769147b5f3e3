"""What all subjects share: the public names of PyTorch that a program may call."""


DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")
HALF = ("float16", "bfloat16")  # to which PyTorch rounds numbers by way of float32


class Refusal(Exception):
    """Why a subject cannot be served here at all."""


class Unsupported(Exception):
    """What a framework does not have: a name, an argument, a dtype."""


# Modules whose public names a program may call. Reading files, running code
# and settings that outlive a case are in none of them, or in DENIED.
MODULES = {
    "torch", "torch.functional", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations", "torch.linalg", "torch.fft", "torch.special", "torch.masked", "torch.sparse",
    "torch.signal", "torch.signal.windows", "torch.autograd", "torch.nn.parameter", "torch.Tensor", "torch.ops", "torch.ops.aten", "operator",
    "torchvision.ops",
}
DENIED = {
    "torch.load", "torch.save", "torch.compile", "torch.from_file", "torch.import_ir_module",
    "torch.use_deterministic_algorithms", "torch.init_num_threads", "torch.wait", "torch.fork",
    "Tensor.data_ptr", "Tensor.set_", "Tensor.storage", "Tensor.untyped_storage", "Tensor.share_memory_",
    "Tensor.register_hook", "Tensor.apply_", "Tensor.map_", "Tensor.map2_", "Tensor.numpy",
    "operator.attrgetter", "operator.methodcaller", "operator.itemgetter", "operator.call",
    "Module.apply", "Module.save", "Module.register_module", "Module.register_forward_hook",
}
TYPES = {"Tensor", "Size", "Generator", "device"}  # the classes of torch itself that a program may call

# Calls of autograd, and of leaves, that a graph of forward calls has no place for.
AUTOGRAD = ("torch.autograd.", "Tensor.backward", "Tensor.retain_grad", "Tensor.requires_grad_", "setattr",
            "torch.nn.Parameter", "torch.nn.parameter.")
OF_GRADIENTS = ("grad", "requires_grad", "is_leaf", "grad_fn")  # attributes

LISTED = ("_foreach_", "_fused_")  # functions of lists of tensors, which torch.optim calls


def is_open(target):
    """Tells whether the name of a function, such as torch.nn.functional.relu, is open to programs."""
    owner, _, last = target.rpartition(".")
    if owner.startswith("torch.ops.aten."):  # an overload
        return "._" not in target
    if target in DENIED or last.startswith(("_", "set_")) and not last.startswith(LISTED):
        return False
    return last in ("grad", "backward") if owner == "torch.autograd" else owner in MODULES
