package native

import (
	"slices"
	"testing"

	"plumb/backend"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
)

// counting is a table whose operator of an id counts its runs.
func counting(t *testing.T, id string, runs *int) *op.Table {
	t.Helper()
	own := *ops.Table().Def(id)
	all := slices.Clone(ops.All())
	own.Kernels = slices.Clone(own.Kernels)
	for i, k := range own.Kernels {
		own.Kernels[i].Run = func(r *op.Run) error { *runs++; return k.Run(r) }
	}
	all[slices.IndexFunc(all, func(d *op.Def) bool { return d.ID() == id })] = &own
	table, err := op.NewTable(all...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestMeasure makes the last call as often as it is asked to, beside the
// program's run and one that does not count; with gradients where asked. A graph
// measures nothing, rather than its tracing.
func TestMeasure(t *testing.T) {
	p, err := program.Parse("sin", program.Header+"\nimport operator, torch\nfrom plumb import case, tensor, uniform\n\ncase(\"a\", seed=1)\nx = tensor((2,), torch.float32, uniform(0.0, 1.0, key=1))\nh = torch.exp(x)\ny = torch.sin(h)\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		ask  *backend.Measure
		want int
	}{
		{"sin", nil, 1}, {"sin", &backend.Measure{Times: 3}, 5}, {"exp", &backend.Measure{Times: 3}, 1},
		{"cos", &backend.Measure{Times: 3}, 0}, {"cos", &backend.Measure{Times: 3, Backward: true}, 3},
	} {
		runs := 0
		job := backend.NewJob(p)
		job.Measure = c.ask
		out, err := New(counting(t, c.id, &runs), nn.Modules()).Run(t.Context(), job)
		if err != nil || out.Status != backend.OK || (out.Measured > 0) != (c.ask != nil) {
			t.Fatalf("%v, %s %s, measured %d", err, out.Status, out.Message, out.Measured)
		}
		if runs != c.want {
			t.Errorf("%s runs %d times for %v, want %d", c.id, runs, c.ask, c.want)
		}
	}
	job := backend.NewJob(p)
	job.Measure = &backend.Measure{Times: 3}
	b, err := New(ops.Table(), nn.Modules()).In("graph")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := b.Run(t.Context(), job); err != nil || out.Measured != 0 {
		t.Errorf("a graph: %v, measured %d", err, out.Measured)
	}
}
