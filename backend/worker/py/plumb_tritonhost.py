"""What host code sees of kernels that are interpreted: what a compiled kernel says of itself, and
autotuning without a clock: each configuration is launched once, and the first that can be is taken.
Tried with Triton 3.5.1 and 3.9.0."""

import hashlib
import types

SHARE = 8  # a tuning has one part in so many of what a call may compute; the configurations left over are not tried


def tune_once(layer, interpreter):
    """Has the autotuner leave out configurations that a kernel refuses by tl.static_assert, as where it
    compiles, and no longer try others where they take too much of what the interpreter can run."""
    from triton.runtime.autotuner import Autotuner

    bench = Autotuner._bench

    def bench_once(self, *args, config, **meta):
        if id(config) in getattr(self, "_seen", {id(config)}):  # another tuning begins
            self._seen, self._began, self._tried = set(), layer.work, 0
        self._seen.add(id(config))
        if self._tried > 1 and layer.since is not None and layer.work - self._began > layer.most // SHARE:
            return [2.0, 2.0, 2.0]
        told = len(layer.compiled)
        try:
            times = bench(self, *args, config=config, **meta)
        except interpreter.InterpreterError as e:
            if not refused(e.__cause__):
                raise
            for key in list(layer.compiled)[told:]:  # which does not compile
                del layer.compiled[key]
            return [float("inf")] * 3
        self._tried += 1
        return times

    Autotuner._bench = bench_once


def refused(e):
    """Tells whether an exception is that of a tl.static_assert."""
    if not isinstance(e, AssertionError):
        return False
    trace = e.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_name == "_new_static_assert"


class Compiled:
    """A kernel that was compiled by a launch or ahead of one, whose constants are given or left out."""

    n_regs, n_spills, asm = 32, 0, {}

    def __init__(self, kernel, given):
        self.kernel, self.given = kernel, given
        self.metadata = types.SimpleNamespace(shared=1024, num_warps=given.get("num_warps", 4), num_stages=given.get("num_stages", 3), num_ctas=1, name=kernel.__name__)

    def _init_handles(self):
        pass

    def __getitem__(self, grid):
        def launch(*args):
            names = self.kernel.arg_names
            if len(args) < len(names):
                names = [n for n in names if n not in self.given]
            given = {n: v for n, v in self.given.items() if n in self.kernel.arg_names}
            return self.kernel[grid](**dict(given, **dict(zip(names, args))))

        return launch


def look_compiled(interpreter):
    """Gives what a launch and a kernel's warmup return on a GPU, where the interpreter returns nothing,
    and has kernels pass for the compiler's, whose parameters and signature libraries read."""
    from triton.runtime.jit import JITFunction

    class InterpretedFunction(interpreter.InterpretedFunction):
        __class__ = property(lambda self: JITFunction)

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            vars(self).pop("run", None)  # of 3.5.1

        def __getattr__(self, name):
            if name.startswith("__") and name != "__globals__":
                raise AttributeError(name)
            self.known = vars(self).get("known") or JITFunction(self.fn)
            return getattr(self.known, name)

        @property
        def cache_key(self):
            return hashlib.sha256(self.src.encode()).hexdigest()

        def __getitem__(self, grid):
            return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

        def run(self, *args, grid, warmup=False, **kwargs):
            if not warmup:
                hooks = [self.pre_run_hooks] if "pre_run_hooks" in vars(self) else []  # not in 3.5.1
                interpreter.GridExecutor(self.rewrite(), self.arg_names, grid, *hooks)(*args, **kwargs)
            constants = {p.name: v for p, v in zip(self.params, args) if p.is_constexpr}
            return Compiled(self, {**constants, **{n: v for n, v in kwargs.items() if warmup or n not in self.arg_names or self.params[self.arg_names.index(n)].is_constexpr}})

        def warmup(self, *args, grid, **kwargs):
            return self.run(*args, grid=grid, warmup=True, **kwargs)

    interpreter.InterpretedFunction = InterpretedFunction
