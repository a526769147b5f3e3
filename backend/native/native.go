// Package native is the backend of Plumb's own operators.
package native

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"plumb/backend"
	"plumb/global"
	"plumb/graph"
	"plumb/internal/interp"
	"plumb/nn"
	"plumb/op"
)

// Backend runs programs eagerly on the operators of a table and the modules of another.
type Backend struct {
	interpreter *interp.Interpreter
	options     graph.Options // of the modes of graphs
	device      *op.Device    // nil for the host
}

// New returns a backend.
func New(table *op.Table, modules *nn.Table) *Backend {
	return &Backend{interpreter: interp.New(table, modules)}
}

// Compiling returns the backend with other options for the mode "graph".
func (b *Backend) Compiling(o graph.Options) *Backend {
	c := *b
	c.options = o
	return &c
}

// On returns the backend with its tensors on a device, each on another of its streams as
// long as there are any.
func (b *Backend) On(d *op.Device) *Backend {
	c := *b
	stream := int(opened.Add(1)) % d.Streams
	c.device, c.interpreter = d, b.interpreter.On(d, stream)
	c.options.Device, c.options.Stream = d, stream
	return &c
}

var opened atomic.Uint32

// TakingInt32 returns the backend with operators that take indices of int32
// wherever they take int64, as PyTorch's do not.
func (b *Backend) TakingInt32() *Backend {
	c := *b
	c.interpreter = b.interpreter.TakingInt32()
	return &c
}

// Trusting returns the backend that takes it for granted that its kernels write to
// no argument but those that their operators name, as one that nobody judges may.
func (b *Backend) Trusting() *Backend {
	c := *b
	c.interpreter = b.interpreter.Trusting()
	return &c
}

// Modes are what may follow "native:": how programs are run.
// Of Global and GlobalGraph there is one for every hierarchy of ranks.
var Modes = []string{backend.Eager, "graph", "graph-plain", Global, GlobalGraph}

// HasMode reports whether there is such a mode; "" stands for the first.
func HasMode(mode string) bool {
	_, ranks := placementOf(mode)
	_, graphs := graphPlacement(mode)
	return ranks || graphs || mode == "" || slices.Contains(Modes, mode)
}

var _ backend.Modal = (*Backend)(nil)

// Info returns the backend's name and modes.
func (b *Backend) Info() backend.Info { return b.info(backend.Eager) }

func (b *Backend) info(mode string) backend.Info {
	return backend.Info{Name: "native", Version: mode, Devices: []string{b.device.String()}, Modes: Modes, Mode: mode}
}

// In returns the backend in a mode; "" stands for the first.
func (b *Backend) In(mode string) (backend.Backend, error) {
	switch mode {
	case "", backend.Eager:
		return b, nil
	case "graph":
		return b.Graph(b.options), nil
	case "graph-plain":
		return b.Graph(b.options.WithoutPasses()), nil
	}
	if b.device != nil && op.DeviceNamed(b.device.Name) != b.device { // which placements name
		return nil, &backend.ModeError{Backend: "native@" + b.device.Name, Mode: mode, Modes: Modes[:3]}
	}
	over := *b // of ranks, each of which has its parts on the device
	over.interpreter = b.interpreter.On(nil, 0)
	if p, ok := placementOf(mode); ok {
		p.Device = b.device.String()
		return &GlobalBackend{Backend: &over, mode: mode, placement: p, limit: caseLimit}, nil
	}
	if p, ok := graphPlacement(mode); ok {
		p.Device = b.device.String()
		return &GlobalGraphBackend{&over, mode, p, global.Passes()}, nil
	}
	return nil, &backend.ModeError{Backend: "native", Mode: mode, Modes: Modes}
}

// Close does nothing.
func (*Backend) Close() error { return nil }

// Run runs the program. A panic of an operator is the outcome Crashed.
func (b *Backend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	start := time.Now()
	out := b.interpreter.Eager(ctx, job)
	out.Elapsed = time.Since(start)
	return out, nil
}
