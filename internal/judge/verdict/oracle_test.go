package verdict_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/internal/refusal"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// cancelling computes tanh((x + 1000) - 1000): the rounding of the sum, small
// as it is there, is large in the result.
func cancelling() *program.Program {
	p := callOf("torch.add", literal(0.1234, 0.3456, -0.5678))
	p.Calls = []program.Call{
		{Result: "a", Target: "torch.add", Args: []any{program.Ref("x0"), 1000.0}},
		{Result: "b", Target: "torch.sub", Args: []any{program.Ref("a"), 1000.0}},
		{Result: "c", Target: "torch.tanh", Args: []any{program.Ref("b")}},
	}
	return p
}

// TestOracleKnowsIllConditioning: a value may be as far from the truth as the
// reference's own rounding carries it, and no farther.
func TestOracleKnowsIllConditioning(t *testing.T) {
	p := cancelling()
	v := judgeBounded(t, p, planted(t, "add", after(each(ulps(1)))), false)
	if v.Word != verdict.Aligned || len(v.Settled) == 0 {
		t.Errorf("a sum that rounds the other way, %d comparisons settled: %s", len(v.Settled), v.Text())
	}
	v = judgeBounded(t, p, planted(t, "tanh", after(each(func(v float64) float64 { return v * 1.01 }))), false)
	if v.Word != verdict.Misaligned || !strings.Contains(v.Text(), "truth       the candidate is off by up to") {
		t.Errorf("tanh off by a hundredth: %s", v.Text())
	}
}

// TestReferencesErrorIsNotTheCandidates: where the reference itself is off,
// the candidate that is right is aligned.
func TestReferencesErrorIsNotTheCandidates(t *testing.T) {
	p := callOf("torch.exp", literal(0.3, 0.7))
	want := tensor.Float64s(tensor.F32, []int{2}, math.Exp(float64(float32(0.3))), math.Exp(float64(float32(0.7))))
	off := want.Clone()
	off.Set(1, complex(ulps(9)(off.Float(1)), 0))
	truth := tensor.Float64s(tensor.F64, []int{2}, math.Exp(float64(float32(0.3))), math.Exp(float64(float32(0.7))))
	outcome := func(y *tensor.Tensor) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: y}}}
	}
	policy := verdict.Policy{Tols: func(string) []op.Tol { return []op.Tol{{Class: op.Pointwise, ULP: 3, Reason: "test"}} }}
	judge := func(ref, cand *tensor.Tensor, o *verdict.Oracle) verdict.Word {
		policy.Oracle = o
		return verdict.Judge(p, outcome(ref), outcome(cand), policy).Word
	}
	o := &verdict.Oracle{Truth: outcome(truth)}
	if w := judge(off, want, nil); w != verdict.Misaligned {
		t.Errorf("without an oracle: %s", w)
	}
	if w := judge(off, want, o); w != verdict.Aligned {
		t.Errorf("the reference is off, the candidate right: %s", w)
	}
	if w := judge(want, off, o); w != verdict.Misaligned {
		t.Errorf("the candidate is off: %s", w)
	}
	told := verdict.Judge(p, outcome(want), outcome(off), policy).Differences[0].Truth
	for i := range 2 {
		if got := told.Of([]int{i}); got != compare.Element(truth, i) {
			t.Errorf("the truth at %d: %s", i, got)
		}
	}
}

// TestMissingKernelIsUnsupported: on either side, by PyTorch's words.
func TestMissingKernelIsUnsupported(t *testing.T) {
	p := callOf("torch.exp", literal(1))
	ok := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.F32, 1)}}}
	raised := func(class, msg string) *backend.Outcome {
		o := &backend.Outcome{Status: backend.Raised, Class: class, Message: msg}
		refusal.Classify(o)
		return o
	}
	for _, c := range []struct {
		ref, cand *backend.Outcome
		want      verdict.Word
	}{
		{raised("RuntimeError", `"exp_vml_cpu" not implemented for 'Half'`), ok, verdict.Unsupported},
		{raised("NotImplementedError", `"exp_vml_cpu" not implemented for 'Half'`), ok, verdict.Unsupported},
		{raised("RuntimeError", "shapes do not match"), ok, verdict.Misaligned},
		{ok, raised("RuntimeError", `"exp_vml_cpu" not implemented for 'Half'`), verdict.Unsupported},
		{ok, raised("RuntimeError", "exp is not for you"), verdict.Misaligned},
	} {
		if v := verdict.Judge(p, c.ref, c.cand, verdict.Policy{}); v.Word != c.want {
			t.Errorf("reference %s %q, candidate %s %q: %s, want %s", c.ref.Status, c.ref.Message, c.cand.Status, c.cand.Message, v.Word, c.want)
		}
	}
}

