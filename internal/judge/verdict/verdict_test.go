package verdict

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func f32(shape []int, values ...float64) *tensor.Tensor {
	return tensor.Float64s(tensor.F32, shape, values...)
}

// example is a program with a module, an exact call, a tuple and numbers.
func example() *program.Program {
	x, m, h, y, v := program.Ref("x"), program.Ref("m"), program.Ref("h"), program.Ref("y"), program.Ref("v")
	return &program.Program{
		Name:   "test_example",
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{2, 3}, Fill: program.Fill{Dist: program.Uniform, Hi: 1}, RequiresGrad: true}},
		Calls: []program.Call{
			{Result: "m", Target: "torch.nn.BatchNorm1d", Args: []any{int64(3)}},
			{Result: "h", Target: "Module.__call__", Args: []any{m, x}},
			{Result: "y", Target: "torch.flatten", Args: []any{h}},
			{Result: "v", Target: "torch.max", Args: []any{h, int64(0)}},
			{Result: "s", Target: "Tensor.item", Args: []any{y}},
			{Result: "n", Target: "Tensor.dim", Args: []any{y}},
			{Result: "w", Target: "operator.getitem", Args: []any{v, int64(0)}},
			{Result: "u", Target: "torch.exp", Args: []any{y}},
		},
		Backward: []program.Backward{{Value: "u"}},
	}
}

// outcome is a complete outcome of example; every call of it is fresh.
func outcome() *backend.Outcome {
	six := func() *tensor.Tensor { return f32([]int{2, 3}, 1, 2, 3, 4, 5, 6) }
	state := func(v float64) backend.State {
		return backend.State{{Name: "weight", Tensor: f32([]int{3}, 1, 1, 1)}, {Name: "running_mean", Tensor: f32([]int{3}, v, v, v)}}
	}
	t := func(x *tensor.Tensor) backend.Value { return backend.Value{Tensor: x, RequiresGrad: true} }
	return &backend.Outcome{
		Status: backend.OK,
		Values: []backend.Value{
			{Module: true},
			t(six()),
			t(six().Reshape(6)),
			{IsTuple: true, Tuple: []backend.Value{t(f32([]int{3}, 4, 5, 6)), {Tensor: tensor.Of(tensor.I64, []int{3}, []int64{1, 1, 1})}}},
			{Plain: 1.5},
			{Plain: int64(1)},
			t(f32([]int{3}, 4, 5, 6)),
			t(f32([]int{6}, 1, 2, 3, 4, 5, 6)),
		},
		Initial: map[string]backend.State{"m": state(0)},
		Slots: append(slotsOf("m", state(0.5)),
			backend.Slot{Place: grad, Tensor: f32([]int{2, 3}, 1, 1, 1, 1, 1, 1)},
			backend.Slot{Place: weightGrad, Tensor: f32([]int{3}, 1, 2, 3)}),
	}
}

// The places of what outcome has beside values.
var (
	grad       = backend.Place{Part: backend.PartGrad, Owner: "x"}
	weightGrad = backend.Place{Part: backend.PartParamGrad, Owner: "m", Name: "weight"}
	weight     = backend.Place{Part: backend.PartState, Owner: "m", Name: "weight"}
	mean       = backend.Place{Part: backend.PartState, Owner: "m", Name: "running_mean"}
)

func slotsOf(module string, state backend.State) []backend.Slot {
	var slots []backend.Slot
	for _, n := range state {
		slots = append(slots, backend.Slot{Place: backend.Place{Part: backend.PartState, Owner: module, Name: n.Name}, Tensor: n.Tensor})
	}
	return slots
}

// without takes the slots of a part from an outcome.
func without(o *backend.Outcome, part backend.Part) {
	*o = *o.Without(func(p backend.Part) bool { return p == part })
}

func tols(target string) []op.Tol {
	switch target {
	case "torch.flatten":
		return []op.Tol{{Class: op.Exact, Reason: "keeps every element"}}
	case "torch.exp":
		return []op.Tol{{Class: op.Pointwise, ULP: 3, Reason: "exp"}}
	}
	return nil
}

func raise(o *backend.Outcome, call int, class, message string) {
	o.Status, o.Call, o.Class, o.Message = backend.Raised, call, class, message
	o.Values = o.Values[:min(call, len(o.Values))]
}

