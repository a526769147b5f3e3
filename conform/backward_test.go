package conform_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/conform"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// device differentiates nothing; it has tanh, and its gradient as a function of
// its own, which is off by a factor.
type device struct {
	backend.Backend
	factor float64
}

func (device) Info() backend.Info { return backend.Info{Name: "device", ForwardOnly: true} }

func (d device) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	call := job.Program.Calls[0]
	if call.Target != "torch.tanh_backward" {
		p := job.Program.Clone()
		p.Backward = nil
		for i := range p.Inputs {
			p.Inputs[i].RequiresGrad = false
		}
		o, err := d.Backend.Run(ctx, &backend.Job{Program: p, Inputs: job.Inputs})
		if o != nil {
			o.ForwardOnly = true
		}
		return o, err
	}
	named := map[string]*tensor.Tensor{}
	for i, in := range job.Program.Inputs {
		named[in.Name] = job.Inputs[i]
	}
	g, y := named["grad_outputs0"], named["output"]
	out := tensor.New(y.DType(), y.Shape()...)
	for i := range out.Len() {
		v := real(y.At(i))
		out.Set(i, complex(d.factor*real(g.At(i))*(1-v*v), 0))
	}
	return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: out}}, ForwardOnly: true}, nil
}

// TestBackwardFunctions: gradients are a variant of their own, which a device
// without differentiation computes as a function from the reference's results.
func TestBackwardFunctions(t *testing.T) {
	const src = `diopi_configs = {'t': dict(name=['tanh', 'sigmoid'], interface=['torch'], saved_args=dict(output=0), dtype=[np.float32],
    tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),), requires_grad=[True])]))}`
	dir := recordNative(t, src)
	words := func(cand backend.Backend) map[string]verdict.Word {
		base, err := conform.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		kit, err := conform.NewKit(base, config.Modes{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]verdict.Word{}
		cfg := baseline.RunConfig{
			Candidate: "device", Jobs: 1, Memory: 1 << 30, Predict: conform.Predictor,
			Open: func() (backend.Backend, error) { return cand, nil },
			OnRecord: func(r *baseline.Record) {
				out[r.Entry.Function+" "+r.Variant] = r.Verdict.Word
				if own := cand.Info(); !own.ForwardOnly && r.Verdict.Word.IsFinding() && (r.Reference == nil || r.Outcome == nil) {
					t.Errorf("%s %s: a finding without the results that make its bundle", r.Entry.Function, r.Variant)
				}
			},
		}
		kit.Apply(&cfg)
		if err := base.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		return out
	}
	right := words(device{conform.Predictor(), 1})
	for name, want := range map[string]verdict.Word{"tanh ": verdict.Aligned, "tanh backward": verdict.Aligned, "sigmoid ": verdict.Aligned, "sigmoid backward": verdict.Unsupported} {
		if right[name] != want {
			t.Errorf("%s is %s, want %s", name, right[name], want)
		}
	}
	wrong := words(device{conform.Predictor(), 1.01})
	if wrong["tanh "] != verdict.Aligned || wrong["tanh backward"] != verdict.Misaligned {
		t.Errorf("a gradient that is off by 1%%: %v", wrong)
	}
	own := words(conform.Predictor())
	if own["sigmoid backward"] != verdict.Aligned || own["tanh backward"] != verdict.Aligned {
		t.Errorf("a subject that differentiates: %v", own)
	}
	steep := words(steeper{conform.Predictor()})
	if steep["tanh "] != verdict.Aligned || steep["tanh backward"] != verdict.Misaligned {
		t.Errorf("gradients alone are wrong: %v", steep)
	}
}

// steeper has gradients that are 1% too large.
type steeper struct{ backend.Backend }

func (b steeper) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	o, err := b.Backend.Run(ctx, job)
	for i, s := range o.Slots {
		if s.Part.IsGradient() {
			o.Slots[i].Tensor = larger(s.Tensor)
		}
	}
	return o, err
}

