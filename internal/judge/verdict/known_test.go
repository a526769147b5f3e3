package verdict_test

import (
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestFaultsBehindNames: a fault of an operator's gradient is known where a
// module applies it, alone or within another, and where the program reads the
// gradient.
func TestFaultsBehindNames(t *testing.T) {
	const x = "x = tensor((1,), torch.float32, [1.5], requires_grad=True)\n"
	const read = "b = y.backward()\ng = x.grad\n"
	fault := verdict.KnownFault{
		Reference: "torch", Target: "silu", Kinds: []verdict.Kind{verdict.Kind(backend.PartGrad)}, Reason: "r", Proof: "p",
		When: func(p *program.Program) bool { return len(p.Inputs) == 1 && p.Inputs[0].Materialize().Float(0) == 1.5 },
	}
	for name, c := range map[string]struct {
		text  string
		known bool
	}{
		"a gradient read":     {x + "y = torch.nn.functional.silu(x)\n" + read, true},
		"one asked for":       {x + "y = torch.nn.functional.silu(x)\ng = torch.autograd.grad(y, x)\n", true},
		"another call's":      {x + "y = torch.sin(x)\n" + read, false},
		"a value":             {x + "y = torch.nn.functional.silu(x)\n", false},
		"a module":            {x + "m = torch.nn.SiLU()\ny = m(x)\n" + read, true},
		"of another element":  {x + "m = torch.nn.SiLU()\nz = x * 2\ny = m(z)\n" + read, false},
		"a module in another": {x + "m = torch.nn.SiLU()\ns = torch.nn.Sequential(m)\nz = x * 1\ny = s(z)\n" + read, true},
		"another module":      {x + "m = torch.nn.Tanh()\ny = m(x)\n" + read, false},
	} {
		p, err := program.Parse("p.py", head+c.text)
		if err != nil {
			t.Fatal(err)
		}
		job := backend.NewJob(p)
		own := native.New(ops.Table(), nn.Modules())
		ref, _ := own.Run(t.Context(), job)
		cand, _ := own.Run(t.Context(), job)
		if ref.Status != backend.OK {
			t.Fatal(name, ref.Message)
		}
		for v := &cand.Values[len(cand.Values)-1]; ; v = &v.Tuple[0] {
			if v.Tensor != nil {
				v.Tensor = v.Tensor.Clone()
				v.Tensor.Set(0, 7)
				break
			}
		}
		got := verdict.Judge(p, ref, cand, verdict.Policy{Reference: "torch 1.13", Faults: []verdict.KnownFault{fault}})
		if known := got.Word == verdict.Known; known != c.known || got.Word == verdict.Aligned {
			t.Errorf("%s: known %v, want %v: %s", name, known, c.known, got.Text())
		}
	}
}

// TestFaultsOfADType: a fault of one dtype is known in the gradient of a tensor
// of that dtype alone.
func TestFaultsOfADType(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((1,), torch.float64, [1.5], requires_grad=True)\ny = torch.sin(x)\ny.backward()\n")
	if err != nil {
		t.Fatal(err)
	}
	job, own := backend.NewJob(p), native.New(ops.Table(), nn.Modules())
	ref, _ := own.Run(t.Context(), job)
	cand, _ := own.Run(t.Context(), job)
	for i := range cand.Slots {
		if s := &cand.Slots[i]; s.Part == backend.PartGrad {
			s.Tensor = s.Tensor.Clone()
			s.Tensor.Set(0, 7)
		}
	}
	for d, want := range map[tensor.DType]verdict.Word{tensor.F64: verdict.Known, tensor.F32: verdict.Misaligned} {
		fault := verdict.KnownFault{Reference: "torch", Target: "sin", DType: d, Kinds: []verdict.Kind{verdict.Kind(backend.PartGrad)}, Reason: "r", Proof: "p"}
		if v := verdict.Judge(p, ref, cand, verdict.Policy{Reference: "torch 1.13", Faults: []verdict.KnownFault{fault}}); v.Word != want {
			t.Errorf("a fault of %s: %s", d, v.Text())
		}
	}
}

// TestFaultsOfRefusals: where the reference refuses what others take, a candidate that
// refuses what the reference takes is not excused, unless the fault is its own.
func TestFaultsOfRefusals(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((1,), torch.float32, [1.5])\ny = torch.sin(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	ok, err := native.New(ops.Table(), nn.Modules()).Run(t.Context(), backend.NewJob(p))
	if err != nil {
		t.Fatal(err)
	}
	raised := &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: "no"}
	for ends, want := range map[backend.Status][2]verdict.Word{
		"":             {verdict.Known, verdict.Known},
		backend.Raised: {verdict.Known, verdict.Misaligned},
		backend.OK:     {verdict.Misaligned, verdict.Known},
	} {
		fault := verdict.KnownFault{Reference: "torch", Target: "sin", Kinds: []verdict.Kind{verdict.Exception}, Ends: ends, Reason: "r", Proof: "p"}
		policy := verdict.Policy{Reference: "torch 1.13", Faults: []verdict.KnownFault{fault}}
		if got := [2]verdict.Word{verdict.Judge(p, raised, ok, policy).Word, verdict.Judge(p, ok, raised, policy).Word}; got != want {
			t.Errorf("ends %q: the reference alone raises, the candidate alone: %s, want %s", ends, got, want)
		}
		own := []verdict.CandidateFault{{KnownFault: fault}}
		excused := func(ref, cand *backend.Outcome) verdict.Word {
			return verdict.Excused(verdict.Judge(p, ref, cand, verdict.Policy{}), p, ref, cand, backend.Info{Name: "torch", Version: "2.15"}, own).Word
		}
		if got := [2]verdict.Word{excused(ok, raised), excused(raised, ok)}; got != want {
			t.Errorf("ends %q: the candidate with the fault alone raises, the reference alone: %s, want %s", ends, got, want)
		}
	}
}

// TestFaultsOfAttributes: a fault of an operator is known where it is read as an
// attribute.
func TestFaultsOfAttributes(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((1,), torch.float32, [1.5])\ny = x.imag\n")
	if err != nil {
		t.Fatal(err)
	}
	raised := func(class string) *backend.Outcome {
		return &backend.Outcome{Status: backend.Raised, Class: class, Message: "real"}
	}
	for target, want := range map[string]verdict.Word{"imag": verdict.Known, "real": verdict.Misaligned} {
		fault := verdict.KnownFault{Reference: "torch", Target: target, Kinds: []verdict.Kind{verdict.Exception}, Reason: "r", Proof: "p"}
		if v := verdict.Judge(p, raised("RuntimeError"), raised("TypeError"), verdict.Policy{Reference: "torch 1.13", SameException: true, Faults: []verdict.KnownFault{fault}}); v.Word != want {
			t.Errorf("a fault of %s: %s", target, v.Text())
		}
	}
}

// TestKnownCrash: a crash is known where a fault of the candidate is one of the
// call that its message names.
func TestKnownCrash(t *testing.T) {
	p := callOf("torch.index_select", literal(1))
	crash := func(message string) *verdict.Verdict {
		return &verdict.Verdict{Word: verdict.Crash, Candidate: &verdict.Side{Status: backend.Crashed, Class: "SIGFPE", Message: message}}
	}
	faults := []verdict.CandidateFault{{KnownFault: verdict.KnownFault{Reference: "onnx:x", Target: "index_select", Kinds: []verdict.Kind{verdict.Crashes}, Signal: "SIGFPE"}}}
	other := crash("ended by SIGSEGV in torch.index_select")
	other.Candidate.Class = "SIGSEGV"
	ofReference := crash("ended by SIGFPE in torch.index_select")
	ofReference.OfReference = true
	for name, c := range map[string]struct {
		v    *verdict.Verdict
		is   string
		want verdict.Word
	}{
		"the call":         {crash("ended by SIGFPE in torch.index_select\nstack"), "onnx:x", verdict.Known},
		"another call":     {crash("ended by SIGFPE in torch.add\nof the index in torch.index_select"), "onnx:x", verdict.Crash},
		"another signal":   {other, "onnx:x", verdict.Crash},
		"no call":          {crash("ended by SIGFPE"), "onnx:x", verdict.Crash},
		"another subject":  {crash("ended by SIGFPE in torch.index_select"), "onnx:y", verdict.Crash},
		"of the reference": {ofReference, "onnx:x", verdict.Crash},
	} {
		ref := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.F32, 1)}}}
		if got := verdict.Excused(c.v, p, ref, nil, backend.Info{Name: c.is}, faults).Word; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCandidateFaultsOfADType: a fault of a candidate in a dtype is known where a result of
