package optim_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// A scheduleCase steps a schedule of SGD with momentum, or of Adam, over two
// groups. Python makes it from opt and S, torch.optim.lr_scheduler; empty is
// the constructor that name and args are.
type scheduleCase struct {
	name      string
	optimizer string
	python    string
	build     func(o *optim.Optimizer) (stepper, error)
	metrics   []float64
}

// stepper is a schedule whose step may take a metric.
type stepper func(epoch int) error

const scheduleSteps = 30

// ruled is a case of a schedule with a rule.
func ruled(python, name string, kwargs ...op.Kwarg) scheduleCase {
	return scheduleCase{name: python, optimizer: "SGD", python: "S." + python, build: func(o *optim.Optimizer) (stepper, error) {
		s, err := optim.LookupSchedule(name).New(o, nil, append(kwargs, op.Kw("verbose", true))...)
		return func(int) error { return s.Step() }, err
	}}
}

func adam(c scheduleCase) scheduleCase {
	c.optimizer, c.name = "Adam", c.name+" Adam"
	return c
}

func part(o *optim.Optimizer, name string, kwargs ...op.Kwarg) *optim.Scheduler {
	s, err := optim.LookupSchedule(name).New(o, nil, append(kwargs, op.Kw("verbose", true))...)
	if err != nil {
		panic(err)
	}
	return s
}

func composite(python string, build func(o *optim.Optimizer) (optim.Schedule, error)) scheduleCase {
	return scheduleCase{name: python, optimizer: "SGD", python: python, build: func(o *optim.Optimizer) (stepper, error) {
		s, err := build(o)
		return func(int) error { return s.Step() }, err
	}}
}

func plateau(python string, metrics []float64, kwargs ...op.Kwarg) scheduleCase {
	return scheduleCase{name: python, optimizer: "SGD", python: "S." + python, metrics: metrics, build: func(o *optim.Optimizer) (stepper, error) {
		r, err := optim.NewReduceLROnPlateau(o, nil, append(kwargs, op.Kw("verbose", true))...)
		return func(epoch int) error { r.Step(metrics[epoch]); return nil }, err
	}}
}

// metrics improve by fits and starts.
func metrics(sign float64) []float64 {
	out := make([]float64, scheduleSteps)
	for i := range out {
		out[i] = sign * (1 + 1/float64(1+i/9) + 0.05*math.Sin(float64(3*i)))
	}
	return out
}

