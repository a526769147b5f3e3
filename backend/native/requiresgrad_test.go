package native_test

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/worker"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestResultsRequireGradients: where all the arguments of a call require a
// gradient, those of its results do that do in PyTorch, whether or not the
// operator has a gradient.
func TestResultsRequireGradients(t *testing.T) {
	table := ops.Table()
	both := live(t, table)
	compared := 0
	for _, d := range table.Defs() {
		if len(d.Names) == 0 || d.Sample == nil {
			continue
		}
		job := demanding(t, table, d)
		want, got := both(job)
		if want.Status != backend.OK || got.Status != backend.OK {
			continue
		}
		for i, v := range want.Values {
			compared++
			if g, w := required(got.Values[i]), required(v); g != w {
				t.Errorf("%s: results that require a gradient are %q, in PyTorch %q\n%s", d.ID(), g, w, job.Program)
			}
		}
	}
	if compared < 300 {
		t.Errorf("%d calls were compared, want at least 300", compared)
	}
}

// live returns what runs a job on PyTorch and on native.
func live(t *testing.T, table *op.Table) func(*backend.Job) (want, got *backend.Outcome) {
	t.Helper()
	path, _, err := worker.FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	torch, err := worker.Open(t.Context(), worker.Config{Python: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { torch.Close() })
	own := native.New(table, nn.Modules())
	return func(job *backend.Job) (want, got *backend.Outcome) {
		want, err := torch.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		got, err = own.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		return want, got
	}
}

// TestSecondBackward: a second backward pass without retain_graph is refused
// where PyTorch refuses it: where the first one read what the call saved.
func TestSecondBackward(t *testing.T) {
	table := ops.Table()
	both := live(t, table)
	compared := 0
	for _, d := range table.Defs() {
		if len(d.Names) == 0 || d.Sample == nil || d.Traits.Has(op.NoGrad) || d.ID() == "repeat_interleave" { // PyTorch's selects by indices, ours expands
			continue
		}
		job := demanding(t, table, d)
		want, got := both(job)
		if want.Status != backend.OK || got.Status != backend.OK {
			continue
		}
		if !twice(job.Program, want.Values[len(want.Values)-1]) {
			continue
		}
		want, got = both(job)
		first := len(job.Program.Calls) - 2
		if want.Status != backend.OK && want.Call <= first || got.Status != backend.OK && got.Call <= first {
			continue
		}
		compared++
		if want.Status != got.Status || want.Status != backend.OK && !strings.Contains(got.Message, want.Message) {
			t.Errorf("%s: native %s %s, PyTorch %s %s\n%s", d.ID(), got.Status, got.Message, want.Status, want.Message, job.Program)
		}
	}
	if compared < 200 {
		t.Errorf("%d calls were compared, want at least 200", compared)
	}
}

// twice adds two backward passes from the last call's first result that
// requires a gradient; false where none does.
func twice(p *program.Program, v backend.Value) bool {
	from := program.Ref(p.Calls[len(p.Calls)-1].Result)
	call := func(result, target string, args ...any) program.Ref {
		p.Calls = append(p.Calls, program.Call{Result: result, Target: target, Args: args})
		return program.Ref(result)
	}
	if v.Tensor == nil {
		i := slices.IndexFunc(v.Tuple, func(e backend.Value) bool { return e.RequiresGrad })
		if i < 0 {
			return false
		}
		v, from = v.Tuple[i], call("part", "operator.getitem", from, int64(i))
	}
	seed := call("seed", "torch.ones_like", from)
	call("first", "Tensor.backward", from, seed)
	call("second", "Tensor.backward", from, seed)
	return v.RequiresGrad
}

// demanding draws a call of an operator whose inputs require gradients.
func demanding(t *testing.T, table *op.Table, d *op.Def) *backend.Job {
	t.Helper()
	p, err := opcase.Drawer{Table: table, Def: d}.Legal(choice.New(choice.DeriveName(1, d.ID())), tensor.F64)
	if err != nil {
		t.Fatalf("%s: %v", d.ID(), err)
	}
	p.Backward = nil
	job := &backend.Job{Program: p}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		in.RequiresGrad = in.DType.IsDifferentiable()
		job.Inputs = append(job.Inputs, in.Materialize())
	}
	return job
}

// required writes a mark for each tensor of a value: + where it requires a gradient.
func required(v backend.Value) string {
	if v.Tensor != nil {
		return map[bool]string{true: "+", false: "-"}[v.RequiresGrad]
	}
	var b strings.Builder
	for _, e := range v.Tuple {
		b.WriteString(required(e))
	}
	return b.String()
}
