package native_test

import (
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
	"plumb/tensor"
)

// TestResultsRequireGradients: where all the arguments of a call require a
// gradient, those of its results do that do in PyTorch, whether or not the
// operator has a gradient.
func TestResultsRequireGradients(t *testing.T) {
	path, _, err := worker.FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	torch, err := worker.Open(t.Context(), worker.Config{Python: path})
	if err != nil {
		t.Fatal(err)
	}
	defer torch.Close()
	table := ops.Table()
	own := native.New(table, nn.Modules())
	compared := 0
	for _, d := range table.Defs() {
		if len(d.Names) == 0 || d.Sample == nil {
			continue
		}
		job := demanding(t, table, d)
		want, err := torch.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		got, err := own.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
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
