package optim

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"plumb/internal/arg"
	"plumb/op"
)

// Schedule changes the learning rates of an optimizer, once a Step.
type Schedule interface {
	// Step goes on by one epoch.
	Step() error
	// LastLR returns the rates of the groups that the last Step set.
	LastLR() []float64
}

// ScheduleDef is one kind of schedule.
type ScheduleDef struct {
	// Name is the name in torch.optim.lr_scheduler, or in oneflow.optim.lr_scheduler.
	Name string
	// Sig lists the parameters after the optimizer, in schema notation. Functions,
	// lr_lambda and scale_fn, are no part of it.
	Sig string
	// Doc is the formula: the rate of an epoch, from the one before it where
	// PyTorch's "chainable form" is such, else from the initial one.
	Doc string

	function string         // the parameter that is a function
	lists    []op.FloatsArg // parameters that have one number or one for each group
	check    func(a op.Args) error
	begin    func(s *Scheduler) error
	rate     func(s *Scheduler, group int) float64
	closed   func(s *Scheduler, group int) float64 // the rate from the initial one
	advance  func(s *Scheduler, epoch float64, given bool) (float64, error)
	extra    func(s *Scheduler) error // what changes beside the rate

	sig *op.Sig
}

// Scheduler is a schedule with a rule for each group's rate.
type Scheduler struct {
	Def *ScheduleDef
	// LastEpoch counts the steps from 0.
	LastEpoch int

	o       *Optimizer
	args    op.Args
	lambdas []func(epoch int) float64
	scale   func(x float64) float64
	base    []float64 // initial rates
	vars    map[string]float64
	steps   int
	verbose bool
	last    []float64
}

