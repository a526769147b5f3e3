package ops_test

import (
	"math"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// sample draws a call of d's Sample.
func sample(t *testing.T, d *op.Def, key uint64, dtype tensor.DType) *op.Call {
	t.Helper()
	pos, kws := split(d.Sample(&op.Sampler{Source: choice.New(key), DType: dtype}))
	call, err := ops.Table().ResolveID(d.ID(), pos, kws)
	if err != nil {
		t.Fatalf("sample %d: %v", key, err)
	}
	return call
}

// everySample runs f on a few sampled calls of every operator of the table.
func everySample(t *testing.T, f func(t *testing.T, call *op.Call)) {
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil {
			continue
		}
		t.Run(d.ID(), func(t *testing.T) {
			for key := range uint64(24) {
				f(t, sample(t, d, key, []tensor.DType{tensor.F64, tensor.F32}[key%2]))
			}
		})
	}
}

// with returns the call with every tensor replaced by f of it.
func with(call *op.Call, f func(*tensor.Tensor) *tensor.Tensor) *op.Call {
	return &op.Call{Def: call.Def, Args: call.Args.MapValues(func(v op.Value) op.Value { return f(v.(*tensor.Tensor)) })}
}

// execute runs a call on copies of its tensors, as kernels may update some in place.
func execute(t *testing.T, call *op.Call) []*tensor.Tensor {
	t.Helper()
	out, err := with(call, sameLayout).Execute()
	if err != nil {
		t.Fatalf("%s: %v", call.Def.ID(), err)
	}
	return out
}

func sameLayout(x *tensor.Tensor) *tensor.Tensor {
	u, err := tensor.FromBytes(x.DType(), x.Shape(), x.Strides(), x.Offset(), slices.Clone(x.Storage()))
	if err != nil {
		panic(err)
	}
	return u
}

func tensorsOf(call *op.Call) []*tensor.Tensor {
	var ts []*tensor.Tensor
	for _, v := range call.Args.AllValues() {
		ts = append(ts, v.(*tensor.Tensor))
	}
	return ts
}

func TestInferSaysWhatExecuteReturns(t *testing.T) {
	layouts := []func(*tensor.Tensor) *tensor.Tensor{sameLayout, spaced, reversedOrder}
	everySample(t, func(t *testing.T, call *op.Call) {
		for i, layout := range layouts {
			c := with(call, layout)
			metas, err := c.Infer()
			out, runErr := with(c, sameLayout).Execute()
			if (err == nil) != (runErr == nil) {
				t.Fatalf("layout %d: Infer says %v, Execute %v", i, err, runErr)
			}
			for j, m := range metas {
				want := m.Strides
				if want == nil {
					want = tensor.ContiguousStrides(m.Shape)
				}
				if out[j].DType() != m.DType || !slices.Equal(out[j].Shape(), m.Shape) || !slices.Equal(out[j].Strides(), want) {
					t.Errorf("layout %d, result %d is %s with strides %v, inferred %s%v with strides %v",
						i, j, out[j], out[j].Strides(), m.DType, m.Shape, want)
				}
			}
		}
	})
}

// spaced lays x out with gaps between the elements.
func spaced(x *tensor.Tensor) *tensor.Tensor {
	shape := slices.Clone(x.Shape())
	for i := range shape {
		shape[i] *= 2
	}
	u := tensor.New(x.DType(), shape...)
	for i, n := range x.Shape() {
		u = u.Narrow(i, 0, n, 2)
	}
	u.CopyFrom(x)
	return u
}

// reversedOrder lays x out with the first dimension innermost.
func reversedOrder(x *tensor.Tensor) *tensor.Tensor {
	shape := slices.Clone(x.Shape())
	slices.Reverse(shape)
	strides := tensor.ContiguousStrides(shape)
	slices.Reverse(strides)
	u := tensor.NewStrided(x.DType(), x.Shape(), strides)
	u.CopyFrom(x)
	return u
}

