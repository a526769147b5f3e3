package worker

import (
	"context"
	"slices"
	"time"

	"plumb/backend"
)

// TorchModes are the modes that Plumb's own worker may have: calls one by one,
// PyTorch's own graphs and its function transforms. Which of them there are
// depends on its version.
var TorchModes = []string{backend.Eager, "jit.trace", "jit.script", "fx", "compile", "export", "functional", "vmap", "dtensor", "dtensor-gloo", "dtensor-gloo-3", "dtensor-gloo-4", "dtensor-gloo-2x2"}

var _ backend.Modal = (*Worker)(nil)

// setMode has the worker run programs in a mode from now on.
func (w *Worker) setMode(mode string) error {
	if mode == backend.Eager {
		mode = ""
	}
	if mode != "" && !slices.Contains(w.info.Modes, mode) {
		return &backend.ModeError{Backend: w.info.Name + " " + w.info.Version, Mode: mode, Modes: w.info.Modes}
	}
	w.encode.mode = mode
	return nil
}

// forwardOnly reports whether the subject computes no gradients in a mode.
func (w *Worker) forwardOnly(mode string) bool {
	return w.info.ForwardOnly || slices.Contains(w.forwardModes, mode)
}

// describe says what holds in the mode of a description.
func (w *Worker) describe(info *backend.Info) {
	info.ForwardOnly = w.forwardOnly(info.Mode)
	info.Compiles = slices.Contains(w.compilingModes, info.Own())
}

// together reports whether the subject may compile the cases of an exchange as one
// function in the mode in which it runs.
func (w *Worker) together() bool {
	return w.encode.mode != "" && w.info.Features[backend.Together] == w.encode.mode
}

// patience is the time that an exchange has: that of a case, and some times as long
// where several are compiled together, which takes longer than one and not that of all.
func (w *Worker) patience() time.Duration {
	return w.config.CaseTimeout * time.Duration(max(1, min(w.compiled, starved)))
}

// In returns the worker in another mode: the same process, which is told the
// mode with each case.
func (w *Worker) In(mode string) (backend.Backend, error) {
	was := w.encode.mode
	if err := w.setMode(mode); err != nil {
		return nil, err
	}
	in := &inMode{w, w.encode.mode}
	w.encode.mode = was
	return in, nil
}

// inMode is a worker in a mode that is not its own.
type inMode struct {
	worker *Worker
	mode   string
}

// Info describes the subject in its mode.
func (m *inMode) Info() backend.Info {
	info := m.worker.Info()
	info.Mode = m.mode
	m.worker.describe(&info)
	return info
}

// Run runs one program.
func (m *inMode) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	outs, err := m.RunBatch(ctx, []*backend.Job{job})
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// RunBatch runs the jobs in one exchange.
func (m *inMode) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	was := m.worker.encode.mode
	m.worker.encode.mode = m.mode
	defer func() { m.worker.encode.mode = was }()
	return m.worker.RunBatch(ctx, jobs)
}

// Close leaves the process to the worker.
func (m *inMode) Close() error { return nil }
