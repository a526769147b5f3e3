package rounding

import (
	"math"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// sampled draws a call in float32, whose numbers float32 holds.
func sampled(t *testing.T, d *op.Def, key uint64) *op.Call {
	t.Helper()
	var pos []any
	var kws []op.Kwarg
	for _, v := range d.Sample(&op.Sampler{Source: choice.New(key), DType: tensor.F32}) {
		if kw, ok := v.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, v)
		}
	}
	call, err := ops.Table().ResolveID(d.ID(), pos, kws)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range call.Args.Vals {
		switch v := v.(type) {
		case float64:
			call.Args.Vals[i] = float64(float32(v))
		case op.Scalar:
			if imag(v.Complex()) == 0 && v.Float() != math.Trunc(v.Float()) {
				call.Args.Vals[i] = op.ScalarOf(float64(float32(v.Float())))
			}
		}
	}
	return call
}

// widened returns the call in float64, its differentiable tensors changed by f.
func widened(call *op.Call, f func(x *tensor.Tensor)) *op.Call {
	wide := &op.Call{Def: call.Def, Args: call.Args.MapValues(func(v op.Value) op.Value {
		x := v.(*tensor.Tensor)
		w := x.Convert(program.Wide(x.DType())).Clone()
		if x.DType().IsDifferentiable() {
			f(w)
		}
		return w
	})}
	for i, v := range wide.Args.Vals {
		if d, ok := v.(tensor.DType); ok {
			wide.Args.Vals[i] = program.Wide(d)
		}
	}
	return wide
}

// movedBy runs the call in float64 with elements that are off by at most one
// unit of their own size.
func movedBy(call *op.Call, unit float64, key int) ([]*tensor.Tensor, error) {
	n := key
	return widened(call, func(x *tensor.Tensor) {
		for i := range x.Len() {
			n++
			x.Set(i, x.At(i)*complex(1+unit*float64(n*7%3-1), 0))
		}
	}).Execute()
}

// TestBoundsHold: float32 kernels, and float64 kernels of inputs that are
// rounded once, stay within the bounds of every operator that has them.
func TestBoundsHold(t *testing.T) {
	const unit = 0x1p-24
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Compose != nil || d.Traits.Has(op.Random) || len(d.Mutates) > 0 || d.ID() == "nextafter" {
			continue // nextafter's step is that of the dtype
		}
		unknown := 0
		for key := range uint64(24) {
			call := sampled(t, d, key)
			for _, rounded := range []bool{false, true} {
				if !d.Differentiable() && rounded {
					continue // what is not differentiated is judged by its own inputs
				}
				s := newSession(ops.Table(), unit)
				wide := widened(call, func(w *tensor.Tensor) {
					if rounded {
						s.states[w] = &state{err: absolute(w)}
					}
				})
				out, err := s.Execute(wide)
				if err != nil {
					t.Fatalf("%s: %v", d.ID(), err)
				}
				var got []*tensor.Tensor
				if rounded {
					got, err = movedBy(call, unit, int(key))
				} else {
					got, err = call.Execute()
				}
				if err != nil {
					t.Fatalf("%s: %v", d.ID(), err)
				}
				for i, v := range out {
					y := v.(*eager.Var).Tensor
					st := s.states[y]
					if st.unknown {
						unknown++
						continue
					}
					if j := beyond(y, got[i], st, unit); j >= 0 {
						t.Errorf("%s, sample %d, rounded inputs %v: element %d of result %d is %v, in float64 %v: more than the bound %v of roundoffs",
							d.ID(), key, rounded, j, i, got[i].At(j), y.At(j), s.bound(y).Error)
					}
				}
			}
		}
		if id := d.ID(); (unknown > 0) != slices.Contains(unbounded, id) {
			t.Errorf("%s: %d results without a bound", id, unknown)
		}
	}
}

// TestWhatIsExact: what a bound takes for whole numbers is whole, where an operator is
// given such as floats and as integers.
func TestWhatIsExact(t *testing.T) {
	as := func(d *op.Def, call *op.Call, dtype tensor.DType) *op.Call {
		return &op.Call{Def: d, Args: call.Args.MapValues(func(v op.Value) op.Value {
			x := v.(*tensor.Tensor)
			if x.DType() != tensor.F64 {
				return x
			}
			return x.Convert(dtype)
		})}
	}
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Compose != nil || d.Traits.Has(op.Random) || len(d.Mutates) > 0 {
			continue
		}
		for key := range uint64(12) {
			whole := widened(sampled(t, d, key), func(x *tensor.Tensor) {
				for i := range x.Len() {
					x.Set(i, complex(math.Round(real(x.At(i))), 0))
				}
			})
			for _, dtype := range []tensor.DType{tensor.F64, tensor.I64} {
				s := newSession(ops.Table(), 0x1p-24)
				out, err := s.Execute(as(d, whole, dtype))
				if err != nil {
					continue // which takes no whole numbers, or no integers
				}
				for i, v := range out {
					y := v.(*eager.Var).Tensor
					if st := s.states[y]; st.integral && !st.unknown && !integral(y) {
						t.Errorf("%s, sample %d in %s: result %d is not whole", d.ID(), key, dtype, i)
					}
				}
			}
		}
	}
}

// unbounded are the operators some of whose results have no bound.
var unbounded = slices.Concat(
	// their results jump, or have no gradient to follow
	[]string{"zeta", "mode", "quantile.places", "quantile", "nanquantile", "attention.causal", "embedding_bag", "pdist"},
	// their bound would need a condition number
	[]string{"matrix_power.identity", "inverse", "linalg_inv", "inverse.near", "det", "linalg_det", "slogdet", "linalg_slogdet", "linalg_solve", "cholesky", "linalg_cholesky", "linalg_cholesky_ex",
		"linalg_solve_triangular", "linalg_qr", "svd.thin", "eigh.vectors", "linalg_pinv", "pinverse", "matrix_exp"},
	// between real and complex numbers, and to a given dtype
	[]string{"half", "bfloat16", "float", "double", "cfloat", "cdouble", "complex", "real", "imag", "view_as_real", "view_as_complex"},
	// no formula yet
	[]string{"linalg_svdvals", "linalg_eigvalsh", "nan_to_num", "bincount", "index_reduce", "scatter_reduce", "lp_pool1d", "lp_pool2d", "grid_sample", "grid_sample.read", "grid_sample.spread", "ctc_loss", "ctc_loss.samples", "ctc_loss.backward"},
)

// beyond returns the first element that is farther off than the bound, to
// first order; −1 when there is none.
func beyond(want, got *tensor.Tensor, st *state, unit float64) int {
	for j := range want.Len() {
		a, b, e := want.At(j), got.At(j), 0.0
		if st.err != nil {
			e = st.err.Float(j)
		}
		if off := math.Hypot(real(a)-real(b), imag(a)-imag(b)); off > 1.001*unit*e+1e-12*(1+math.Hypot(real(a), imag(a))) && off > 0x1p-149 {
			return j
		}
	}
	return -1
}