func TestLayoutDoesNotChangeValues(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if call.Def.ID() == "as_strided" {
			return // it reads the storage whatever the layout
		}
		want := execute(t, call)
		for i, layout := range []func(*tensor.Tensor) *tensor.Tensor{spaced, reversedOrder} {
			got, err := with(call, layout).Execute()
			if err != nil {
				if id := call.Def.ID(); id != "view" && id != "view_as_complex" && id != "kron" {
					t.Fatalf("layout %d: %v", i, err)
				}
				continue
			}
			for j := range want {
				if !close(call, got[j], want[j]) {
					t.Errorf("layout %d, result %d differs: %v", i, j, tensorsOf(call))
				}
			}
		}
	})
}

// TestFormulasComputeTheirOperators: rounding-error bounds follow from the
// formulas, so these have to compute what the kernels do.
func TestFormulasComputeTheirOperators(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if call.Def.Formula == nil || call.Args.AllValues()[0].DType() != tensor.F64 {
			return
		}
		want := execute(t, call)
		var got []op.Value
		if err := op.Catch(func() { got = call.Def.Formula(op.Builder{Applier: ops.Table().Executor()}, call.Args) }); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("the formula has %d results, the operator %d", len(got), len(want))
		}
		for i, w := range want {
			g := got[i].(*tensor.Tensor)
			if !slices.Equal(g.Shape(), w.Shape()) {
				t.Fatalf("result %d has the shape %v, by the formula %v", i, w.Shape(), g.Shape())
			}
			for j := range w.Len() {
				if a, b := g.Float(j), w.Float(j); !(math.Abs(a-b) <= 1e-9*(1+math.Abs(b))) && !(math.IsNaN(a) && math.IsNaN(b)) && a != b {
					t.Fatalf("result %d, element %d: %v, by the formula %v", i, j, b, a)
				}
			}
		}
	})
}

// close reports equal bits, or for sums a difference that another order of
// additions explains.
func close(call *op.Call, got, want *tensor.Tensor) bool {
	if call.Def.Tol.Class != op.Accumulating {
		return got.SameBits(want)
	}
	if !slices.Equal(got.Shape(), want.Shape()) || got.DType() != want.DType() {
		return false
	}
	scale, off := 1.0, 0.0
	for i := range want.Len() {
		scale = max(scale, math.Abs(want.Float(i)))
		off = max(off, math.Abs(want.Float(i)-got.Float(i)))
	}
	return off <= 64*epsilon(want.DType())*scale
}

func epsilon(d tensor.DType) float64 {
	if d == tensor.F32 {
		return 0x1p-23
	}
	return 0x1p-52
}

func TestExactAgrees(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if call.Def.Exact == nil {
			return
		}
		f := call.Def.Exact(call.Args)
		out := execute(t, call)[0]
		if f == nil || !out.DType().IsFloat() {
			return
		}
		ins := broadcast(t, tensorsOf(call), out.Shape())
		x := make([]float64, len(ins))
		for i := range out.Len() {
			for j, in := range ins {
				x[j] = in.Float(i)
			}
			want := f.Round(out.DType(), x...)
			if cancels := call.Def.Tol.Class == op.Accumulating; cancels && math.Abs(out.Float(i)-want) <= 16*epsilon(out.DType()) {
				continue
			}
			if d := ulpDistance(out.DType(), out.Float(i), want); d > max(call.Def.Tol.ULP, 1) {
				t.Fatalf("f(%v) = %v, exactly %v: %.1f ULP", x, out.Float(i), want, d)
			}
		}
	})
}

func broadcast(t *testing.T, ts []*tensor.Tensor, shape []int) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(ts))
	for i, x := range ts {
		y, err := x.Expand(shape...)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = y
	}
	return out
}

func ulpDistance(d tensor.DType, got, want float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	ulp := math.Exp2(math.Floor(math.Log2(math.Abs(want)))) * epsilon(d)
	return math.Abs(got-want) / ulp
}

func TestCommutative(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.Commutative) {
			return
		}
		swapped := op.Args{Sig: call.Args.Sig, Vals: slices.Clone(call.Args.Vals)}
		swapped.Vals[0], swapped.Vals[1] = swapped.Vals[1], swapped.Vals[0]
		if a, b := execute(t, call)[0], execute(t, &op.Call{Def: call.Def, Args: swapped})[0]; !a.SameBits(b) {
			t.Errorf("f(a, b) ≠ f(b, a) for %v", tensorsOf(call))
		}
	})
}

