package rounding

import (
	"testing"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/judge/compare"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestOutlineIsCertain: what is told of bounds before they are computed is so
// afterwards, for results and gradients of every operator, in place too.
func TestOutlineIsCertain(t *testing.T) {
	b := New(ops.Table(), nn.Modules())
	told := map[string]int{}
	for _, d := range ops.Table().Defs() {
		for _, inPlace := range []bool{false, true} {
			drawer := opcase.Drawer{Table: ops.Table(), Def: d, InPlace: inPlace}
			if d.Sample == nil || d.Traits.Has(op.Random) {
				continue
			}
			for _, dt := range drawer.DTypes(tensor.F32, tensor.BF16, tensor.C64) {
				for key := range uint64(3) {
					if p, err := drawer.Legal(choice.New(choice.Derive(key, uint64(dt))), dt); err == nil {
						certain(t, b, p, told)
					}
				}
			}
		}
	}
	certain(t, b, text(t, "x = tensor((3, 4), torch.float32, uniform(-1, 1, key=1))\ns = torch.exp(x)\ny = torch.sub(s, s)\n"), told)
	for _, what := range []string{"functions in values", "functions in gradients", "elementwise in values"} {
		if told[what] < 200 {
			t.Errorf("%s are told of %d tensors only", what, told[what])
		}
	}
}

// certain compares the outline of a program with its bounds, and counts what
// was told.
func certain(t *testing.T, b *Analysis, p *program.Program, told map[string]int) {
	job := backend.NewJob(p)
	check := func(part, name string, o, bound *compare.Bound) {
		if o == nil || bound != nil && !bound.Value.DType().IsDifferentiable() {
			return
		}
		if o.Functions {
			told["functions in "+part]++
		}
		if o.Elementwise {
			told["elementwise in "+part]++
		}
		if bound != nil && (o.Functions && !bound.Functions || o.Elementwise && (bound.Error == nil || bound.Terms != nil)) {
			t.Errorf("%s %s: outlined %+v, is %+v of\n%s", part, name, o, bound, p)
		}
	}
	for _, gradients := range []bool{false, true} {
		outline, bounds := b.Outline(job, gradients), b.Bounds(job, gradients)
		for i := range outline.Values {
			check("values", p.Calls[i].Result, outline.Values[i].Bound, bounds.Values[i].Bound)
			for k := range outline.Values[i].Tuple {
				check("values", p.Calls[i].Result, outline.Values[i].At([]int{k}), bounds.Values[i].At([]int{k}))
			}
		}
		for at, o := range outline.Slots {
			check("gradients", at.String(), o, bounds.Slots[at])
		}
	}
}