// another call has it, not only an input.
func TestCandidateFaultsOfADType(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((1,), torch.float64, [1.5])\ny = x.float()\nz = torch.exp(y)\n")
	if err != nil {
		t.Fatal(err)
	}
	of := func(d tensor.DType) backend.Value { return backend.Value{Tensor: tensor.New(d, 1)} }
	ref := &backend.Outcome{Status: backend.OK, Values: []backend.Value{of(tensor.F32), of(tensor.F32)}}
	v := &verdict.Verdict{Word: verdict.Misaligned, Kind: "value", Where: &verdict.Where{Part: backend.PartValue, Call: 1, Target: "torch.exp", Name: "z"}}
	for d, want := range map[tensor.DType]verdict.Word{tensor.F32: verdict.Known, tensor.F64: verdict.Misaligned} {
		faults := []verdict.CandidateFault{{KnownFault: verdict.KnownFault{Reference: "mine", Target: "exp", DType: d, Kinds: []verdict.Kind{"value"}}}}
		if got := verdict.Excused(v, p, ref, nil, backend.Info{Name: "mine"}, faults).Word; got != want {
			t.Errorf("a fault in %s: %s, want %s", d, got, want)
		}
	}
}

// TestCandidateFaultsOfWhatDiffers: a fault of some elements, of one argument's gradient,
// of an error up to a size or of a message is known in these alone, and what a call is
// asked of are its own inputs.
func TestCandidateFaultsOfWhatDiffers(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((3,), torch.float32, [1.0, 2.0, 3.0], requires_grad=True)\nw = tensor((3,), torch.float32, [1.0, 1.0, 1.0], requires_grad=True)\nz = x * -1\ny = torch.mul(z, w)\ns = y.sum()\nb = s.backward()\n")
	if err != nil {
		t.Fatal(err)
	}
	own := native.New(ops.Table(), nn.Modules())
	run := func() *backend.Outcome {
		o, err := own.Run(t.Context(), backend.NewJob(p))
		if err != nil || o.Status != backend.OK {
			t.Fatal(err, o)
		}
		return o
	}
	odd := func(_ *program.Program, _ []int) func(int) bool { return func(i int) bool { return i == 1 } }
	negative := func(p *program.Program) bool { return p.Inputs[0].Materialize().Float(0) < 0 }
	by := func(at int) func(*program.Call) (program.Ref, bool) {
		return func(c *program.Call) (program.Ref, bool) { r, ok := c.Args[at].(program.Ref); return r, ok }
	}
	for name, c := range map[string]struct {
		fault verdict.KnownFault
		of    string // the gradient that is wrong, "" for the value
		at    map[int]float64
		known bool
	}{
		"its element":              {verdict.KnownFault{Places: odd}, "", map[int]float64{1: 2}, true},
		"another element":          {verdict.KnownFault{Places: odd}, "", map[int]float64{2: 2}, false},
		"another beside it":        {verdict.KnownFault{Places: odd}, "", map[int]float64{1: 2, 2: 2}, false},
		"all that is shown":        {verdict.KnownFault{Shows: func(v complex128) bool { return real(v) < -1 }}, "", map[int]float64{1: 2, 2: 2}, true},
		"not all is shown":         {verdict.KnownFault{Shows: func(v complex128) bool { return real(v) > -3 }}, "", map[int]float64{1: 2, 2: 2}, false},
		"a small error":            {verdict.KnownFault{Within: 0.01}, "", map[int]float64{1: 1.001}, true},
		"a large error":            {verdict.KnownFault{Within: 0.01}, "", map[int]float64{1: 1.001, 2: 2}, false},
		"its argument":             {verdict.KnownFault{By: by(1)}, "w", map[int]float64{1: 2}, true},
		"another argument":         {verdict.KnownFault{By: by(1)}, "x", map[int]float64{1: 2}, false},
		"what an argument is of":   {verdict.KnownFault{By: by(0)}, "x", map[int]float64{1: 2}, true},
		"the call's own inputs":    {verdict.KnownFault{When: negative}, "w", map[int]float64{1: 2}, true},
		"what nothing says":        {verdict.KnownFault{Says: "x"}, "", map[int]float64{1: 2}, false},
		"everywhere, as it stands": {verdict.KnownFault{}, "", map[int]float64{1: 2}, true},
	} {
		ref, cand := run(), run()
		wrong := &cand.Values[1].Tensor
		if c.of != "" {
			for i := range cand.Slots {
				if s := &cand.Slots[i]; s.Place.Part == backend.PartGrad && s.Place.Owner == c.of {
					wrong = &s.Tensor
				}
			}
		}
		*wrong = (*wrong).Clone()
		for i, factor := range c.at {
			(*wrong).Set(i, (*wrong).At(i)*complex(factor, 0))
		}
		v := verdict.Judge(p, ref, cand, verdict.Policy{})
		c.fault.Reference, c.fault.Target, c.fault.Kinds = "mine", "mul", []verdict.Kind{"value", "grad"}
		got := verdict.Excused(v, p, ref, cand, backend.Info{Name: "mine"}, []verdict.CandidateFault{{KnownFault: c.fault}})
		if v.Word != verdict.Misaligned || (got.Word == verdict.Known) != c.known {
			t.Errorf("%s: %s, then %s", name, v.Text(), got.Word)
		}
	}
}