// cases state, for one change of the candidate (and the reference), the
// judgement. Each has its report in testdata/NAME.txt.
var cases = []struct {
	name   string
	change func(ref, cand *backend.Outcome)
	policy Policy
	word   Word
	kind   Kind
	where  string
}{
	{name: "aligned", change: func(_, c *backend.Outcome) { c.Values[7].Tensor.Set(5, 6.000001) }, word: Aligned},
	{name: "value", change: func(_, c *backend.Outcome) { c.Values[1].Tensor.Set(4, 5.01) }, word: Misaligned, kind: "value", where: "call 1, value h"},
	{name: "nan", change: func(_, c *backend.Outcome) { c.Values[7].Tensor.Set(2, complex(math.NaN(), 0)) }, word: Misaligned, kind: "value", where: "call 7, value u"},
	{name: "first_of_several", change: func(_, c *backend.Outcome) {
		for _, i := range []int{7, 6, 2} {
			c.Values[i].Tensor.Set(1, -1)
		}
		c.At(grad).Set(0, 9)
		c.At(weightGrad).Set(0, 9)
		c.At(mean).Set(0, 9)
		c.At(weight).Set(0, 9)
	}, word: Misaligned, kind: "value", where: "call 2, value y"},
	{name: "exact", change: func(_, c *backend.Outcome) { c.Values[2].Tensor.Set(1, 2.0000002) }, word: Misaligned, kind: "value", where: "call 2, value y"},
	{name: "exact_inherits", change: func(_, c *backend.Outcome) {
		c.Values[1].Tensor.Set(1, 2.0000002)
		c.Values[2].Tensor.Set(1, 2.0000002)
	}, word: Aligned},
	{name: "shape", change: func(_, c *backend.Outcome) { c.Values[2].Tensor = c.Values[2].Tensor.Reshape(1, 6) }, word: Misaligned, kind: "shape", where: "call 2, value y"},
	{name: "dtype", change: func(_, c *backend.Outcome) { c.Values[7].Tensor = c.Values[7].Tensor.Convert(tensor.F64) }, word: Misaligned, kind: "dtype", where: "call 7, value u"},
	{name: "layout", change: func(_, c *backend.Outcome) {
		c.Values[1].Tensor = c.Values[1].Tensor.Transpose(0, 1).Clone().Transpose(0, 1)
	}, policy: Policy{Compare: compare.Options{Layout: true}}, word: Misaligned, kind: "layout", where: "call 1, value h"},
	{name: "indices", change: func(_, c *backend.Outcome) { c.Values[3].Tuple[1].Tensor.SetInt(2, 0) }, word: Misaligned, kind: "value", where: "call 3, value v[1]"},
	{name: "tuple_length", change: func(_, c *backend.Outcome) { c.Values[3].Tuple = c.Values[3].Tuple[:1] }, word: Misaligned, kind: "structure", where: "call 3, value v"},
	{name: "no_tuple", change: func(_, c *backend.Outcome) { c.Values[3] = c.Values[3].Tuple[0] }, word: Misaligned, kind: "structure", where: "call 3, value v"},
	{name: "none", change: func(_, c *backend.Outcome) { c.Values[4] = backend.Value{} }, word: Misaligned, kind: "structure", where: "call 4, value s"},
	{name: "foreign", change: func(_, c *backend.Outcome) { c.Values[1] = backend.Value{Plain: "unsupported mine.Tensor(uint64)"} }, word: Misaligned, kind: "structure", where: "call 1, value h"},
	{name: "float_close", change: func(_, c *backend.Outcome) { c.Values[4].Plain = 1.500001 }, word: Aligned},
	{name: "float", change: func(_, c *backend.Outcome) { c.Values[4].Plain = 1.6 }, word: Misaligned, kind: "value", where: "call 4, value s"},
	{name: "int", change: func(_, c *backend.Outcome) { c.Values[5].Plain = int64(2) }, word: Misaligned, kind: "value", where: "call 5, value n"},
	{name: "int_for_bool", change: func(_, c *backend.Outcome) { c.Values[5].Plain = true }, word: Misaligned, kind: "structure", where: "call 5, value n"},
	{name: "requires_grad", change: func(_, c *backend.Outcome) { c.Values[6].RequiresGrad = false }, word: Misaligned, kind: "requires_grad", where: "call 6, value w"},
	{name: "requires_grad_ignored", change: func(_, c *backend.Outcome) { c.Values[6].RequiresGrad = false }, policy: Policy{IgnoreRequiresGrad: true}, word: Aligned},
	{name: "grad", change: func(_, c *backend.Outcome) { c.At(grad).Set(4, 1.001) }, word: Misaligned, kind: "grad", where: "gradient of x"},
	{name: "grad_missing", change: func(_, c *backend.Outcome) { without(c, backend.PartGrad) }, word: Misaligned, kind: "structure", where: "gradient of x"},
	{name: "grad_extra", change: func(r, _ *backend.Outcome) { *r = *r.With(grad, nil) }, word: Misaligned, kind: "structure", where: "gradient of x"},
	{name: "param_grad", change: func(_, c *backend.Outcome) { c.At(weightGrad).Set(2, -3) }, word: Misaligned, kind: "param_grad", where: "gradient of m.weight"},
	{name: "param_grad_missing", change: func(_, c *backend.Outcome) { without(c, backend.PartParamGrad) }, word: Misaligned, kind: "structure", where: "gradient of m.weight"},
	{name: "param", change: func(_, c *backend.Outcome) { c.At(weight).Set(0, 2) }, word: Misaligned, kind: "param", where: "parameter m.weight after the last call"},
	{name: "state", change: func(_, c *backend.Outcome) { c.At(mean).Set(2, 0) }, word: Misaligned, kind: "state", where: "buffer m.running_mean after the last call"},
	{name: "state_extra", change: func(_, c *backend.Outcome) {
		c.Add(backend.Place{Part: backend.PartState, Owner: "m", Name: "extra"}, f32(nil, 1))
	}, word: Misaligned, kind: "structure", where: "buffer m.extra after the last call"},
	{name: "rejected", change: func(r, c *backend.Outcome) {
		raise(r, 2, "RuntimeError", "shape is invalid\nfor input of size 6")
		raise(c, 2, "ValueError", "flatten: bad shape")
	}, word: Rejected},
	{name: "rejected_elsewhere", change: func(r, c *backend.Outcome) { raise(r, 8, "RuntimeError", "no grad"); raise(c, 3, "TypeError", "max") }, word: Rejected},
	{name: "rejected_after_difference", change: func(r, c *backend.Outcome) {
		raise(r, 4, "RuntimeError", "no")
		raise(c, 4, "RuntimeError", "no")
		c.Values[1].Tensor.Set(0, 7)
	}, word: Misaligned, kind: "value", where: "call 1, value h"},
	{name: "exception_candidate", change: func(_, c *backend.Outcome) { raise(c, 2, "RuntimeError", "flatten: not contiguous") }, word: Misaligned, kind: "exception", where: "call 2, value y"},
	{name: "exception_reference", change: func(r, _ *backend.Outcome) { raise(r, 2, "RuntimeError", "too large") }, word: Misaligned, kind: "exception", where: "call 2, value y"},
	{name: "exception_backward", change: func(_, c *backend.Outcome) { raise(c, 8, "RuntimeError", "no gradient for exp") }, word: Misaligned, kind: "exception", where: "backward pass"},
	{name: "crash", change: func(_, c *backend.Outcome) {
		c.Status, c.Message, c.Call, c.Values = backend.Crashed, "signal: segmentation fault", 7, c.Values[:7]
	}, word: Crash},
	{name: "crash_reference", change: func(r, c *backend.Outcome) {
		r.Status, r.Message, r.Values = backend.Crashed, "signal: aborted", nil
		c.Status = backend.TimedOut
	}, word: Crash},
	{name: "timeout", change: func(_, c *backend.Outcome) { c.Status, c.Values = backend.TimedOut, nil }, word: Timeout},
	{name: "oom", change: func(_, c *backend.Outcome) { c.Status, c.Values = backend.OutOfMemory, nil }, word: OOM},
	{name: "unsupported", change: func(_, c *backend.Outcome) {
		c.Status, c.Values, c.Message = backend.Unsupported, nil, "unknown operator torch.max"
	}, word: Unsupported},
	{name: "unsupported_refused", change: func(_, c *backend.Outcome) {
		raise(c, 2, "ValueError", "no such shape")
		c.Status, c.Refused = backend.Unsupported, true
	}, word: Unsupported},
	{name: "refused_by_both", change: func(r, c *backend.Outcome) {
		raise(r, 2, "RuntimeError", "shape is invalid")
		raise(c, 2, "Fail", "no such shape")
		c.Status, c.Refused = backend.Unsupported, true
	}, policy: Policy{SameException: true}, word: Rejected},
	{name: "refused_elsewhere", change: func(r, c *backend.Outcome) {
		raise(r, 4, "RuntimeError", "shape is invalid")
		raise(c, 2, "Fail", "no such shape")
		c.Status, c.Refused = backend.Unsupported, true
	}, word: Unsupported},
	{name: "lacked_where_refused", change: func(r, c *backend.Outcome) {
		raise(r, 2, "RuntimeError", "shape is invalid")
		raise(c, 2, "Unsupported", "no flatten")
		c.Status = backend.Unsupported
	}, word: Unsupported},
	{name: "fault", change: func(_, c *backend.Outcome) { c.Values = c.Values[:3] }, word: Fault},
	{name: "fault_status", change: func(_, c *backend.Outcome) { c.Status = "odd" }, word: Fault},
	{name: "explicit", change: func(_, c *backend.Outcome) { c.Values[1].Tensor.Set(4, 5.5) }, policy: Policy{RTol: ptr(0.01), ATol: ptr(0.25)}, word: Misaligned, kind: "value", where: "call 1, value h"},
	{name: "explicit_wide", change: func(_, c *backend.Outcome) {
		c.Values[1].Tensor.Set(4, 5.5)
		c.At(grad).Set(0, 1.5)
	}, policy: Policy{RTol: ptr(0.5)}, word: Aligned},
}