func TestKnownFaults(t *testing.T) {
	p := callOf("torch.nn.functional.conv_transpose2d", literal(1))
	p.Inputs[0].DType = tensor.BF16
	p.Inputs[0].Fill.Data = p.Inputs[0].Fill.Data.Convert(tensor.BF16)
	outcome := func(shape ...int) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.BF16, shape...)}}}
	}
	fault := verdict.KnownFault{Reference: "torch <2", Target: "conv_transpose2d", DType: tensor.BF16, Kinds: []verdict.Kind{"shape"}, Reason: "wrong path"}
	judge := func(reference string, f verdict.KnownFault, cand *backend.Outcome) verdict.Word {
		return verdict.Judge(p, outcome(2), cand, verdict.Policy{Reference: reference, Faults: []verdict.KnownFault{f}}).Word
	}
	other := fault
	other.DType = tensor.F16
	elsewhere := fault
	elsewhere.Target = "conv2d"
	one := outcome(2)
	one.Values[0].Tensor.Set(0, 1)
	gives := func(v complex128) verdict.KnownFault {
		f := fault
		f.Kinds, f.Shows = []verdict.Kind{verdict.Kind(backend.PartValue)}, func(reference complex128) bool { return reference == v }
		return f
	}
	for _, c := range []struct {
		name string
		got  verdict.Word
		want verdict.Word
	}{
		{"the fault", judge("torch 1.13.1", fault, outcome(3)), verdict.Known},
		{"another version", judge("torch 2.4.0", fault, outcome(3)), verdict.Misaligned},
		{"another dtype", judge("torch 1.13.1", other, outcome(3)), verdict.Misaligned},
		{"another operator", judge("torch 1.13.1", elsewhere, outcome(3)), verdict.Misaligned},
		{"another kind", judge("torch 1.13.1", fault, one), verdict.Misaligned},
		{"an element that the fault gives", judge("torch 1.13.1", gives(0), one), verdict.Known},
		{"an element that it does not", judge("torch 1.13.1", gives(1), one), verdict.Misaligned},
		{"no difference", judge("torch 1.13.1", fault, outcome(2)), verdict.Aligned},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// TestScalarTruthInFloat64: where there is no wider reference, a scalar
// function is computed exactly.
func TestScalarTruthInFloat64(t *testing.T) {
	data := tensor.Float64s(tensor.F64, []int{2}, 0.3, -0.7)
	p := &program.Program{
		Inputs: []program.Input{{Name: "x0", DType: tensor.F64, Shape: []int{2}, Fill: program.Fill{Dist: program.Literal, Data: data}}},
		Calls:  []program.Call{{Result: "y", Target: "torch.tanh", Args: []any{program.Ref("x0")}}},
	}
	right := tensor.Float64s(tensor.F64, []int{2}, 0.2913126124515909, -0.6043677771171636)
	wrong := right.Clone()
	wrong.Set(1, complex(right.Float(1)*(1+40*0x1p-52), 0))
	outcome := func(y *tensor.Tensor) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: y}}}
	}
	policy := verdict.Policy{Table: ops.Table(), Tols: func(string) []op.Tol { return []op.Tol{ops.Table().Def("tanh").Tol} }}
	if v := verdict.Judge(p, outcome(wrong), outcome(right), policy); v.Word != verdict.Aligned || len(v.Settled) != 1 {
		t.Errorf("the reference is 40 ULP off, the candidate right: %s", v.Text())
	}
	v := verdict.Judge(p, outcome(right), outcome(wrong), policy)
	if v.Word != verdict.Misaligned || !strings.Contains(v.Text(), "(correctly rounded)") {
		t.Errorf("the candidate is 40 ULP off: %s", v.Text())
	}
}