// TestReferenceDies: a crash of the reference is known where a fault of its call and
// signal says so, and a finding elsewhere.
func TestReferenceDies(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((1,), torch.int32, [-7])\ny = torch.fmod(x, -1)\n")
	if err != nil {
		t.Fatal(err)
	}
	job := backend.NewJob(p)
	cand, _ := native.New(ops.Table(), nn.Modules()).Run(t.Context(), job)
	of, behind := []verdict.Kind{verdict.Crashes}, []verdict.Kind{verdict.Crashes, verdict.Kind(backend.PartGrad)}
	for name, c := range map[string]struct {
		message, signal, version string
		target                   string
		kinds                    []verdict.Kind
		want                     verdict.Word
	}{
		"as the fault says": {"ended by SIGFPE in torch.fmod", "SIGFPE", "torch 2.9", "fmod", of, verdict.Known},
		"another call":      {"ended by SIGFPE in torch.gcd", "SIGFPE", "torch 2.9", "fmod", of, verdict.Crash},
		"another signal":    {"ended by SIGSEGV in torch.fmod", "SIGSEGV", "torch 2.9", "fmod", of, verdict.Crash},
		"a later version":   {"ended by SIGFPE in torch.fmod", "SIGFPE", "torch 2.15", "fmod", of, verdict.Crash},
		"in its gradient":   {"ended by SIGFPE in the backward pass", "SIGFPE", "torch 2.9", "fmod", behind, verdict.Known},
		"of values alone":   {"ended by SIGFPE in the backward pass", "SIGFPE", "torch 2.9", "fmod", of, verdict.Crash},
		"another gradient":  {"ended by SIGFPE in the backward pass", "SIGFPE", "torch 2.9", "pdist", behind, verdict.Crash},
	} {
		ref := &backend.Outcome{Status: backend.Crashed, Class: c.signal, Message: c.message}
		fault := verdict.KnownFault{Reference: "torch <2.15", Target: c.target, Kinds: c.kinds, Signal: "SIGFPE", Reason: "r", Proof: "p"}
		if got := verdict.Judge(p, ref, cand, verdict.Policy{Reference: c.version, Faults: []verdict.KnownFault{fault}}); got.Word != c.want {
			t.Errorf("%s: %s", name, got.Text())
		}
	}
}