func TestIdempotentAndInvolution(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		idempotent := call.Def.Traits.Has(op.Idempotent)
		if !idempotent && !call.Def.Traits.Has(op.Involution) {
			return
		}
		once := execute(t, call)[0]
		again := op.Args{Sig: call.Args.Sig, Vals: slices.Clone(call.Args.Vals)}
		again.Vals[0] = once
		want := tensorsOf(call)[0]
		if idempotent {
			want = once
		}
		if twice := execute(t, &op.Call{Def: call.Def, Args: again})[0]; !twice.SameBits(want) {
			t.Errorf("applied twice to %v", tensorsOf(call))
		}
	})
}

func TestShapeOnly(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.ShapeOnly) {
			return
		}
		other := with(call, sameLayout)
		for _, x := range tensorsOf(other) {
			for i := range x.Len() {
				x.Set(i, 1-x.At(i))
			}
		}
		if a, b := execute(t, call)[0], execute(t, other)[0]; !a.SameBits(b) {
			t.Errorf("other elements change the result of %v", tensorsOf(call))
		}
	})
}

// TestUnread gives the tensors of which a call reads nothing other elements.
func TestUnread(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if call.Def.Unread == nil || call.Def.Traits.Has(op.Random) {
			return
		}
		other := with(call, sameLayout)
		for _, p := range call.Def.Unread(other.Args) {
			x := other.Args.Tensor(p)
			for i := range x.Len() {
				x.Set(i, 1-x.At(i))
			}
		}
		if a, b := execute(t, call)[0], execute(t, other)[0]; !a.SameBits(b) {
			t.Errorf("other elements change the result of %v", tensorsOf(call))
		}
	})
}

func TestItselfOrCopy(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.ItselfOrCopy) {
			return
		}
		if x, y := tensorsOf(call)[0], execute(t, call)[0]; x != y && x.SharesStorage(y) {
			t.Errorf("another view of %v", x)
		}
	})
}

// TestNeutral gives every operator that has neutral numbers some, and a tensor
// of edge values.
func TestNeutral(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Neutral == nil {
			continue
		}
		found := 0
		for _, c := range []any{int64(0), int64(1), 0.0, math.Copysign(0, -1), 1.0, -1.0, 2.5} {
			for _, dt := range []tensor.DType{tensor.F32, tensor.F64, tensor.I64} {
				x := tensor.New(dt, 6)
				for i, v := range []float64{0, math.Copysign(0, -1), 3, -7, 1e9, 1} {
					x.Set(i, complex(v, 0))
				}
				call, err := ops.Table().ResolveID(d.ID(), []any{x, c}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !d.Neutral(call.Args) {
					continue
				}
				if y := execute(t, call)[0]; y.DType() == dt && !y.SameBits(x) {
					t.Errorf("%s: %v and %v of %s give %v", d.ID(), x, c, dt, y)
				}
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: no number is neutral", d.ID())
		}
	}
}

// TestContractions: what is dearer to compute than to store sums many terms.
func TestContractions(t *testing.T) {
	seen := 0
	for _, d := range ops.Table().Defs() {
		if !d.Traits.Has(op.Contraction) {
			continue
		}
		if seen++; d.Tol.Class != op.Accumulating {
			t.Errorf("%s is a contraction and %s", d.ID(), d.Tol.Class)
		}
	}
	if seen == 0 {
		t.Error("no operator is a contraction")
	}
}

func TestMonotone(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.Monotone) {
			return
		}
		low := execute(t, call)
		raised, n := with(call, sameLayout), 0
		for _, x := range tensorsOf(raised) {
			for i := range x.Len() {
				if n++; x.DType().IsFloat() && n%3 != 0 {
					x.Set(i, x.At(i)+complex(float64(n%7)/4, 0))
				}
			}
		}
		for i, y := range execute(t, raised) {
			for j := range y.Len() {
				if y.DType().IsFloat() && y.Float(j) < low[i].Float(j) {
					t.Fatalf("result %d, element %d falls from %v to %v for %v", i, j, low[i].Float(j), y.Float(j), tensorsOf(call))
				}
			}
		}
	})
}