func ptr(v float64) *float64 { return &v }

func TestJudge(t *testing.T) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			ref, cand := outcome(), outcome()
			tt.change(ref, cand)
			tt.policy.Tols = tols
			v := Judge(example(), ref, cand, tt.policy)
			if v.Word != tt.word || v.Kind != tt.kind {
				t.Errorf("%s %s, want %s %s: %s", v.Word, v.Kind, tt.word, tt.kind, v.Reason)
			}
			where := ""
			if v.Where != nil {
				where = v.Where.String()
			}
			if where != tt.where {
				t.Errorf("found in %q, want %q", where, tt.where)
			}
			golden(t, tt.name+".txt", v.Text())
			roundTrip(t, v)
		})
	}
}

// roundTrip checks that the JSON form loses nothing.
func roundTrip(t *testing.T, v *Verdict) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again Verdict
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, &again, cmpopts.IgnoreUnexported(Difference{})); diff != "" {
		t.Errorf("JSON changes the verdict: -before +after\n%s", diff)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./verdict -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", path, diff)
	}
}

func TestJSONNames(t *testing.T) {
	ref, cand := outcome(), outcome()
	cand.Values[2].Tensor.Set(1, 3)
	v := Judge(example(), ref, cand, Policy{Tols: tols})
	v.Margins = v.Margins[:1]
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "verdict.json", string(text)+"\n")
}

