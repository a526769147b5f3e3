package verdict

import (
	"slices"
	"testing"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// forward is outcome as of a subject that has no gradients.
func forward() *backend.Outcome {
	o := outcome().Without(backend.Part.IsGradient)
	o.ForwardOnly = true
	for i := range o.Values {
		o.Values[i].RequiresGrad = false
		for k := range o.Values[i].Tuple {
			o.Values[i].Tuple[k].RequiresGrad = false
		}
	}
	return o
}

// TestNoElements: of a subject whose tensors have no elements shapes are compared.
func TestNoElements(t *testing.T) {
	zeros, narrow := outcome(), outcome()
	zeros.NoElements, narrow.NoElements = true, true
	zeros.Values[2].Tensor.Set(0, 9)
	narrow.Values[2].Tensor = tensor.New(narrow.Values[2].Tensor.DType(), 7)
	for name, c := range map[string]struct {
		cand *backend.Outcome
		word Word
	}{"other elements": {zeros, Aligned}, "another shape": {narrow, Misaligned}} {
		if v := Judge(example(), outcome(), c.cand, Policy{}); v.Word != c.word {
			t.Errorf("%s: %s (%s)", name, v.Word, v.Reason)
		}
	}
}

// TestPermissive: a subject with an interface of its own may take what the
// reference refuses, but what it computed before has to be right.
func TestPermissive(t *testing.T) {
	right, wrong, raised := outcome(), outcome(), outcome()
	right.Permissive, wrong.Permissive = true, true
	wrong.Values[2].Tensor.Set(0, 9)
	raised.Status, raised.Class, raised.Call = backend.Raised, "RuntimeError", len(example().Calls)
	for name, c := range map[string]struct {
		ref, cand *backend.Outcome
		word      Word
	}{
		"takes":             {raised, right, Unsupported},
		"takes, value":      {raised, wrong, Misaligned},
		"refuses":           {right, raised, Misaligned},
		"has to refuse":     {raised, outcome(), Misaligned},
		"nobody refuses it": {outcome(), right, Aligned},
	} {
		if v := Judge(example(), c.ref, c.cand, Policy{}); v.Word != c.word {
			t.Errorf("%s: %s (%s)", name, v.Word, v.Reason)
		}
	}
}

// TestOwnForms: a subject without PyTorch's binding may take forms of arguments
// that the reference refuses, nothing else, and has classes of exceptions of its own.
func TestOwnForms(t *testing.T) {
	right, wrong, other := outcome(), outcome(), outcome()
	right.OwnForms, wrong.OwnForms, other.OwnForms = true, true, true
	wrong.Values[2].Tensor.Set(0, 9)
	refused := func(class string) *backend.Outcome {
		o := outcome()
		o.Status, o.Class, o.Call = backend.Raised, class, len(example().Calls)
		return o
	}
	other.Status, other.Class, other.Call = backend.Raised, "RuntimeError", len(example().Calls)
	form, value := refused("TypeError"), refused("IndexError")
	for name, c := range map[string]struct {
		ref, cand *backend.Outcome
		word      Word
	}{
		"takes the form":                      {form, right, Unsupported},
		"takes it, value":                     {form, wrong, Misaligned},
		"takes the value":                     {value, right, Misaligned},
		"has PyTorch's binding":               {form, outcome(), Misaligned},
		"another class":                       {form, other, Rejected},
		"refuses alone":                       {outcome(), other, Misaligned},
		"another class, as PyTorch's binding": {form, refused("RuntimeError"), Misaligned},
	} {
		if v := Judge(example(), c.ref, c.cand, Policy{SameException: true}); v.Word != c.word {
			t.Errorf("%s: %s (%s)", name, v.Word, v.Reason)
		}
	}
}

// TestReferencesException: a framework that refuses by a class of its own refuses as
// the reference does, unless the reference's own class is asked for.
func TestReferencesException(t *testing.T) {
	refused := func(class string, framework bool) *backend.Outcome {
		o := outcome()
		o.Status, o.Class, o.Call, o.OwnForms = backend.Raised, class, len(example().Calls), framework
		return o
	}
	for name, c := range map[string]struct {
		cand           *backend.Outcome
		equals, strict Word
	}{
		"a framework's class": {refused("ValueError", true), Rejected, Misaligned},
		"the same":            {refused("RuntimeError", true), Rejected, Rejected},
		"its subclass":        {refused("NotImplementedError", false), Rejected, Misaligned},
		"another of PyTorch":  {refused("ValueError", false), Misaligned, Misaligned},
	} {
		if v := Judge(example(), refused("RuntimeError", false), c.cand, Policy{SameException: true}); v.Word != c.equals {
			t.Errorf("%s: %s (%s)", name, v.Word, v.Reason)
		}
		if v := Judge(example(), refused("RuntimeError", false), c.cand, Policy{ReferencesException: true}); v.Word != c.strict {
			t.Errorf("%s, strictly: %s (%s)", name, v.Word, v.Reason)
		}
	}
}

// TestForwardOnly: of a subject without gradients all else is compared.
func TestForwardOnly(t *testing.T) {
	wrong, silent, raised, derived, wrongly := forward(), forward(), outcome(), outcome(), outcome()
	for _, o := range []*backend.Outcome{derived, wrongly} {
		o.Values, o.Derived = forward().Values, true
	}
	slot := slices.IndexFunc(wrongly.Slots, func(s backend.Slot) bool { return s.Part == backend.PartGrad })
	wrongly.Slots[slot].Tensor.Set(0, 9)
	wrong.Values[2].Tensor.Set(0, 9)
	silent.ForwardOnly = false
	raised.Status, raised.Class, raised.Call = backend.Raised, "RuntimeError", len(example().Calls)
	for name, c := range map[string]struct {
		ref, cand *backend.Outcome
		word      Word
	}{
		"equal":                       {outcome(), forward(), Aligned},
		"another value":               {outcome(), wrong, Misaligned},
		"backward raises":             {raised, forward(), Aligned},
		"backward raises, value":      {raised, wrong, Misaligned},
		"gradients of a program":      {outcome(), derived, Aligned},
		"wrong ones of a program":     {outcome(), wrongly, Misaligned},
		"gradients that do not come":  {outcome(), silent, Misaligned},
		"backward raises in one side": {raised, outcome(), Misaligned},
		"the reference has none":      {forward(), outcome(), Aligned},
		"nor another value":           {wrong, outcome(), Misaligned},
		"the candidate's raises":      {forward(), raised, Aligned},
	} {
		v := Judge(example(), c.ref, c.cand, Policy{})
		if v.Word != c.word || v.ForwardOnly != (c.cand.ForwardOnly || c.ref.ForwardOnly) {
			t.Errorf("%s: %s (%s), forward only %t", name, v.Word, v.Reason, v.ForwardOnly)
		}
	}
}

// TestComputed: where a subject computed the last value alone, it need not be a copy, bit by
// bit, of the one before, which is the reference's.
func TestComputed(t *testing.T) {
	p := &program.Program{
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{1}}},
		Calls: []program.Call{
			{Result: "step", Target: "torch.exp", Args: []any{program.Ref("x")}},
			{Result: "result", Target: "torch.clone", Args: []any{program.Ref("step")}},
		},
	}
	of := func(x float64) *backend.Outcome {
		a, b := tensor.New(tensor.F32, 1), tensor.New(tensor.F32, 1)
		a.Set(0, 2)
		b.Set(0, complex(x, 0))
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: a}, {Tensor: b}}}
	}
	copies := Policy{Tols: func(target string) []op.Tol {
		if target == "torch.clone" {
			return []op.Tol{{Class: op.Exact, Reason: "copies"}}
		}
		return nil
	}}
	for name, c := range map[string]struct {
		x        float64
		computed []int
		word     Word
	}{
		"all, an ulp off":   {2 + 2.4e-7, nil, Misaligned},
		"it, an ulp off":    {2 + 2.4e-7, []int{1}, Aligned},
		"it, another value": {2.1, []int{1}, Misaligned},
	} {
		cand := of(c.x)
		cand.Computed = c.computed
		if v := Judge(p, of(2), cand, copies); v.Word != c.word {
			t.Errorf("%s: %s (%s)", name, v.Word, v.Reason)
		}
	}
}
