"""Autotuning without a clock: each configuration is launched once, and the first that can be is taken.
Tried with Triton 3.5.1 and 3.9.0."""

SHARE = 8  # a tuning has one part in so many of what a call may compute; the configurations left over are not tried


def tune_once(layer, interpreter):
    """Has the autotuner leave out configurations that a kernel refuses by tl.static_assert, as where it
    compiles, and no longer try others where they take too much of what the interpreter can run."""
    from triton.runtime.autotuner import Autotuner

    bench = Autotuner._bench

    def bench_once(self, *args, config, **meta):
        tuning = len(self.cache)
        if getattr(self, "_tuning", None) != tuning:
            self._tuning, self._began, self._tried = tuning, layer.work, 0
        if self._tried > 1 and layer.since is not None and layer.work - self._began > layer.most // SHARE:
            return [2.0, 2.0, 2.0]
        try:
            times = bench(self, *args, config=config, **meta)
        except interpreter.InterpreterError as e:
            if not refused(e.__cause__):
                raise
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