// TestCompares replaces the arguments of a comparison by the sign of their
// difference and 0.
func TestCompares(t *testing.T) {
	withTrait(t, op.Compares, func(t *testing.T, call *op.Call, shape []int) *op.Call {
		if call.Args.Value("input") == nil || call.Args.Value("other") == nil {
			return call
		}
		sides := broadcast(t, tensorsOf(call), shape)
		signs, zeros := tensor.New(tensor.F64, shape...), tensor.New(tensor.F64, shape...)
		for i := range signs.Len() {
			switch d := sides[0].At(i) - sides[1].At(i); {
			case imag(d) != 0 || real(d) < 0:
				signs.Set(i, -1)
			case real(d) > 0:
				signs.Set(i, 1)
			}
		}
		return &op.Call{Def: call.Def, Args: op.Args{Sig: call.Args.Sig, Vals: []any{signs, zeros}}}
	})
}

// TestFollowsOrder squares the distances between elements.
func TestFollowsOrder(t *testing.T) {
	withTrait(t, op.FollowsOrder, func(t *testing.T, call *op.Call, _ []int) *op.Call {
		return changed(call, func(v float64) float64 { return v * math.Abs(v) })
	})
}

// TestClassifies changes all finite real elements.
func TestClassifies(t *testing.T) {
	withTrait(t, op.Classifies, func(t *testing.T, call *op.Call, _ []int) *op.Call {
		return changed(call, func(v float64) float64 {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return v
			}
			return -3*v + 1
		})
	})
}

// withTrait demands of each sampled call of operators with the trait that
// another call, which the trait says to be like it, has the same results.
func withTrait(t *testing.T, trait op.Trait, like func(t *testing.T, call *op.Call, shape []int) *op.Call) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(trait) {
			return
		}
		want := execute(t, call)[0]
		if got := execute(t, like(t, call, want.Shape()))[0]; !got.SameBits(want) {
			t.Errorf("%v of %v, want %v", got, tensorsOf(call), want)
		}
	})
}

// changed returns the call with f of every real floating-point element.
func changed(call *op.Call, f func(float64) float64) *op.Call {
	c := with(call, sameLayout)
	for _, x := range tensorsOf(c) {
		for i := range x.Len() {
			if x.DType().IsFloat() {
				x.Set(i, complex(f(x.Float(i)), 0))
			}
		}
	}
	return c
}

// TestCancels subtracts finite elements from themselves.
func TestCancels(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.Cancels) || call.Args.Scalar("alpha").Float() != 1 {
			return
		}
		for _, x := range tensorsOf(call) {
			y := execute(t, &op.Call{Def: call.Def, Args: op.Args{Sig: call.Args.Sig, Vals: []any{x, x, op.ScalarOf(1.0)}}})[0]
			for i := range y.Len() {
				if y.At(i) != 0 {
					t.Fatalf("%v from equal elements %v", y.At(i), x.At(i))
				}
			}
		}
	})
}

// TestAdditive expects of 0 and an element the element or its negative.
func TestAdditive(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.Additive) || call.Args.Scalar("alpha").Float() != 1 {
			return
		}
		for _, x := range tensorsOf(call) {
			zero := tensor.New(x.DType(), x.Shape()...)
			for _, pair := range [][]any{{x, zero, op.ScalarOf(1.0)}, {zero, x, op.ScalarOf(1.0)}} {
				y := execute(t, &op.Call{Def: call.Def, Args: op.Args{Sig: call.Args.Sig, Vals: pair}})[0]
				for i := range y.Len() {
					if y.At(i) != x.At(i) && y.At(i) != -x.At(i) {
						t.Fatalf("%v from 0 and %v", y.At(i), x.At(i))
					}
				}
			}
		}
	})
}

func TestViewsShareStorage(t *testing.T) {
	everySample(t, func(t *testing.T, call *op.Call) {
		if !call.Def.Traits.Has(op.View) {
			return
		}
		out, err := call.Execute()
		if err != nil {
			t.Fatal(err)
		}
		if in := tensorsOf(call)[0]; out[0].Len() > 0 && out[0].DType() == in.DType() && !out[0].SharesStorage(in) {
			t.Errorf("the result for %s is a copy", in)
		}
	})
}

