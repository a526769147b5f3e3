package backend

import (
	"slices"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

// TestFunction puts what a function gave beside what the reference has of its program.
func TestFunction(t *testing.T) {
	f := &Function{
		Program: &program.Program{Calls: []program.Call{{Result: "result", Target: "CustomizedTest.f"}}},
		Of: &program.Program{
			Inputs: []program.Input{{Name: "x", DType: tensor.F32, RequiresGrad: true}},
			Calls:  []program.Call{{Result: "step"}, {Result: "result1"}, {Result: "result0"}},
		},
		Returns: []string{"result0", "", "result1", "x"},
	}
	of := func(x float64) Value {
		v := tensor.New(tensor.F32)
		v.Set(0, complex(x, 0))
		return Value{Tensor: v}
	}
	ref := &Outcome{Status: OK, Values: []Value{of(1), of(2), of(3)}}
	ref.Values[2].RequiresGrad = true
	ref.Add(Place{Part: PartGrad, Owner: "x"}, of(4).Tensor)
	four := []Value{{IsTuple: true, Tuple: []Value{of(30), of(0), of(20), of(40)}}}
	three := []Value{{IsTuple: true, Tuple: four[0].Tuple[:3]}}
	for name, c := range map[string]struct {
		got      *Outcome
		values   []float64
		gradient float64 // 0 for none
	}{
		"all":                 {&Outcome{Status: OK, Values: four}, []float64{1, 20, 30}, 40},
		"no gradients":        {&Outcome{Status: OK, ForwardOnly: true, Values: three}, []float64{1, 20, 30}, 0},
		"gradients that fail": {&Outcome{Status: Raised, Call: 1, Values: three}, []float64{1, 20, 30}, 0},
		"it fails":            {&Outcome{Status: Crashed}, []float64{1}, 0},
	} {
		part, err := f.Part(c.got)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o := f.Beside(ref, part)
		var values []float64
		for _, v := range o.Values {
			values = append(values, real(v.Tensor.At(0)))
		}
		gradient := 0.0
		if g := o.Grad("x"); g != nil {
			gradient = real(g.At(0))
		}
		if !slices.Equal(values, c.values) || gradient != c.gradient || o.Status != c.got.Status || o.Call != len(c.values) && o.Status != OK {
			t.Errorf("%s: %v, %v at call %d, gradient %v", name, o.Status, values, o.Call, gradient)
		}
		if len(values) == 3 && (!slices.Equal(o.Computed, []int{2, 1}) || !o.Values[2].RequiresGrad) {
			t.Errorf("%s: computed %v, %+v", name, o.Computed, o.Values[2])
		}
	}
	if _, err := f.Part(&Outcome{Status: OK, Values: three}); err == nil {
		t.Error("three results are four")
	}
	if strange := (&Function{Of: f.Of, Returns: []string{"y"}}); strange.Fits() || !f.Fits() {
		t.Error("a result that the program has not is one of it")
	}
}
