package autograd_test

import (
	"slices"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/autograd"
	"plumb/internal/gradcheck"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestGradients compares every gradient rule with difference quotients, first
// and second order.
func TestGradients(t *testing.T) {
	table, calls := ops.Table(), 0
	if testing.Short() {
		calls = 3
	}
	for _, d := range table.Defs() {
		t.Run(d.ID(), func(t *testing.T) {
			t.Parallel()
			r := gradcheck.Check(table, d, gradcheck.Options{Seed: 1, Calls: calls})
			for i := range r.Findings {
				t.Error(&r.Findings[i])
			}
			first, second := r.Orders[0], r.Orders[1]
			if r.None != "" && gradcheck.None(d) == "" && !slices.Contains(rounded, d.ID()) {
				t.Error(r.None)
			}
			if first.Kinks > first.Checked/4 {
				t.Errorf("%d elements of %d are at kinks", first.Kinks, first.Checked+first.Kinks)
			}
			if first.Worst > 0 && second.Checked == 0 {
				t.Error("the gradient has no gradient")
			}
		})
	}
}

// rounded are the operators without a difference quotient in float64: the
// results are rounded, or Sample keeps to float32; see TestGradientOfCTCLoss.
var rounded = []string{"half", "bfloat16", "float", "cfloat", "ctc_loss", "ctc_loss.samples"}

// TestGradientOfCTCLoss: PyTorch's takes log_probs as normalised, so that only
// the composition with log_softmax has it as its difference quotient.
func TestGradientOfCTCLoss(t *testing.T) {
	ctc := ops.Table().Def("ctc_loss")
	var defs []*op.Def
	for _, d := range ops.All() {
		c := *d // a table makes its literals its own
		defs = append(defs, &c)
	}
	table, err := op.NewTable(append(defs, &op.Def{
		Sig: "normalised_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, *, str reduction='mean', bool zero_infinity=False) -> Tensor",
		Tol: op.Tol{Class: op.Accumulating, Reason: "test"},
		Sample: func(s *op.Sampler) []any {
			args := ctc.Sample(s)
			args[0] = args[0].(*tensor.Tensor).Convert(s.DType)
			return args
		},
		Compose: func(b op.Builder, a op.Args) []op.Value {
			x := b.Op("log_softmax", a.Value("log_probs"), -1)
			return b.All("ctc_loss", x, a.Value("targets"), a.Value("input_lengths"), a.Value("target_lengths"),
				op.Kw("reduction", a.Str("reduction")), op.Kw("zero_infinity", a.Bool("zero_infinity")))
		},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	r := gradcheck.Check(table, table.Def("normalised_ctc_loss"), gradcheck.Options{Calls: 20})
	if r.Orders[0].Checked == 0 {
		t.Errorf("nothing was checked: %s", r.None)
	}
	for _, f := range r.Findings {
		if f.Order == 1 {
			t.Error(&f)
		}
	}
}

// TestGradientsArePrograms extends a program by its gradients, runs it on the
// native backend, and expects the bits of the eager gradients.
func TestGradientsArePrograms(t *testing.T) {
	table := ops.Table()
	run := native.New(table, nn.Modules())
	for _, d := range table.Defs() {
		if d.Traits.Has(op.NoGrad) || d.Traits.Has(op.Dynamic) || len(d.Mutates) > 0 {
			continue
		}
		for i := range 3 {
			c, err := gradcheck.Draw(table, d, tensor.F64, 0, i)
			if err != nil {
				t.Errorf("%s: %v", d.ID(), err)
				break
			}
			p, inputs := c.Program(program.OwnPrefix+d.ID()), c.Inputs()
			ext, err := autograd.Extend(p, table)
			if err != nil {
				t.Errorf("%s: %v", d.ID(), err)
				break
			}
			if _, err := program.Parse("extended", ext.Program.String()); err != nil {
				t.Errorf("%s: the extended program does not parse: %v", d.ID(), err)
			}
			eagerOut, _ := run.Run(t.Context(), &backend.Job{Program: p, Inputs: inputs})
			for _, in := range ext.Program.Inputs[len(inputs):] {
				inputs = append(inputs, in.Materialize())
			}
			out, _ := run.Run(t.Context(), &backend.Job{Program: ext.Program, Inputs: inputs})
			if eagerOut.Status != backend.OK || out.Status != backend.OK {
				t.Errorf("%s: eager %s %s, program %s %s", d.ID(), eagerOut.Status, eagerOut.Message, out.Status, out.Message)
				break
			}
			for _, s := range eagerOut.Slots {
				if s.Part != backend.PartGrad {
					continue
				}
				name, want := s.Owner, s.Tensor
				ref, ok := ext.Grads[name]
				if !ok {
					if want != nil {
						t.Errorf("%s: the program has no gradient of %s", d.ID(), name)
					}
					continue
				}
				if got := valueOf(ext.Program, inputs, out, ref); !got.SameBits(want) {
					t.Errorf("%s sample %d: gradient of %s differs between eager and program", d.ID(), i, name)
				}
			}
		}
	}
}

func valueOf(p *program.Program, inputs []*tensor.Tensor, out *backend.Outcome, ref program.Ref) *tensor.Tensor {
	for i, in := range p.Inputs {
		if in.Name == string(ref) {
			return inputs[i]
		}
	}
	for i, c := range p.Calls {
		if c.Result == string(ref) {
			return out.Values[i].Tensor
		}
	}
	return nil
}
