package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/campaign/coverage"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/gradcheck"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// covering fills in the matrix of plumb run --coverage.
type covering struct {
	matrix *coverage.Matrix
	defs   []*op.Def
	cells  map[string][]cell // by test, of its cases
}

// cell is where a case belongs.
type cell struct {
	op     *coverage.Op
	def    *op.Def
	dtype  tensor.DType
	layout opcase.Layout
}

// coverTests are the tests that fill in the matrix: one per operator that
// matches and dtype, of a few cases in every layout.
func (r *runner) coverTests(pattern string) ([]campaign.Test, error) {
	if len(r.dtypes) > 0 {
		return nil, fmt.Errorf("--coverage fills in every dtype: leave out --dtype")
	}
	m := &coverage.Matrix{Reference: r.backends.Is(r.reference), Date: time.Now().UTC().Format(time.DateOnly), Seed: r.seed, Cases: r.n}
	if m.Cases == 0 {
		m.Cases = 2
	}
	for _, dt := range opDTypes {
		m.DTypes = append(m.DTypes, dt.String())
	}
	for _, l := range opcase.Layouts {
		m.Layouts = append(m.Layouts, string(l))
	}
	r.covering = &covering{matrix: m, cells: map[string][]cell{}}
	var out []campaign.Test
	for _, d := range ops.Table().Defs() {
		ok, err := answersTo(d, pattern)
		if err != nil {
			return nil, fmt.Errorf("--ops %s: %w", pattern, err)
		}
		if !ok || len(d.Names) == 0 || d.Sample == nil || !strings.Contains(d.ID(), r.filter) {
			continue
		}
		r.covering.defs = append(r.covering.defs, d)
		o := m.Add(d.ID())
		for _, dt := range opDTypes {
			if t := r.covering.test(d, o, dt, r.seed); t.N > 0 {
				out = append(out, t)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--ops %s: no operator's name matches; plumb ops lists them", pattern)
	}
	return out, nil
}

// test draws the cases of one operator and dtype.
func (c *covering) test(d *op.Def, o *coverage.Op, dt tensor.DType, seed uint64) campaign.Test {
	name := fmt.Sprintf("cover::%s[%s]", d.ID(), dt)
	key := choice.DeriveName(seed, name)
	drawer := opcase.Drawer{Table: ops.Table(), Def: d}
	var programs []*program.Program
	for i, l := range opcase.Layouts {
		for j := range c.matrix.Cases {
			p, err := drawer.Arranged(choice.New(choice.Derive(key, uint64(i*c.matrix.Cases+j))), dt, l)
			if err != nil {
				for _, dir := range []coverage.Direction{coverage.Forward, coverage.Backward} {
					c.matrix.Set(o, dir, dt.String(), string(l), coverage.Impossible, err.Error())
				}
				continue
			}
			p.Name = name
			programs = append(programs, p)
			c.cells[name] = append(c.cells[name], cell{o, d, dt, l})
		}
	}
	test := fixed(name, programs)
	test.Graph = false // as for --ops
	return test
}

// record fills in the cells of a judged case.
func (c *covering) record(rec *verdict.Record) {
	at := c.cells[rec.Test][rec.Index]
	v := rec.Verdict
	reason := firstSentence(v.Reason)
	set := func(dir coverage.Direction, s coverage.State, reason string) {
		if why := notDifferentiable(at.def, at.dtype); dir == coverage.Backward && why != "" {
			s, reason = coverage.None, why
		}
		c.matrix.Set(at.op, dir, at.dtype.String(), string(at.layout), s, reason)
	}
	both := func(s coverage.State) {
		set(coverage.Forward, s, reason)
		set(coverage.Backward, s, reason)
	}
	state := coverage.Misaligned
	switch v.Word {
	case verdict.Aligned:
		set(coverage.Forward, coverage.Aligned, "")
		s, why := at.backward(rec)
		set(coverage.Backward, s, why)
		return
	case verdict.Rejected:
		reason = "both refuse: " + firstSentence(rec.Reference.Class+": "+rec.Reference.Message)
		state = coverage.Refused
	case verdict.Unsupported:
		state = coverage.Beyond
	case verdict.Known:
		state = coverage.Known
	}
	if inBackward(rec) {
		set(coverage.Forward, coverage.Aligned, "")
		set(coverage.Backward, state, reason)
		return
	}
	both(state)
}

// inBackward reports whether a case that is not aligned is so in its gradients.
func inBackward(rec *verdict.Record) bool {
	v := rec.Verdict
	if v.Word == verdict.Rejected {
		return rec.Reference.Call == len(rec.Program.Calls)
	}
	if v.Where != nil {
		return v.Where.Part == backend.PartGrad
	}
	raised := func(o *backend.Outcome) bool {
		return o != nil && o.Status == backend.Raised && o.Call == len(rec.Program.Calls)
	}
	return raised(rec.Reference) || raised(rec.Outcome)
}

// backward says what an aligned case tells of the gradient.
func (at cell) backward(rec *verdict.Record) (coverage.State, string) {
	for _, s := range rec.Reference.Slots {
		if s.Part == backend.PartGrad && s.Tensor != nil {
			return coverage.Aligned, ""
		}
	}
	return coverage.None, "no gradient arrives at an argument of this call"
}

func notDifferentiable(d *op.Def, dt tensor.DType) string {
	if !dt.IsDifferentiable() {
		return "integers and booleans are not differentiable"
	}
	return gradcheck.None(d)
}

// firstSentence returns the first line of a message, cut where it is long.
func firstSentence(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 160 {
		line = string(runes[:160]) + "…"
	}
	return line
}

// finish fills in the second order and writes the file.
func (r *runner) finish(ctx context.Context) error {
	c := r.covering
	check := func(d *op.Def) []secondOrder { return secondOrders(d, r.seed) }
	i := 0
	for cells := range inOrder(ctx, r.jobs, c.defs, check) {
		for _, s := range cells {
			c.matrix.Set(c.matrix.Ops[i], coverage.Second, s.dtype.String(), string(s.layout), s.state, s.reason)
		}
		i++
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	tmp, err := os.CreateTemp(filepath.Dir(r.coverage), ".plumb-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := c.matrix.WriteFile(r.coverage, tmp); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), r.coverage)
}

// secondOrder is a cell of the second order.
type secondOrder struct {
	dtype  tensor.DType
	layout opcase.Layout
	state  coverage.State
	reason string
}

// secondOrders checks the second order of an operator in every layout.
func secondOrders(d *op.Def, seed uint64) []secondOrder {
	var out []secondOrder
	for _, dt := range opDTypes {
		for _, l := range opcase.Layouts {
			s := secondOrder{dtype: dt, layout: l}
			s.state, s.reason = secondState(d, dt, l, seed)
			out = append(out, s)
		}
	}
	return out
}

func secondState(d *op.Def, dt tensor.DType, l opcase.Layout, seed uint64) (coverage.State, string) {
	if why := notDifferentiable(d, dt); why != "" {
		return coverage.None, why
	}
	switch {
	case dt != tensor.F64 && dt != tensor.C128:
		return coverage.Unmeasured, "the second order is checked by difference quotients, which need float64 or complex128"
	case l == opcase.ZeroSize:
		return coverage.Impossible, "a tensor without elements has no difference quotient"
	}
	o := gradcheck.Options{Seed: seed, Calls: 24, DTypes: []tensor.DType{dt}, Arrange: arrangement(l)}
	r := gradcheck.Check(ops.Table(), d, o)
	if l == opcase.ChannelsLast && r.Orders[1].Checked == 0 {
		o.Arrange = deepened(o.Arrange)
		r = gradcheck.Check(ops.Table(), d, o)
	}
	switch {
	case len(r.Findings) > 0:
		return coverage.Misaligned, firstSentence(r.Findings[0].String())
	case r.Orders[1].Checked > 0:
		return coverage.Aligned, ""
	case r.Refused != nil:
		return coverage.Refused, "such calls, or their gradients, are refused: " + firstSentence(r.Refused.Error())
	case l == opcase.Contiguous:
		return coverage.None, "the gradient is constant or has no derivative, as PyTorch's"
	}
	return coverage.Impossible, "no drawn call has such an argument whose gradient has a gradient"
}

// arrangement returns what gives a tensor a layout.
func arrangement(l opcase.Layout) func(*tensor.Tensor) (*tensor.Tensor, bool) {
	strided := func(t *tensor.Tensor, strides []int) (*tensor.Tensor, bool) {
		u := tensor.NewStrided(t.DType(), t.Shape(), strides)
		u.CopyFrom(t)
		return u, !u.IsContiguous()
	}
	switch l {
	case opcase.ChannelsLast:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
			if t.Dim() < 4 || t.Dim() > 5 {
				return t, false
			}
			return strided(t, tensor.ChannelsLast.Strides(t.Shape()))
		}
	case opcase.Permuted:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) { return strided(t, opcase.Reversed(t.Shape())) }
	case opcase.Gapped:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) { return strided(t, opcase.Spaced(t.Shape())) }
	case opcase.ZeroDim:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
			if t.Len() == 0 {
				return t, false
			}
			return tensor.Scalar(t.DType(), t.At(0)), true
		}
	}
	return func(t *tensor.Tensor) (*tensor.Tensor, bool) { return t, true }
}