// recordNative records a config with native in the reference's place.
func recordNative(t *testing.T, src string) string {
	t.Helper()
	c, err := config.Load("c.py", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "base")
	_, err = baseline.Gen(t.Context(), baseline.GenConfig{
		Dir: dir, Plumb: "test", Config: "c.py", Source: []byte(src), Seed: 1, Jobs: 1, Memory: 1 << 30,
		Cases: conform.Recordable(c, 1, func(string) bool { return true }),
		Open:  func() (backend.Backend, error) { return conform.Predictor(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTolerances: the config's own tolerances stand beside the classes, decide
// alone, or give way to others.
func TestTolerances(t *testing.T) {
	src := strings.Replace(`diopi_configs = {'t': dict(name=['exp'], interface=['torch'], LIMITS dtype=[np.float32],
    tensor_para=dict(args=[dict(ins=['input'], shape=((30, 40),))]))}`, "LIMITS", "atol=1e-1, rtol=1e-1,", 1)
	dir := recordNative(t, src)
	one := func(limits conform.Limits) *verdict.Verdict {
		base, err := conform.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		kit, err := conform.NewKit(base, config.Modes{})
		if err != nil {
			t.Fatal(err)
		}
		kit.Limits = limits
		var got *verdict.Verdict
		cfg := baseline.RunConfig{
			Candidate: "off", Jobs: 1, Memory: 1 << 30, Predict: conform.Predictor,
			Open:     func() (backend.Backend, error) { return off{conform.Predictor()}, nil },
			OnRecord: func(r *baseline.Record) { got = r.Verdict },
		}
		kit.Apply(&cfg)
		if err := base.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if v := one(conform.Limits{}); v.Word != verdict.Misaligned || v.Otherwise != "" {
		t.Errorf("by classes an error of 1%% is %s, otherwise %q", v.Word, v.Otherwise)
	}
	if v := one(conform.Limits{Beside: true}); v.Word != verdict.Misaligned || !strings.Contains(v.Otherwise, "pass it") {
		t.Errorf("beside classes the config says %q of %s", v.Otherwise, v.Word)
	}
	if v := one(conform.Limits{Config: true}); v.Word != verdict.Aligned {
		t.Errorf("by the config an error of 1%% is %s: %s", v.Word, v.Reason)
	}
	loose := 0.5
	if v := one(conform.Limits{RTol: &loose, ATol: &loose}); v.Word != verdict.Aligned {
		t.Errorf("within 50%% an error of 1%% is %s", v.Word)
	}
}

// halfless is native without kernels of float16, and with int64 indices alone.
type halfless struct{ backend.Backend }

func (b halfless) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	for _, in := range job.Program.Inputs {
		if in.DType == tensor.F16 && job.Program.Calls[0].Target != "Tensor.to" {
			return &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: `"exp_vml_cpu" not implemented for 'Half'`}, nil
		}
		if in.DType == tensor.I32 {
			return &backend.Outcome{Status: backend.Raised, Class: "IndexError", Message: "tensors used as indices must be long, byte or bool tensors"}, nil
		}
	}
	return b.Backend.Run(ctx, job)
}

// TestStandIns: what the reference has no kernel for it is asked in wider types;
// a candidate that is wrong there is found, and one that refuses alike is not.
func TestStandIns(t *testing.T) {
	const src = `diopi_configs = {
    'h': dict(name=['exp'], interface=['torch'], is_inplace=True, dtype=[np.float16], tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),))])),
    'g': dict(name=['tanh'], interface=['torch'], dtype=[np.float16], tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),), requires_grad=[True])])),
    's': dict(name=['sum'], interface=['torch'], dtype=[np.float16], tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),))])),
    'u': dict(name=['mean'], interface=['torch'], dtype=[np.float16], atol_half=1e-4, rtol_half=1e-4, tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),), gen_fn=dict(fn='Genfunc.uniform', low=1, high=2))])),
    'i': dict(name=['index'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(ins=['input'], dtype=[np.float32], shape=((4, 5),)),
        dict(ins=['idx1'], dtype=[np.int32], shape=((3,),), gen_fn=dict(fn='Genfunc.randint', low=-4, high=4))]))}`
	c, err := config.Load("c.py", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "base")
	m, err := baseline.Gen(t.Context(), baseline.GenConfig{
		Dir: dir, Plumb: "test", Config: "c.py", Source: []byte(src), Seed: 1, Jobs: 1, Memory: 1 << 30, Truth: conform.Truth(baseline.SmallTruth),
		Cases: conform.Recordable(c, 1, func(string) bool { return true }),
		Open:  func() (backend.Backend, error) { return halfless{conform.Predictor()}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Cases {
		if e := &m.Cases[i]; !e.StandsIn("") {
			t.Errorf("%s was not asked in wider types: %+v", e.Name, e.Refused)
		}
	}
	words := func(cand backend.Backend) map[verdict.Word]int {
		base, err := conform.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		kit, err := conform.NewKit(base, config.Modes{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[verdict.Word]int{}
		cfg := baseline.RunConfig{
			Candidate: "native", Jobs: 1, Memory: 1 << 30, Predict: conform.Predictor,
			Open: func() (backend.Backend, error) { return cand, nil }, OnRecord: func(r *baseline.Record) { out[r.Verdict.Word]++ },
		}
		kit.Apply(&cfg)
		if err := base.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := words(conform.Predictor()); got[verdict.Aligned] != 7 {
		t.Errorf("native: %v, want 7 aligned", got)
	}
	// The sum and the gradient alone are within the config's tolerances of halves, and
	// may have rounded on their way.
	if got := words(off{conform.Predictor()}); got[verdict.Misaligned] != 5 || got[verdict.Known] != 2 {
		t.Errorf("with an error of 1%%: %v", got)
	}
	if got := words(halfless{conform.Predictor()}); got[verdict.Misaligned] > 0 || got[verdict.Aligned] > 0 {
		t.Errorf("one that refuses alike: %v", got)
	}
}

// TestEveryFunctionHasAProgram: every case of the config of all functions, and
// its variants.
func TestEveryFunctionHasAProgram(t *testing.T) {
	src, err := os.ReadFile("testdata/functions.py")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("functions.py", src)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]bool{}
	for _, one := range conform.Recordable(c, 1, func(string) bool { return true }) {
		functions[one.Function] = true
		if _, err := one.Programs(); err != nil {
			t.Error(err)
		}
	}
	if len(functions) != 220 {
		t.Errorf("%d functions, want the 220 of DIOPI's config", len(functions))
	}
}