// LookupSchedule returns the schedule of a name, such as "StepLR"; nil when
// there is none.
func LookupSchedule(name string) *ScheduleDef {
	for _, d := range AllSchedules() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// AllSchedules returns the schedules that change each group's rate by a rule.
// SequentialLR, ChainedScheduler and ReduceLROnPlateau are types of their own.
var AllSchedules = sync.OnceValue(func() []*ScheduleDef {
	for _, d := range scheduleDefs {
		d.sig = op.MustParseSig(d.Sig)
	}
	return scheduleDefs
})

// New attaches a schedule to an optimizer and sets the rates of its first
// epoch. Args and kwargs are those of PyTorch after the optimizer; lr_lambda is
// a func(int) float64 or a list of them, one for each group, and scale_fn a
// func(float64) float64, by keyword. The error is a rejection (*op.Error).
func (d *ScheduleDef) New(o *Optimizer, args []any, kwargs ...op.Kwarg) (s *Scheduler, err error) {
	defer func() { named(&err, d.Name) }()
	s = &Scheduler{Def: d, o: o, vars: map[string]float64{}}
	if kwargs, err = s.functions(kwargs); err != nil {
		return nil, err
	}
	if s.args, err = d.bind(o, args, kwargs); err != nil {
		return nil, err
	}
	if d.check != nil {
		if err := d.check(s.args); err != nil {
			return nil, err
		}
	}
	s.LastEpoch, s.verbose = s.args.Int(arg.LastEpoch), s.args.Bool(arg.Verbose)
	if d.begin != nil {
		if err := d.begin(s); err != nil {
			return nil, err
		}
	}
	if err := s.initialRates(); err != nil {
		return nil, err
	}
	return s, s.start()
}

// bind binds the arguments; a number stands for one for each group where the
// parameter is a list of such.
func (d *ScheduleDef) bind(o *Optimizer, args []any, kwargs []op.Kwarg) (op.Args, error) {
	args, kwargs = slices.Clone(args), slices.Clone(kwargs)
	for i := range args {
		if i < len(d.sig.Params) {
			args[i] = d.spread(o, d.sig.Params[i].Name, args[i])
		}
	}
	for i, kw := range kwargs {
		kwargs[i].Value = d.spread(o, kw.Name, kw.Value)
	}
	a, err := d.sig.Bind(args, kwargs, false)
	if err != nil {
		return a, err
	}
	for _, name := range d.lists {
		if n := len(a.Floats(name)); a.Has(name) && n != len(o.Groups) {
			return a, op.ValueError("expected %d values for %s, got %d", len(o.Groups), name, n)
		}
	}
	return a, nil
}

func (d *ScheduleDef) spread(o *Optimizer, name string, v any) any {
	if !slices.Contains(d.lists, op.FloatsArg(name)) {
		return v
	}
	switch x := v.(type) {
	case float64:
		return slices.Repeat([]float64{x}, len(o.Groups))
	case int:
		return slices.Repeat([]float64{float64(x)}, len(o.Groups))
	case int64:
		return slices.Repeat([]float64{float64(x)}, len(o.Groups))
	}
	return v
}

// functions takes the function among the arguments out of them.
func (s *Scheduler) functions(kwargs []op.Kwarg) ([]op.Kwarg, error) {
	var rest []op.Kwarg
	for _, kw := range kwargs {
		if kw.Name != s.Def.function {
			rest = append(rest, kw)
			continue
		}
		switch f := kw.Value.(type) {
		case nil:
		case func(int) float64:
			s.lambdas = slices.Repeat([]func(int) float64{f}, len(s.o.Groups))
		case []func(int) float64:
			if len(f) != len(s.o.Groups) {
				return nil, op.ValueError("Expected %d lr_lambdas, but got %d", len(s.o.Groups), len(f))
			}
			s.lambdas = f
		case func(float64) float64:
			s.scale = f
		default:
			return nil, op.TypeError("argument '%s' must be a function, not %s", kw.Name, op.TypeName(kw.Value))
		}
	}
	if s.Def.function == "lr_lambda" && s.lambdas == nil {
		return nil, op.TypeError("missing required argument: 'lr_lambda' (a function of int, or a list of them)")
	}
	return rest, nil
}

// initialRates notes or finds the rates on which the schedule is based.
func (s *Scheduler) initialRates() error {
	for i, g := range s.o.Groups {
		switch {
		case g.Has("initial_lr"):
		case s.LastEpoch == -1:
			g.Set("initial_lr", g.LR())
		default:
			return &op.Error{Class: "KeyError", Msg: fmt.Sprintf("param 'initial_lr' is not specified in param_groups[%d] when resuming an optimizer", i)}
		}
		s.base = append(s.base, g.Float("initial_lr"))
	}
	return nil
}

// start takes the first step, to the epoch after the last.
func (s *Scheduler) start() error {
	s.o.steps, s.steps = 0, 0
	return s.Step()
}

// Step goes on by one epoch. The error is a rejection.
func (s *Scheduler) Step() error { return s.step(0, false) }

// StepTo goes to an epoch, by the closed form of the schedule where it has one.
// Only CosineAnnealingWarmRestarts takes fractions of epochs.
func (s *Scheduler) StepTo(epoch float64) error { return s.step(epoch, true) }

func (s *Scheduler) step(epoch float64, given bool) (err error) {
	defer func() { named(&err, s.Def.Name) }()
	s.steps++
	rate := s.Def.rate
	switch {
	case s.Def.advance != nil:
		if epoch, err = s.Def.advance(s, epoch, given); err != nil {
			return err
		}
		given = true
	case given:
		s.LastEpoch = int(epoch)
		if s.Def.closed != nil {
			rate = s.Def.closed
		}
	default:
		s.LastEpoch++
	}
	if s.Def.extra != nil {
		if err := s.Def.extra(s); err != nil {
			return err
		}
	}
	rates := make([]float64, len(s.base))
	for i := range rates {
		rates[i] = rate(s, i)
	}
	s.last = nil
	for i, g := range s.o.Groups[:len(rates)] {
		g.SetLR(rates[i])
		s.print(i, rates[i], epoch, given)
		s.last = append(s.last, rates[i])
	}
	return nil
}

// print writes what PyTorch 1.13 prints for a verbose schedule.
func (s *Scheduler) print(group int, lr, epoch float64, given bool) {
	switch {
	case !s.verbose:
	case given:
		s.o.printf("Epoch %s: adjusting learning rate of group %d to %.4e.\n", epochText(epoch), group, lr)
	default:
		s.o.printf("Adjusting learning rate of group %d to %.4e.\n", group, lr)
	}
}

func epochText(epoch float64) string {
	if epoch == float64(int(epoch)) {
		return fmt.Sprintf("%05d", int(epoch))
	}
	return fmt.Sprintf("%.2f", epoch)
}

// LastLR returns the rates of the groups that the last Step set.
func (s *Scheduler) LastLR() []float64 { return slices.Clone(s.last) }

// lr is the present rate of a group.
func (s *Scheduler) lr(group int) float64 { return s.o.Groups[group].LR() }

func (s *Scheduler) float(name op.FloatArg) float64 { return s.args.Float(name) }

func (s *Scheduler) int(name op.IntArg) int { return s.args.Int(name) }

// StateDict returns what the schedule has to remember, under PyTorch's names:
// its options, "last_epoch", "_step_count", "_last_lr", "base_lrs" and its own variables.
func (s *Scheduler) StateDict() map[string]any {
	d := map[string]any{"last_epoch": s.LastEpoch, "_step_count": s.steps, "_last_lr": s.LastLR(), "base_lrs": slices.Clone(s.base)}
	for i, p := range s.args.Sig.Params {
		if p.Name != "last_epoch" {
			d[p.Name] = s.args.Vals[i]
		}
	}
	for name, v := range s.vars {
		d[name] = v
	}
	return d
}

// LoadStateDict restores what StateDict returned. The error names an entry
// that is missing or of another type.
func (s *Scheduler) LoadStateDict(d map[string]any) error {
	fresh := *s
	fresh.args = op.Args{Sig: s.args.Sig, Vals: slices.Clone(s.args.Vals)}
	fresh.vars = maps.Clone(s.vars)
	for i, p := range s.args.Sig.Params {
		if v, ok := d[p.Name]; ok && p.Name != "last_epoch" {
			fresh.args.Vals[i] = v
		}
	}
	for name := range s.vars {
		v, ok := d[name].(float64)
		if !ok {
			return fmt.Errorf("%s: state %q is %v, not a number", s.Def.Name, name, d[name])
		}
		fresh.vars[name] = v
	}
	var a, b, c, e bool
	fresh.LastEpoch, a = d["last_epoch"].(int)
	fresh.steps, b = d["_step_count"].(int)
	fresh.last, c = d["_last_lr"].([]float64)
	fresh.base, e = d["base_lrs"].([]float64)
	if !a || !b || !c || !e || len(fresh.base) != len(s.base) {
		return fmt.Errorf("%s: last_epoch, _step_count, _last_lr or base_lrs is missing or of another type", s.Def.Name)
	}
	*s = fresh
	return nil
}