// TestGives: of a fault that says what the candidate gives, anything else is a finding.
func TestGives(t *testing.T) {
	p, err := program.Parse("p.py", head+"x = tensor((2,), torch.float32, [1.5, 2.5])\ny = torch.exp(x)\n")
	if err != nil {
		t.Fatal(err)
	}
	job := backend.NewJob(p)
	fault := verdict.KnownFault{Reference: "x", Target: "exp", Kinds: []verdict.Kind{verdict.Kind(backend.PartValue)}, Reason: "r", Proof: "p", Gives: func(v complex128) bool { return v == 0 }}
	for _, c := range []struct {
		first, second float64
		want          verdict.Word
	}{{0, 0, verdict.Known}, {0, 7, verdict.Misaligned}, {7, 7, verdict.Misaligned}} {
		own := native.New(ops.Table(), nn.Modules())
		ref, _ := own.Run(t.Context(), job)
		cand, _ := own.Run(t.Context(), job)
		y := cand.Values[0].Tensor.Clone()
		y.Set(0, complex(c.first, 0))
		y.Set(1, complex(c.second, 0))
		cand.Values[0].Tensor = y
		v := verdict.Judge(p, ref, cand, verdict.Policy{})
		if got := verdict.Excused(v, p, ref, cand, backend.Info{Name: "x"}, []verdict.CandidateFault{{KnownFault: fault}}); got.Word != c.want {
			t.Errorf("%v: %s", c, got.Text())
		}
	}
}

// TestRefusedElements: tensors without elements cannot be refused for these, but for
// their shapes they can.
func TestRefusedElements(t *testing.T) {
	for text, want := range map[string]verdict.Word{
		"i = tensor((1,), torch.int64, [7])\ny = torch.take(x, i)\n": verdict.Unsupported,
		"y = torch.sum(x, 5)\n": verdict.Misaligned,
	} {
		p, err := program.Parse("p.py", head+"x = tensor((2,), torch.float32, [1.5, 2.5])\n"+text)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := native.New(ops.Table(), nn.Modules()).Run(t.Context(), backend.NewJob(p))
		if err != nil || ref.Status != backend.Raised {
			t.Fatal(ref, err)
		}
		cand := &backend.Outcome{Status: backend.OK, NoElements: true, Values: []backend.Value{{Tensor: tensor.New(tensor.F32)}}}
		if v := verdict.Judge(p, ref, cand, verdict.Policy{}); v.Word != want {
			t.Errorf("%s: %s", text, v.Text())
		}
	}
}