var scheduleCases = []scheduleCase{
	ruled("LambdaLR(opt, lambda e: 0.95 ** e, verbose=True)", "LambdaLR", kw("lr_lambda", func(e int) float64 { return math.Pow(0.95, float64(e)) })...),
	ruled("LambdaLR(opt, [lambda e: 1 / (1 + e), lambda e: e // 4], verbose=True)", "LambdaLR",
		kw("lr_lambda", []func(int) float64{func(e int) float64 { return 1 / float64(1+e) }, func(e int) float64 { return float64(e / 4) }})...),
	ruled("MultiplicativeLR(opt, lambda e: 1 - 0.5 / e, verbose=True)", "MultiplicativeLR", kw("lr_lambda", func(e int) float64 { return 1 - 0.5/float64(e) })...),
	ruled("StepLR(opt, 7, verbose=True)", "StepLR", kw("step_size", 7)...),
	ruled("StepLR(opt, 3, gamma=0.5, verbose=True)", "StepLR", kw("step_size", 3, "gamma", 0.5)...),
	ruled("MultiStepLR(opt, [4, 9, 9, 20], gamma=0.3, verbose=True)", "MultiStepLR", kw("milestones", []int{4, 9, 9, 20}, "gamma", 0.3)...),
	ruled("ConstantLR(opt, verbose=True)", "ConstantLR"),
	ruled("ConstantLR(opt, 0.25, 11, verbose=True)", "ConstantLR", kw("factor", 0.25, "total_iters", 11)...),
	ruled("LinearLR(opt, verbose=True)", "LinearLR"),
	ruled("LinearLR(opt, 0.9, 0.2, 17, verbose=True)", "LinearLR", kw("start_factor", 0.9, "end_factor", 0.2, "total_iters", 17)...),
	ruled("ExponentialLR(opt, 0.9, verbose=True)", "ExponentialLR", kw("gamma", 0.9)...),
	ruled("PolynomialLR(opt, verbose=True)", "PolynomialLR"),
	ruled("PolynomialLR(opt, 25, 2.5, verbose=True)", "PolynomialLR", kw("total_iters", 25, "power", 2.5)...),
	ruled("CosineAnnealingLR(opt, 10, verbose=True)", "CosineAnnealingLR", kw("T_max", 10)...),
	ruled("CosineAnnealingLR(opt, 7, eta_min=0.01, verbose=True)", "CosineAnnealingLR", kw("T_max", 7, "eta_min", 0.01)...),
	ruled("CosineAnnealingWarmRestarts(opt, 8, verbose=True)", "CosineAnnealingWarmRestarts", kw("T_0", 8)...),
	ruled("CosineAnnealingWarmRestarts(opt, 3, 2, 0.001, verbose=True)", "CosineAnnealingWarmRestarts", kw("T_0", 3, "T_mult", 2, "eta_min", 0.001)...),
	ruled("CyclicLR(opt, 0.01, 0.1, 5, verbose=True)", "CyclicLR", kw("base_lr", 0.01, "max_lr", 0.1, "step_size_up", 5)...),
	ruled("CyclicLR(opt, [0.01, 0.02], [0.1, 0.3], 3, 7, mode='triangular2', verbose=True)", "CyclicLR",
		kw("base_lr", []float64{0.01, 0.02}, "max_lr", []float64{0.1, 0.3}, "step_size_up", 3, "step_size_down", 7, "mode", "triangular2")...),
	ruled("CyclicLR(opt, 0.01, 0.1, 4, mode='exp_range', gamma=0.9, base_momentum=0.5, max_momentum=0.7, verbose=True)", "CyclicLR",
		kw("base_lr", 0.01, "max_lr", 0.1, "step_size_up", 4, "mode", "exp_range", "gamma", 0.9, "base_momentum", 0.5, "max_momentum", 0.7)...),
	ruled("CyclicLR(opt, 0.01, 0.1, 4, scale_fn=lambda x: 1 / x, cycle_momentum=False, verbose=True)", "CyclicLR",
		kw("base_lr", 0.01, "max_lr", 0.1, "step_size_up", 4, "scale_fn", func(x float64) float64 { return 1 / x }, "cycle_momentum", false)...),
	ruled("OneCycleLR(opt, 0.5, total_steps=31, verbose=True)", "OneCycleLR", kw("max_lr", 0.5, "total_steps", 31)...),
	ruled("OneCycleLR(opt, [0.5, 0.1], epochs=5, steps_per_epoch=8, pct_start=0.4, anneal_strategy='linear', div_factor=10, final_div_factor=100, three_phase=True, verbose=True)", "OneCycleLR",
		kw("max_lr", []float64{0.5, 0.1}, "epochs", 5, "steps_per_epoch", 8, "pct_start", 0.4, "anneal_strategy", "linear", "div_factor", 10, "final_div_factor", 100, "three_phase", true)...),
	adam(ruled("OneCycleLR(opt, 0.5, total_steps=40, base_momentum=0.6, verbose=True)", "OneCycleLR", kw("max_lr", 0.5, "total_steps", 40, "base_momentum", 0.6)...)),
	adam(ruled("ExponentialLR(opt, 0.8, verbose=True)", "ExponentialLR", kw("gamma", 0.8)...)),
	composite("S.SequentialLR(opt, [S.ConstantLR(opt, 0.1, 2, verbose=True), S.ExponentialLR(opt, 0.9, verbose=True), S.StepLR(opt, 3, verbose=True)], [5, 12])", func(o *optim.Optimizer) (optim.Schedule, error) {
		parts := []*optim.Scheduler{part(o, "ConstantLR", kw("factor", 0.1, "total_iters", 2)...), part(o, "ExponentialLR", kw("gamma", 0.9)...), part(o, "StepLR", kw("step_size", 3)...)}
		return optim.NewSequentialLR(o, parts, []int{5, 12})
	}),
	composite("S.SequentialLR(opt, [S.LinearLR(opt, 0.1, verbose=True), S.CosineAnnealingLR(opt, 9, verbose=True), S.CosineAnnealingWarmRestarts(opt, 4, verbose=True), S.LambdaLR(opt, lambda e: 0.5 ** e, verbose=True)], [5, 12, 20])", func(o *optim.Optimizer) (optim.Schedule, error) {
		parts := []*optim.Scheduler{part(o, "LinearLR", kw("start_factor", 0.1)...), part(o, "CosineAnnealingLR", kw("T_max", 9)...), part(o, "CosineAnnealingWarmRestarts", kw("T_0", 4)...),
			part(o, "LambdaLR", kw("lr_lambda", func(e int) float64 { return math.Pow(0.5, float64(e)) })...)}
		return optim.NewSequentialLR(o, parts, []int{5, 12, 20})
	}),
	composite("S.ChainedScheduler([S.ConstantLR(opt, 0.1, 2, verbose=True), S.ExponentialLR(opt, 0.9, verbose=True), S.MultiStepLR(opt, [6, 8], verbose=True)])", func(o *optim.Optimizer) (optim.Schedule, error) {
		return optim.NewChainedScheduler([]*optim.Scheduler{part(o, "ConstantLR", kw("factor", 0.1, "total_iters", 2)...), part(o, "ExponentialLR", kw("gamma", 0.9)...), part(o, "MultiStepLR", kw("milestones", []int{6, 8})...)})
	}),
	plateau("ReduceLROnPlateau(opt, patience=2, verbose=True)", metrics(1), kw("patience", 2)...),
	plateau("ReduceLROnPlateau(opt, 'max', 0.5, 1, 0.01, 'abs', 2, [0.03, 0.01], verbose=True)", metrics(-1),
		kw("mode", "max", "factor", 0.5, "patience", 1, "threshold", 0.01, "threshold_mode", "abs", "cooldown", 2, "min_lr", []float64{0.03, 0.01})...),
	// last_epoch
	{name: "resumed", optimizer: "SGD", python: "[g.__setitem__('initial_lr', 0.4) for g in opt.param_groups] and S.CosineAnnealingLR(opt, 12, last_epoch=5, verbose=True)",
		build: func(o *optim.Optimizer) (stepper, error) {
			for _, g := range o.Groups {
				g.Set("initial_lr", 0.4)
			}
			s, err := optim.LookupSchedule("CosineAnnealingLR").New(o, nil, kw("T_max", 12, "last_epoch", 5, "verbose", true)...)
			return func(int) error { return s.Step() }, err
		}},
}