// TestEveryTensorIsCompared breaks one tensor of the outcome at a time.
func TestEveryTensorIsCompared(t *testing.T) {
	count := len(tensors(outcome()))
	v := Judge(example(), outcome(), outcome(), Policy{})
	if numbers := 2; v.Compared != count+numbers || len(v.Margins) != v.Compared {
		t.Errorf("%d comparisons with %d margins, want %d", v.Compared, len(v.Margins), count+numbers)
	}
	for i := range count {
		cand := outcome()
		x := tensors(cand)[i]
		x.Set(0, x.At(0)+1)
		if v := Judge(example(), outcome(), cand, Policy{}); v.Word != Misaligned || len(v.Differences) != 1 {
			t.Errorf("tensor %d: %s with %d differences", i, v.Word, len(v.Differences))
		}
	}
}

// tensors lists the tensors of an outcome but those of Initial.
func tensors(o *backend.Outcome) []*tensor.Tensor {
	var list []*tensor.Tensor
	var walk func(vs []backend.Value)
	walk = func(vs []backend.Value) {
		for _, v := range vs {
			if v.Tensor != nil {
				list = append(list, v.Tensor)
			}
			walk(v.Tuple)
		}
	}
	walk(o.Values)
	for _, s := range o.Slots {
		list = append(list, s.Tensor)
	}
	return list
}