// TestRightZeroBesideOthers: where the candidate has the right zero and the reference has
// not, what else differs is told by its own place, and known by its own fault.
func TestRightZeroBesideOthers(t *testing.T) {
	data := tensor.Float64s(tensor.F64, []int{2}, math.Copysign(0, -1), -0.7)
	p := &program.Program{
		Inputs: []program.Input{{Name: "x0", DType: tensor.F64, Shape: []int{2}, Fill: program.Fill{Dist: program.Literal, Data: data}}},
		Calls:  []program.Call{{Result: "y", Target: "torch.nn.functional.elu", Args: []any{program.Ref("x0")}}},
	}
	elu := math.Expm1(-0.7)
	outcome := func(zero, y float64) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Float64s(tensor.F64, []int{2}, zero, y)}}}
	}
	policy := verdict.Policy{Table: ops.Table(), Tols: func(string) []op.Tol { return []op.Tol{ops.Table().Def("elu").Tol} }}
	right := math.Copysign(0, -1)
	if v := verdict.Judge(p, outcome(0, elu), outcome(right, elu), policy); v.Word != verdict.Aligned {
		t.Errorf("the reference's zero has the wrong sign: %s", v.Text())
	}
	ref, cand := outcome(0, elu), outcome(right, elu*(1+1e-8))
	v := verdict.Judge(p, ref, cand, policy)
	if v.Word != verdict.Misaligned || v.Differences[0].Diff.Rule != compare.Distance || !slices.Equal(v.Differences[0].Diff.First, []int{1}) {
		t.Errorf("another element is off: %s", v.Text())
	}
	fault := verdict.CandidateFault{KnownFault: verdict.KnownFault{Reference: "x", Target: "elu", Kinds: []verdict.Kind{"value"}, Within: 1e-6}}
	if known := verdict.Excused(v, p, ref, cand, backend.Info{Name: "x"}, []verdict.CandidateFault{fault}); known.Word != verdict.Known {
		t.Errorf("another element is off by a known fault: %s", known.Text())
	}
	if v := verdict.Judge(p, outcome(right, elu), outcome(0, elu*(1+1e-8)), policy); v.Differences[0].Diff.Rule != compare.NonFinite {
		t.Errorf("the candidate's zero has the wrong sign: %s", v.Text())
	}
}

// TestInheritedErrorHasATruth: an exact operator whose inputs differ already may
// pass on what is nearer to the truth than the reference.
func TestInheritedErrorHasATruth(t *testing.T) {
	p := callOf("torch.exp", literal(0.3))
	p.Calls = append(p.Calls, program.Call{Result: "z", Target: "torch.neg", Args: []any{program.Ref(p.Calls[0].Result)}})
	exact := math.Exp(float64(float32(0.3)))
	outcome := func(d tensor.DType, y, z float64) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Float64s(d, []int{1}, y)}, {Tensor: tensor.Float64s(d, []int{1}, z)}}}
	}
	policy := verdict.Policy{
		Oracle: &verdict.Oracle{Truth: outcome(tensor.F64, exact, -exact)},
		Tols: func(target string) []op.Tol {
			if target == "torch.neg" {
				return []op.Tol{{Class: op.Exact, Reason: "test"}}
			}
			return []op.Tol{{Class: op.Pointwise, ULP: 3, Reason: "test"}}
		},
	}
	off := exact * (1 + 1e-4)
	ref := outcome(tensor.F32, off, -off)
	if v := verdict.Judge(p, ref, outcome(tensor.F32, exact, -exact), policy); v.Word != verdict.Aligned {
		t.Errorf("the reference is off, the candidate right: %s", v.Text())
	}
	if v := verdict.Judge(p, ref, outcome(tensor.F32, exact, -exact*(1-1e-3)), policy); v.Word != verdict.Misaligned {
		t.Errorf("what an exact operator adds to an error: %s", v.Text())
	}
}