func TestNoGradHasNoGradient(t *testing.T) {
	for _, d := range ops.Table().Defs() {
		if d.Compose == nil && d.Traits.Has(op.NoGrad) != (d.Grad == nil) {
			t.Errorf("%s: NoGrad is %v but Grad is nil: %v", d.ID(), d.Traits.Has(op.NoGrad), d.Grad == nil)
		}
	}
}

func TestThreadsDoNotChangeBits(t *testing.T) {
	defer kernel.SetThreads(0)
	big := func(shape ...int) *tensor.Tensor {
		s := &op.Sampler{Source: choice.New(7), DType: tensor.F32}
		return s.Tensor(0.5, 2, shape...)
	}
	wide, tall := big(3, 70000), big(30000, 9)
	calls := map[string][]any{
		"sum": {wide}, "mean": {tall, 0}, "max": {wide}, "max.dim": {tall, 0}, "softmax": {wide, 1},
		"add": {wide, wide.Narrow(0, 0, 1, 1)}, "where": {call(t, "gt", []any{tall, 1.0}), tall, 0.0},
		"matmul": {big(150, 200), big(200, 150)}, "cat": {[]any{wide, wide}},
	}
	for _, d := range ops.Table().Defs() {
		if d.ScalarFunction() && len(d.Sigs()[0].Params) == 1 {
			calls[d.ID()] = []any{tall}
		}
	}
	for id, args := range calls {
		t.Run(id, func(t *testing.T) {
			kernel.SetThreads(1)
			want := call(t, id, args)
			for _, n := range []int{2, 3, 7} {
				kernel.SetThreads(n)
				if !call(t, id, args).SameBits(want) {
					t.Errorf("%d threads give other bits", n)
				}
			}
		})
	}
}

// TestKernelsWriteEveryElement: a kernel's results are allocated with
// unspecified contents, so that none of it may be left in them.
func TestKernelsWriteEveryElement(t *testing.T) {
	dtypes := []tensor.DType{tensor.F32, tensor.F64, tensor.F16, tensor.BF16, tensor.I64, tensor.U8, tensor.Bool, tensor.C64, tensor.C128}
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Compose != nil || d.View != nil {
			continue
		}
		t.Run(d.ID(), func(t *testing.T) {
			for key := range uint64(60) {
				c := sample(t, d, key, dtypes[key%uint64(len(dtypes))])
				for _, layout := range []func(*tensor.Tensor) *tensor.Tensor{sameLayout, reversedOrder} {
					c := with(c, layout)
					metas, err := c.Infer()
					if err != nil {
						continue
					}
					zero, garbage := runInto(t, c, metas, 0), runInto(t, c, metas, 0x3c)
					for i := range zero {
						if !zero[i].SameBits(garbage[i]) {
							t.Fatalf("sample %d: result %d keeps what its memory held", key, i)
						}
					}
				}
			}
		})
	}
}

// runInto runs the call's kernel on results whose bytes are all fill; nil where none fits.
func runInto(t *testing.T, c *op.Call, metas []op.Meta, fill byte) []*tensor.Tensor {
	t.Helper()
	c = with(c, sameLayout)
	k, err := c.Def.Kernel(c.Args)
	if err != nil {
		return nil
	}
	run := &op.Run{Args: c.Args, Key: 5}
	for _, m := range metas {
		strides := m.Strides
		if strides == nil {
			strides = tensor.ContiguousStrides(m.Shape)
		}
		u := tensor.NewStrided(m.DType, m.Shape, strides)
		for i := range u.Storage() {
			u.Storage()[i] = fill
		}
		run.Out = append(run.Out, u)
	}
	if k.Scratch != nil {
		run.Scratch = make([]byte, k.Scratch(c.Args))
		for i := range run.Scratch {
			run.Scratch[i] = fill
		}
	}
	if k.Run(run) != nil {
		return nil
	}
	return run.Out
}
