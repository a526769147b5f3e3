// Package rounding knows how far rounding may move the results of any
// backend's program: it runs programs over a table of operators and carries
// the bounds of errors along.
package rounding

import (
	"context"

	"plumb/backend"
	"plumb/internal/interp"
	"plumb/internal/judge/compare"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
)

// Analysis bounds the rounding errors of programs.
type Analysis struct {
	table       *op.Table
	modules     *nn.Table
	interpreter *interp.Interpreter
}

// New returns an analysis of programs over a table of operators and one of modules.
func New(table *op.Table, modules *nn.Table) *Analysis {
	return &Analysis{table: table, modules: modules, interpreter: interp.New(table, modules)}
}

// Bounds runs the program, backward where gradients are asked for, in float64
// and carries along with every value a bound of the rounding error that an implementation may have made on the way
// to it, whatever the order of its sums: a running error analysis (J. H.
// Wilkinson; N. Higham, Accuracy and Stability of Numerical Algorithms, §3.3),
// through gradients too. Values whose error cannot be told, and what depends
// on them, have no bound. State holds the initial state of modules.
func (a *Analysis) Bounds(job *backend.Job, gradients bool) *compare.Bounds {
	s := newSession(a.table, roundoff(job))
	return s.collect(job.Program, a.run(s, job, gradients))
}

// run runs a job in float64.
func (a *Analysis) run(s *errorSession, job *backend.Job, gradients bool) *backend.Outcome {
	wide := &backend.Job{Program: program.Widen(reached(job.Program, gradients)), State: map[string]backend.State{}}
	for _, t := range job.Inputs {
		wide.Inputs = append(wide.Inputs, t.Convert(program.Wide(t.DType())))
	}
	for name, st := range job.State {
		for _, n := range st {
			n.Tensor = n.Tensor.Convert(program.Wide(n.Tensor.DType()))
			wide.State[name] = append(wide.State[name], n)
		}
	}
	return a.interpreter.Start(wide, s).Outcome(context.Background())
}

// reached returns the program without its backward pass where gradients are
// not asked for.
func reached(p *program.Program, gradients bool) *program.Program {
	if gradients {
		return p
	}
	forward := *p
	forward.Backward, forward.Second, forward.Step = nil, program.Fill{}, program.Step{}
	return &forward
}

// roundoff returns the unit roundoff of the coarsest dtype that the job computes in.
func roundoff(job *backend.Job) float64 {
	u := 0.0
	for _, t := range job.Inputs {
		if t.DType().IsDifferentiable() {
			u = max(u, compare.Roundoff(t.DType()))
		}
	}
	for _, st := range job.State {
		for _, n := range st {
			if n.Tensor.DType().IsDifferentiable() {
				u = max(u, compare.Roundoff(n.Tensor.DType()))
			}
		}
	}
	return u
}
