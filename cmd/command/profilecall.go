package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/stopwatch"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// profiledCall is a call that is measured, the last of a program.
type profiledCall struct {
	prog        *program.Program
	state       map[string]backend.State // of modules: the reference's
	bytes       int                      // of arguments and result
	arguments   []string                 // tensors: "x float32[2, 3]"
	elementwise bool
}

func newProfiledCall(p *program.Program, i int) *profiledCall {
	c := &profiledCall{prog: p.Clone()}
	c.prog.Calls, c.prog.Backward = c.prog.Calls[:i+1], nil
	if defs := ops.Table().Lookup(c.call().Target); len(defs) > 0 {
		class := defs[0].Tol.Class
		c.elementwise = defs[0].View == nil && (class == op.Pointwise || class == op.Exact)
	}
	return c
}

func (c *profiledCall) call() *program.Call { return &c.prog.Calls[len(c.prog.Calls)-1] }

// roundTime is how long the calls of one round last.
const roundTime = 10 * time.Millisecond

// What is measured at most: calls in a round, and bytes in all values of a
// program.
const (
	maxRepeats  = 10000
	maxMeasured = 512 << 20
)

// warming is how many rounds do not count: one call, and as many as its time
// lets expect.
const warming = 2

// noGradient is why a call has no backward pass.
const noGradient = "no result requires a gradient"

// measured is what a side's rounds gave.
type measured struct {
	repeats int
	times   []float64 // microseconds a call
	failed  string    // why there are none
	stops   string    // why no other side is to run the program either
}

// measure lets the sides take turns, after a round that does not count.
func (c *profiledCall) measure(ctx context.Context, sides []profileSide, backward bool, rounds int) ([]profileRow, error) {
	all := make([]measured, len(sides))
	if backward && op.InPlace(c.call().Target) {
		return nil, nil // its arguments are no leaves that may change
	}
	err := stopwatch.InTurns(warming+rounds, len(sides), func(round, i int) error {
		m := &all[i]
		if m.failed == "" && i > 0 {
			m.failed = all[0].stops
		}
		if m.failed != "" {
			return nil
		}
		spent, err := c.once(ctx, sides[i], &backend.Measure{Times: max(m.repeats, 1), Backward: backward}, m)
		switch {
		case err != nil || m.failed != "":
			return err
		case round < warming:
			each := max(spent/time.Duration(max(m.repeats, 1)), 1)
			m.repeats = int(min(maxRepeats, 1+roundTime/each))
		default:
			m.times = append(m.times, spent.Seconds()*1e6/float64(m.repeats))
		}
		return nil
	})
	if err != nil || all[0].failed == noGradient {
		return nil, err
	}
	return c.rows(sides, all, backward), nil
}

// once runs the program on a side, one at a time, and returns how long the
// measured calls took.
func (c *profiledCall) once(ctx context.Context, s profileSide, ask *backend.Measure, m *measured) (time.Duration, error) {
	job := backend.NewJob(c.prog)
	job.State, job.Measure = c.state, ask
	out, err := s.Run(ctx, job)
	switch {
	case err != nil:
		return 0, err
	case out.Status != backend.OK:
		m.failed = fmt.Sprintf("%s: %s", out.Status, firstLineOf(out.Message))
		m.stops = fmt.Sprintf("not run: %s fails", s.name)
	case outcomeBytes(out) > maxMeasured:
		m.failed = fmt.Sprintf("its tensors take %d MiB, more than %d", outcomeBytes(out)>>20, maxMeasured>>20)
		m.stops = m.failed
	case out.Measured < 0:
		m.failed = noGradient
	case out.Measured == 0:
		m.failed = "it does not measure calls"
	}
	if c.state == nil {
		c.state = out.Initial
	}
	if c.arguments == nil && out.Status == backend.OK {
		c.look(job, out)
	}
	return out.Measured, nil
}

// look notes what the call's tensors are like.
func (c *profiledCall) look(job *backend.Job, out *backend.Outcome) {
	values := map[program.Ref]backend.Value{}
	for i := range job.Program.Inputs {
		values[program.Ref(job.Program.Inputs[i].Name)] = backend.Value{Tensor: job.Inputs[i]}
	}
	for i, v := range out.Values {
		values[program.Ref(job.Program.Calls[i].Result)] = v
	}
	c.bytes, c.arguments = valueBytes(out.Values[len(out.Values)-1]), []string{}
	var seen []program.Ref
	c.call().EachRef(func(r program.Ref) {
		if slices.Contains(seen, r) {
			return
		}
		seen = append(seen, r)
		c.bytes += valueBytes(values[r])
		if t := values[r].Tensor; t != nil {
			c.arguments = append(c.arguments, fmt.Sprintf("%s %s%s", r, t.DType(), tensor.ShapeString(t.Shape())))
		}
	})
}

func outcomeBytes(out *backend.Outcome) int {
	n := 0
	for _, v := range out.Values {
		n += valueBytes(v)
	}
	return n
}

func valueBytes(v backend.Value) int {
	n := 0
	if v.Tensor != nil {
		n = v.Tensor.Len() * v.Tensor.DType().Size()
	}
	for _, e := range v.Tuple {
		n += valueBytes(e)
	}
	return n
}

// rows are the sides' medians; the first side's is what the others are compared with.
func (c *profiledCall) rows(sides []profileSide, all []measured, backward bool) []profileRow {
	rows := make([]profileRow, len(sides))
	for i, m := range all {
		r := &rows[i]
		r.Call, r.Arguments = c.call().Expr(), c.arguments
		r.Subject, r.Pass, r.Failed = sides[i].name, forwardPass, m.failed
		if backward {
			r.Pass = bothPasses
		}
		if m.failed != "" {
			continue
		}
		r.Median, r.Calls = stopwatch.Median(m.times), m.repeats*len(m.times)
		r.Low, r.High = stopwatch.Interval(m.times)
		if c.elementwise && !backward {
			r.GBs = float64(c.bytes) / r.Median / 1e3
		}
		if first := rows[0]; i > 0 && first.Median > 0 {
			r.Ratio = r.Median / first.Median
			r.RatioLow, r.RatioHigh = r.Low/first.High, r.High/first.Low
		}
	}
	return rows
}

// sideObserver tells a function that asks for values while it is drawn what a
// side computes.
type sideObserver struct {
	ctx  context.Context
	side profileSide
}

// Observe runs the program so far.
func (o sideObserver) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return backend.Observe(p, refs, func(job *backend.Job) (*backend.Outcome, error) {
		out, err := o.side.Run(o.ctx, job)
		if err == nil && out.Status != backend.OK {
			err = &campaign.CutShort{Program: p, Outcome: out}
		}
		return out, err
	})
}
