package command

import (
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign/report"
	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// spoilt changes each element of an operator's first result at the indices that at
// chooses.
func spoilt(d *op.Def, at func(index, shape []int) bool) {
	mutants.Around(d, func(c *op.Run, run func(*op.Run) error) error {
		if err := run(c); err != nil {
			return err
		}
		out := c.Out[0]
		index := make([]int, len(out.Shape()))
		for i := range out.Len() {
			for d, k := len(index)-1, i; d >= 0; d-- {
				index[d] = k % out.Shape()[d]
				k /= out.Shape()[d]
			}
			if out.DType().IsFloat() && at(index, out.Shape()) {
				out.Set(i, out.At(i)*1.5+0.25)
			}
		}
		return nil
	})
}

// TestReportsTellWhere: of three planted faults the report says in words where in
// the tensor it is: a wrong border, one bad channel, a split that is off by one.
func TestReportsTellWhere(t *testing.T) {
	for _, c := range []struct {
		name, test, want string
		plant            func(map[string]*op.Def)
	}{
		{"the last column of a convolution", "conv.py::test_conv2d_uneven", "only the last index, ", func(defs map[string]*op.Def) {
			spoilt(defs["conv2d"], func(at, shape []int) bool { n := len(at) - 1; return at[n] == shape[n]-1 && shape[n] > 2 })
		}},
		{"the border of a convolution", "conv.py::test_conv2d_uneven", "only at a border: first of dim ", func(defs map[string]*op.Def) {
			spoilt(defs["conv2d"], func(at, shape []int) bool {
				n := len(at) - 1
				return shape[n] > 3 && shape[n-1] > 3 && (at[n] == 0 || at[n-1] == 0)
			})
		}},
		{"one channel of a normalisation", "groupnorm.py::test_group_norm", "only index 2 of dim 1 (of ", func(defs map[string]*op.Def) {
			spoilt(defs["group_norm"], func(at, shape []int) bool { return len(at) > 2 && shape[1] > 4 && at[1] == 2 })
		}},
		{"the last row that each rank holds", "unary.py::test_expm1", " of dim 0 (of ", func(defs map[string]*op.Def) {
			spoilt(defs["expm1"], func(at, shape []int) bool { return len(at) > 1 && shape[0] > 1 && at[0] == shape[0]-1 })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			candidate := backend.Backend(native.New(planted(t, c.plant), nn.Modules()))
			if strings.Contains(c.name, "rank") {
				over, err := candidate.(*native.Backend).In("global-2")
				if err != nil {
					t.Fatal(err)
				}
				candidate = over
			}
			w, _ := playOn(t, candidate, nil, "--reference", "native", "-k", c.test, "-n", "20", "--seed", "7", "--check-graph=false")
			said := ""
			for _, r := range w.findings() {
				if b := report.BlockOf(r); b.Picture != nil {
					said += b.Picture.Words() + " " + tensor.ShapeString(b.Picture.Shape) + "\n"
				}
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("no report says %q:\n%s", c.want, said)
			}
		})
	}
}

// TestTour: it finds its fault, shows where, explains it, and shows it again.
func TestTour(t *testing.T) {
	cmd := newTour()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"--yes"})
	cmd.SetContext(t.Context())
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"finding 1 of 1", "only the last index", "3: the operator is exact", "with the fault     misaligned", "without the fault  aligned"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestExplain: the rule, the dominating term and the nearest case of an operator.
func TestExplain(t *testing.T) {
	cmd := newExplain()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"conv2d", "--reference", "native", "--candidate", "native:graph", "-n", "2", "--seed", "4"})
	cmd.SetContext(t.Context())
	if err := cmd.Execute(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"conv2d, value, float32\n  rule      5: a bound", "conv2d, value, float64", " equal", "seed 4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