// TestInPlaceCallsSpreadDifferences: after an in-place call has differed, an
// exact call on the changed name must not be held to equality.
func TestInPlaceCallsSpreadDifferences(t *testing.T) {
	x := program.Ref("x")
	for _, mutate := range []program.Call{
		{Result: "a", Target: "Tensor.exp_", Args: []any{x}},
		{Result: "a", Target: "torch.nn.functional.relu", Args: []any{x}, Kwargs: []program.Kwarg{{Name: "inplace", Value: true}}},
	} {
		p := &program.Program{
			Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{1}}},
			Calls:  []program.Call{mutate, {Result: "b", Target: "torch.flatten", Args: []any{x}}},
		}
		run := func(v float64) *backend.Outcome {
			return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: f32([]int{1}, v)}, {Tensor: f32([]int{1}, v)}}}
		}
		if v := Judge(p, run(1), run(1.0000001), Policy{Tols: tols}); v.Word != Aligned {
			t.Errorf("%s: %s", mutate.Target, v.Text())
		}
		mutate.Target, mutate.Kwargs = "torch.exp", nil
		p.Calls[0] = mutate
		if v := Judge(p, run(1), run(1.0000001), Policy{Tols: tols}); v.Word != Misaligned {
			t.Errorf("a copy of an unchanged input may differ: %s", v.Text())
		}
	}
}

// TestModulesByTheirConstructor: a module's call has the numerics of its
// constructor, and exactly so only with the same state.
func TestModulesByTheirConstructor(t *testing.T) {
	p := &program.Program{
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{1}}},
		Calls: []program.Call{
			{Result: "m", Target: "torch.nn.Flatten"},
			{Result: "e", Target: "Module.eval", Args: []any{program.Ref("m")}},
			{Result: "y", Target: "Module.__call__", Args: []any{program.Ref("e"), program.Ref("x")}},
		},
	}
	run := func(v, state float64) *backend.Outcome {
		s := backend.State{{Name: "p", Tensor: f32(nil, state)}}
		return &backend.Outcome{Status: backend.OK, Initial: map[string]backend.State{"m": s}, Slots: slotsOf("m", s), Values: []backend.Value{{Module: true}, {Module: true}, {Tensor: f32([]int{1}, v)}}}
	}
	exact := func(target string) []op.Tol {
		if target == "torch.nn.Flatten" {
			return []op.Tol{{Class: op.Exact, Reason: "keeps every element"}}
		}
		return nil
	}
	if v := Judge(p, run(1, 1), run(1.0000001, 1), Policy{Tols: exact}); v.Word != Misaligned || v.Where.Target != "torch.nn.Flatten" {
		t.Errorf("an exact module on the same input: %s", v.Text())
	}
	if v := Judge(p, run(1, 1), run(1.0000001, 1.0000001), Policy{Tols: exact}); v.Word != Aligned {
		t.Errorf("an exact module with another state: %s", v.Text())
	}
}

func TestMissingOutcome(t *testing.T) {
	v := Judge(example(), outcome(), nil, Policy{})
	if v.Word != Fault || !strings.Contains(v.Reason, "candidate's outcome is missing") {
		t.Errorf("%s: %s", v.Word, v.Reason)
	}
}

// TestGradientsOfViewsWithoutGrad: of a view within no_grad PyTorch says that it
// requires a gradient, against its documentation; a candidate need not.
func TestGradientsOfViewsWithoutGrad(t *testing.T) {
	off := []*program.Scope{{Target: "torch.no_grad"}}
	for _, test := range []struct {
		what      string
		call      program.Call
		reference bool
		word      Word
	}{
		{"a view", program.Call{Target: "Tensor.view_as", Scopes: off}, true, Aligned},
		{"a view that records", program.Call{Target: "Tensor.view_as"}, true, Misaligned},
		{"the reference as documented", program.Call{Target: "Tensor.view_as", Scopes: off}, false, Misaligned},
		{"a leaf", program.Call{Target: "Tensor.requires_grad_", Scopes: off}, true, Misaligned},
	} {
		x := program.Ref("x")
		test.call.Result, test.call.Args = "v", []any{x}
		p := &program.Program{Name: "test_views", Calls: []program.Call{test.call}, Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{2}, RequiresGrad: true}}}
		of := func(requires bool) *backend.Outcome {
			return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: f32([]int{2}, 1, 2), RequiresGrad: requires}}}
		}
		if v := Judge(p, of(test.reference), of(!test.reference), Policy{}); v.Word != test.word {
			t.Errorf("%s: %s, want %s", test.what, v.Word, test.word)
		}
	}
}