func (c scheduleCase) request() scheduleRequest {
	return scheduleRequest{Optimizer: c.optimizer, Options: scheduleOptions(c.optimizer), Python: c.python, Steps: scheduleSteps, Metrics: c.metrics}
}

func scheduleOptions(optimizer string) map[string]any {
	if optimizer == "SGD" {
		return map[string]any{"momentum": 0.9}
	}
	return map[string]any{}
}

// scheduled is an optimizer of two groups without gradients.
func scheduled(t *testing.T, optimizer string) *optim.Optimizer {
	t.Helper()
	var groups []optim.GroupSpec
	for i, lr := range []float64{0.1, 0.02} {
		p := &optim.Param{Name: string(rune('a' + i)), Value: tensor.New(tensor.F32, 1)}
		groups = append(groups, optim.GroupSpec{Params: []*optim.Param{p}, Options: kw("lr", lr)})
	}
	var kwargs []op.Kwarg
	for name, v := range scheduleOptions(optimizer) {
		kwargs = append(kwargs, op.Kw(name, v))
	}
	o, err := optim.Lookup(optimizer).NewGroups(groups, nil, kwargs...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// run returns rate and momentum of each group after each step, and the text.
func (c scheduleCase) run(t *testing.T) (rates []float64, text string) {
	t.Helper()
	var out bytes.Buffer
	o := scheduled(t, c.optimizer)
	o.Output = &out
	step, err := c.build(o)
	if err != nil {
		t.Fatal(err)
	}
	note := func() {
		for _, g := range o.Groups {
			momentum := g.Float("momentum")
			if betas := g.Floats("betas"); betas != nil {
				momentum = betas[0]
			}
			rates = append(rates, g.LR(), momentum)
		}
	}
	note()
	for i := range scheduleSteps {
		if err := o.Step(eager.New(ops.Table()).Builder()); err != nil {
			t.Fatal(err)
		}
		if err := step(i); err != nil {
			t.Fatal(err)
		}
		note()
	}
	return rates, out.String()
}

// rateLimit is by how much a rate may differ, as a part of the largest of its
// schedule: PyTorch's rates follow from one another, so that what cos and pow
// are off in the last place adds up, once a step, and where the cosine is near
// -1 its chainable form divides by a difference.
const rateLimit = 4 * scheduleSteps * 0x1p-53

func TestSchedulesAlignWithPyTorch(t *testing.T) {
	r := request{Schedules: map[string]scheduleRequest{}}
	for _, c := range scheduleCases {
		r.Schedules[c.name] = c.request()
	}
	want, live := reference(t, r)
	for _, c := range scheduleCases {
		t.Run(c.name, func(t *testing.T) {
			ref := want.Schedules[c.name]
			rates, text := c.run(t)
			if len(rates) != len(ref.Rates) {
				t.Fatalf("%d rates, PyTorch has %d", len(rates), len(ref.Rates))
			}
			scale := 0.0
			for _, v := range ref.Rates {
				scale = max(scale, math.Abs(v))
			}
			for i, v := range ref.Rates {
				if !(math.Abs(rates[i]-v) <= rateLimit*scale) {
					t.Fatalf("step %d, group %d: %v, PyTorch has %v", i/4, i%4/2, rates[i], v)
				}
			}
			if text != ref.Text && (live || ref.Text != "") && strings.HasPrefix(want.Version, "1.") {
				t.Errorf("it prints\n%s\nPyTorch\n%s", text, ref.Text)
			}
		})
	}
	if *record {
		writeRecorded(t, func(out *reply) { out.Version, out.Schedules = want.Version, want.Schedules })
	}
}

func TestCosineDecayFollowsOneFlow(t *testing.T) {
	o := scheduled(t, "SGD")
	s, err := optim.LookupSchedule("CosineDecayLR").New(o, []any{4, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	half := 0.5 * math.Sqrt2
	for epoch, cosine := range []float64{1, half, 0, -half, -1, -1} {
		want := 0.1 * (0.9*(1+cosine)/2 + 0.1)
		if got := s.LastLR()[0]; math.Abs(got-want) > 1e-15 {
			t.Errorf("epoch %d: %v, want %v", epoch, got, want)
		}
		if err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSchedulesContinueFromTheirState(t *testing.T) {
	for _, c := range []struct {
		name   string
		kwargs []op.Kwarg
	}{
		{"CosineAnnealingWarmRestarts", kw("T_0", 3, "T_mult", 2)},
		{"CosineAnnealingLR", kw("T_max", 7)},
		{"OneCycleLR", kw("max_lr", 0.5, "total_steps", 40)},
	} {
		o, again := scheduled(t, "SGD"), scheduled(t, "SGD")
		o.Output, again.Output = io.Discard, io.Discard
		s, fresh := part(o, c.name, c.kwargs...), part(again, c.name, c.kwargs...)
		for range 11 {
			if err := s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := fresh.LoadStateDict(s.StateDict()); err != nil {
			t.Fatal(err)
		}
		if err := again.LoadStateDict(o.StateDict()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := errors.Join(s.Step(), fresh.Step()); err != nil {
				t.Fatal(err)
			}
			if a, b := s.LastLR()[1], fresh.LastLR()[1]; a != b {
				t.Errorf("%s: %v after loading, want %v", c.name, b, a)
			}
		}
	}
}

func TestSchedulesReject(t *testing.T) {
	for _, c := range []struct {
		name, class string
		kwargs      []op.Kwarg
	}{
		{"StepLR", "TypeError", nil},
		{"StepLR", "KeyError", kw("step_size", 3, "last_epoch", 4)},
		{"LambdaLR", "TypeError", nil},
		{"LambdaLR", "ValueError", kw("lr_lambda", []func(int) float64{nil})},
		{"ConstantLR", "ValueError", kw("factor", 1.5)},
		{"LinearLR", "ValueError", kw("end_factor", -0.5)},
		{"CosineAnnealingWarmRestarts", "ValueError", kw("T_0", 0)},
		{"CyclicLR", "ValueError", kw("base_lr", 0.1, "max_lr", 0.2, "mode", "round")},
		{"CyclicLR", "ValueError", kw("base_lr", []float64{0.1}, "max_lr", 0.2)},
		{"OneCycleLR", "ValueError", kw("max_lr", 0.1)},
		{"OneCycleLR", "ValueError", kw("max_lr", 0.1, "total_steps", 9, "anneal_strategy", "poly")},
	} {
		_, err := optim.LookupSchedule(c.name).New(scheduled(t, "SGD"), nil, c.kwargs...)
		var e *op.Error
		if !errors.As(err, &e) || e.Class != c.class || e.Op != c.name {
			t.Errorf("%s%v: error %v, want a %s", c.name, c.kwargs, err, c.class)
		}
	}
	o := scheduled(t, "Adadelta")
	if _, err := optim.LookupSchedule("OneCycleLR").New(o, nil, kw("max_lr", 0.1, "total_steps", 9)...); err == nil {
		t.Error("cycle_momentum without momentum: no error")
	}
}

// TestComposedSchedulesGoOn saves composed schedules in the middle and goes on
// from there with fresh ones.
func TestComposedSchedulesGoOn(t *testing.T) {
	type remembering interface {
		optim.Schedule
		StateDict() map[string]any
		LoadStateDict(map[string]any) error
	}
	parts := func(o *optim.Optimizer) []*optim.Scheduler {
		return []*optim.Scheduler{part(o, "LinearLR", kw("total_iters", 3)...), part(o, "ExponentialLR", kw("gamma", 0.5)...)}
	}
	for name, build := range map[string]func(o *optim.Optimizer) (remembering, error){
		"SequentialLR":     func(o *optim.Optimizer) (remembering, error) { return optim.NewSequentialLR(o, parts(o), []int{4}) },
		"ChainedScheduler": func(o *optim.Optimizer) (remembering, error) { return optim.NewChainedScheduler(parts(o)) },
	} {
		start := func() (*optim.Optimizer, remembering) {
			o := scheduled(t, "SGD")
			o.Output = io.Discard
			s, err := build(o)
			if err != nil {
				t.Fatal(err)
			}
			return o, s
		}
		o, s := start()
		step := func(s optim.Schedule) {
			if err := s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			step(s)
		}
		other, again := start()
		if err := other.LoadStateDict(o.StateDict()); err != nil {
			t.Fatal(err)
		}
		if err := again.LoadStateDict(s.StateDict()); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			step(s)
			step(again)
			if a, b := o.Groups[0].LR(), other.Groups[0].LR(); a != b || a != again.LastLR()[0] {
				t.Errorf("%s: after %d steps the rates are %v and %v", name, i+4, a, b)
			}
		}
		broken := s.StateDict()
		delete(broken, "_schedulers")
		if err := again.LoadStateDict(broken); err == nil || !strings.Contains(err.Error(), name+": _last_lr or _schedulers is missing") {
			t.Errorf("%s: a state without parts: %v", name, err)
		}
	}
}
