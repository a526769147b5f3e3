package autograd_test

import (
	"fmt"
	"slices"
	"testing"

	"plumb/autograd"
	"plumb/backend"
	"plumb/backend/native"
	"plumb/check"
	"plumb/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestGradients compares every gradient rule with difference quotients, first
// and second order.
func TestGradients(t *testing.T) {
	for _, d := range ops.All() {
		table := ops.Table()
		if table.Def(d.ID()).Traits.Has(op.NoGrad) {
			continue
		}
		d = table.Def(d.ID())
		t.Run(d.ID(), func(t *testing.T) {
			if d.Sample == nil {
				t.Fatal("a differentiable operator has no Sample")
			}
			if !slices.ContainsFunc(d.Sigs()[0].Params, func(p op.Param) bool { return p.Type.Kind == op.KTensor && !slices.Contains(d.Fixed, p.Name) }) {
				t.Skip("PyTorch has no derivative either")
			}
			checked := 0
			for key := range uint64(12) {
				n, err := check.FirstOrder(table, d, key)
				if err != nil {
					t.Error(err)
				}
				checked += n
				if key >= 4 {
					continue
				}
				if err := check.SecondOrder(table, d, key); err != nil {
					t.Error(err)
				}
			}
			if checked == 0 {
				if d.Traits.Has(op.Random) && len(d.Fixed) > 0 {
					t.Skip("the gradient of a draw is 0 by definition, not the difference quotient")
				}
				if d.Infer == nil && d.Compose == nil || !check.Rounds(table, d) {
					t.Error("no gradient was checked")
				}
				t.Skip("every result is rounded to another dtype: no difference quotient")
			}
		})
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
		for key := range uint64(3) {
			p, inputs := asProgram(d, key)
			if p == nil {
				continue
			}
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
			for name, want := range eagerOut.Grads {
				ref, ok := ext.Grads[name]
				if !ok {
					if want != nil {
						t.Errorf("%s: the program has no gradient of %s", d.ID(), name)
					}
					continue
				}
				if got := valueOf(ext.Program, inputs, out, ref); !got.SameBits(want) {
					t.Errorf("%s sample %d: gradient of %s differs between eager and program", d.ID(), key, name)
				}
			}
		}
	}
}

// asProgram writes one sampled call of d as a program with literal inputs.
func asProgram(d *op.Def, key uint64) (*program.Program, []*tensor.Tensor) {
	s := eager.New(ops.Table())
	args, _ := check.Sample(d, s, key)
	p := &program.Program{Name: d.ID()}
	var inputs []*tensor.Tensor
	var arg func(any) any
	arg = func(a any) any {
		switch a := a.(type) {
		case *eager.Var:
			in := program.Input{Name: fmt.Sprintf("x%d", len(inputs)), DType: a.DType(), Shape: a.Shape(),
				Fill: program.Fill{Dist: program.Literal, Data: a.Contiguous()}, RequiresGrad: a.RequiresGrad()}
			p.Inputs, inputs = append(p.Inputs, in), append(inputs, a.Tensor)
			return program.Ref(in.Name)
		case []any:
			list := make(program.List, len(a))
			for i := range a {
				list[i] = arg(a[i])
			}
			return list
		case int:
			return int64(a)
		case []int:
			list := make(program.List, len(a))
			for i := range a {
				list[i] = int64(a[i])
			}
			return list
		case op.Index:
			return program.FromOp(a)
		}
		return a
	}
	c := program.Call{Result: "y", Target: program.OwnPrefix + d.ID()}
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: arg(kw.Value)})
		} else {
			c.Args = append(c.Args, arg(a))
		}
	}
	p.Calls = []program.Call{c}
	cot := program.Fill{Dist: program.Uniform, Lo: 0, Hi: 1, Key: key}
	if len(d.Sigs()[0].Results) == 1 {
		p.Backward = []program.Backward{{Value: "y", Cotangent: cot, Auto: true}}
		return p, inputs
	}
	for i := range d.Sigs()[0].Results {
		name := fmt.Sprintf("e%d", i)
		p.Calls = append(p.Calls, program.Call{Result: name, Target: "operator.getitem", Args: []any{program.Ref("y"), int64(i)}})
		p.Backward = append(p.Backward, program.Backward{Value: program.Ref(name), Cotangent: cot, Auto: true})
	}
	return p, inputs
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