// deepened gives a tensor four dimensions first. Its elements are repeated,
// smaller each time: equal ones are where deviations and norms have no slope.
func deepened(arrange func(*tensor.Tensor) (*tensor.Tensor, bool)) func(*tensor.Tensor) (*tensor.Tensor, bool) {
	return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
		shape := t.Shape()
		for len(shape) < 4 {
			shape = append([]int{2}, shape...)
		}
		u := tensor.New(t.DType(), shape...)
		if t.Len() == 0 {
			return t, false
		}
		for i := range u.Len() {
			u.Set(i, t.At(i%t.Len())*complex(1-float64(i/t.Len())/64, 0))
		}
		return arrange(u)
	}
}

// isCoverage reports whether an argument of plumb ops --coverage is a file's
// name, not an operator's.
func isCoverage(arg string) bool {
	return strings.HasSuffix(arg, ".json") || strings.HasSuffix(arg, coverage.Compressed)
}

// readCoverage reads a coverage file, the shipped one for no path, and keeps
// the operators asked for.
func readCoverage(path string, defs []*op.Def) (*coverage.Matrix, error) {
	m, err := coverageAt(path)
	if err != nil {
		return nil, err
	}
	var kept []*coverage.Op
	for _, d := range defs {
		if o := m.Op(d.ID()); o != nil {
			kept = append(kept, o)
		}
	}
	m.Ops = kept
	return m, nil
}

func coverageAt(path string) (*coverage.Matrix, error) {
	if path == "" {
		return coverage.Shipped()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := coverage.ReadFile(path, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; plumb run --ops '*' --coverage FILE writes one", path, err)
	}
	return m, nil
}
