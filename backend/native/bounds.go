package native

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"plumb/autograd"
	"plumb/backend"
	"plumb/compare"
	"plumb/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Bounds runs the program on absolute values in float64 and returns bounds of
// the rounding errors that any implementation makes which sums the same terms
// in any order. Values that are no sums of products of the inputs, and what
// depends on them, have no bound. State holds the initial state of modules.
func (b *Backend) Bounds(job *backend.Job) *compare.Bounds {
	s := &magnitudes{table: b.table, units: map[*tensor.Tensor]growth{}}
	abs := &backend.Job{Program: program.Widen(job.Program), State: map[string]backend.State{}}
	for _, t := range job.Inputs {
		m := t
		if t.DType().IsDifferentiable() {
			m = magnitude(t)
			s.units[m] = growth{integral: integral(t)}
		}
		abs.Inputs = append(abs.Inputs, m)
	}
	for name, st := range job.State {
		for _, n := range st {
			if n.Tensor.DType().IsDifferentiable() {
				n.Tensor = magnitude(n.Tensor)
			}
			abs.State[name] = append(abs.State[name], n)
		}
	}
	out := b.run(context.Background(), abs, s)
	return s.collect(job.Program, out)
}

// growth is how the error of a value has grown.
type growth struct {
	units    float64
	integral bool
}

// magnitudes is a session that computes Σ|terms| in place of values.
type magnitudes struct {
	table *op.Table
	tape  []autograd.Node
	units map[*tensor.Tensor]growth
}

var errNoBound = errors.New("no sum of products")

func (s *magnitudes) Leaf(t *tensor.Tensor, requiresGrad bool) *eager.Var {
	return eager.New(s.table).Leaf(t, requiresGrad)
}

func (s *magnitudes) Builder() op.Builder { return op.Builder{Applier: s} }

// Apply applies an operator of a module's forward or of a gradient rule.
func (s *magnitudes) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := s.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return s.Execute(call)
}

// Execute applies the call's magnitude operator to the magnitudes.
func (s *magnitudes) Execute(call *op.Call) ([]op.Value, error) {
	if call.Def.Compose != nil {
		return call.Parts(s.Builder())
	}
	grow := s.grow(call)
	if call.Def.Magnitude == "" {
		return nil, fmt.Errorf("%w: %s", errNoBound, call.Def.ID())
	}
	abs, err := s.absolute(call)
	if err != nil {
		return nil, err
	}
	session := eager.New(s.table)
	out, err := session.Execute(abs)
	if err != nil {
		return nil, err
	}
	record := false
	for _, v := range out {
		x := v.(*eager.Var)
		s.units[x.Tensor] = grow
		record = record || x.RequiresGrad()
	}
	if record {
		s.tape = append(s.tape, autograd.Node{Call: abs, Out: out})
	}
	return out, nil
}

// absolute binds the magnitude operator to the call's arguments, numbers
// replaced by their absolute values.
func (s *magnitudes) absolute(call *op.Call) (*op.Call, error) {
	def := s.table.Def(call.Def.Magnitude)
	if call.Def.ID() == "div" && call.Args.Value("other") != nil {
		return nil, fmt.Errorf("%w: a quotient of tensors", errNoBound)
	}
	if def == nil {
		return nil, fmt.Errorf("%w: %s names the magnitude %s", errNoBound, call.Def.ID(), call.Def.Magnitude)
	}
	var kwargs []op.Kwarg
	sig := def.Sigs()[0]
	for i, p := range call.Args.Sig.Params {
		v := call.Args.Vals[i]
		if sc, ok := v.(op.Scalar); ok {
			c := sc.Complex()
			v = op.ScalarOf(math.Hypot(real(c), imag(c)))
		}
		if sig.Index(p.Name) >= 0 && v != nil {
			kwargs = append(kwargs, op.Kw(p.Name, v))
		}
	}
	return s.table.ResolveID(def.ID(), nil, kwargs)
}

// grow adds the call's roundings to those of its inputs.
func (s *magnitudes) grow(call *op.Call) growth {
	g := growth{integral: true}
	for _, v := range call.Args.AllValues() {
		if x, ok := v.(*eager.Var); ok && x.DType().IsDifferentiable() {
			in := s.units[x.Tensor]
			g.units += in.units
			g.integral = g.integral && in.integral
		}
	}
	for _, v := range call.Args.Vals {
		if sc, ok := v.(op.Scalar); ok && sc.Float() != math.Trunc(sc.Float()) {
			g.integral = false
		}
	}
	switch tol := call.Def.Tol; tol.Class {
	case op.Pointwise:
		g.units += max(1, tol.ULP)
	case op.Accumulating:
		k := 1.0
		if tol.Terms != nil {
			k = float64(max(tol.Terms(call.Args), 1))
		}
		g.units += min(k, 2*math.Sqrt(k)) + 1
		g.integral = g.integral && !strings.HasPrefix(call.Def.ID(), "mean")
	}
	return g
}

// Backward walks the tape of magnitudes.
func (s *magnitudes) Backward(values, cotangents []op.Value, _ bool) (autograd.Cotangents, error) {
	b := s.Builder()
	cot := autograd.Cotangents{}
	for i, v := range values {
		c := s.Leaf(magnitude(cotangents[i].(*tensor.Tensor)), false)
		s.units[c.Tensor] = growth{integral: integral(c.Tensor)}
		if err := cot.Seed(b, v, c); err != nil {
			return nil, err
		}
	}
	return cot, autograd.Walk(b, s.tape, cot, eager.RequiresGrad)
}

// magnitude returns |t| in float64.
func magnitude(t *tensor.Tensor) *tensor.Tensor {
	m := tensor.New(tensor.F64, t.Shape()...)
	data := tensor.Data[float64](m)
	for i := range data {
		v := t.At(i)
		data[i] = math.Hypot(real(v), imag(v))
	}
	return m
}

func integral(t *tensor.Tensor) bool {
	for i := range t.Len() {
		if v := t.At(i); real(v) != math.Trunc(real(v)) || imag(v) != math.Trunc(imag(v)) {
			return false
		}
	}
	return true
}

func (s *magnitudes) bound(t *tensor.Tensor) *compare.Bound {
	g, ok := s.units[t]
	if t == nil || !ok {
		return nil
	}
	return &compare.Bound{Magnitude: t.Contiguous(), Units: g.units, Integral: g.integral}
}

func (s *magnitudes) collect(p *program.Program, out *backend.Outcome) *compare.Bounds {
	b := &compare.Bounds{Values: make([]*compare.Bound, len(p.Calls)), Grads: map[string]*compare.Bound{}, ParamGrads: map[string]map[string]*compare.Bound{}}
	for i, v := range out.Values {
		if v.Tensor != nil {
			b.Values[i] = s.bound(v.Tensor)
		}
	}
	if out.Status != backend.OK {
		return b
	}
	for name, t := range out.Grads {
		b.Grads[name] = s.bound(t)
	}
	for name, st := range out.ParamGrads {
		b.ParamGrads[name] = map[string]*compare.Bound{}
		for _, n := range st {
			b.ParamGrads[name][n.Name] = s.bound(n.Tensor)
		}
	}
	return b
}

var _ session = (*magnitudes)(nil)
