package optim

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
)

// phase is a part of a one-cycle schedule: until which step it lasts, and
// between which options of a group it goes.
type phase struct {
	end                        float64
	startLR, endLR             string
	startMomentum, endMomentum string
}

func checkOneCycle(a op.Args) error {
	for _, name := range []op.IntArg{arg.TotalSteps, arg.Epochs, arg.StepsPerEpoch} {
		if a.Has(name) && a.Int(name) <= 0 {
			return op.ValueError("Expected positive integer %s, but got %d", name, a.Int(name))
		}
	}
	if !a.Has(arg.TotalSteps) && (!a.Has(arg.Epochs) || !a.Has(arg.StepsPerEpoch)) {
		if a.Has(arg.Epochs) || a.Has(arg.StepsPerEpoch) {
			return op.TypeError("epochs and steps_per_epoch must both be given")
		}
		return op.ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
	}
	if pct := a.Float(arg.PctStart); pct < 0 || pct > 1 {
		return op.ValueError("Expected float between 0 and 1 pct_start, but got %v", pct)
	}
	if s := a.Str(arg.AnnealStrategy); s != "cos" && s != "linear" {
		return op.ValueError("anneal_strategy must by one of 'cos' or 'linear', instead got %s", s)
	}
	return nil
}

func beginOneCycle(s *Scheduler) error {
	s.orElse(arg.BaseMomentum, 0.85)
	s.orElse(arg.MaxMomentum, 0.95)
	momentum := s.o.defaults.Has("momentum") || s.o.defaults.Has("betas")
	if s.args.Bool(arg.CycleMomentum) && !momentum {
		return op.ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
	}
	if s.LastEpoch != -1 {
		return nil
	}
	for i, g := range s.o.Groups {
		high := s.args.Floats(arg.MaxLR)[i]
		low := high / s.float(arg.DivFactor)
		g.Set("initial_lr", low)
		g.Set("max_lr", high)
		g.Set("min_lr", low/s.float(arg.FinalDivFactor))
		if s.args.Bool(arg.CycleMomentum) {
			g.Set("max_momentum", s.args.Floats(arg.MaxMomentum)[i])
			g.Set("base_momentum", s.args.Floats(arg.BaseMomentum)[i])
			s.setMomentum(g, g.Float("max_momentum"))
		}
	}
	return nil
}

// setMomentum sets a group's momentum or, where it has betas, the first of them.
func (s *Scheduler) setMomentum(g *Group, v float64) {
	if !s.o.defaults.Has("betas") {
		g.Set("momentum", v)
		return
	}
	betas := slices.Clone(g.Floats("betas"))
	betas[0] = v
	g.Set("betas", betas)
}

func (s *Scheduler) totalSteps() int {
	if s.args.Has(arg.TotalSteps) {
		return s.int(arg.TotalSteps)
	}
	return s.int(arg.Epochs) * s.int(arg.StepsPerEpoch)
}

func (s *Scheduler) phases() []phase {
	total, pct := float64(s.totalSteps()), s.float(arg.PctStart)
	up := phase{pct*total - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"}
	if s.args.Bool(arg.ThreePhase) {
		return []phase{up,
			{2*pct*total - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"},
			{total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"}}
	}
	return []phase{up, {total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"}}
}

// phase returns the phase of the present step, and the fraction of it that is over.
func (s *Scheduler) phase() (p phase, pct float64) {
	all, start, step := s.phases(), 0.0, float64(s.LastEpoch)
	i := slices.IndexFunc(all, func(p phase) bool { return step <= p.end })
	if i < 0 {
		i = len(all) - 1
	}
	if i > 0 {
		start = all[i-1].end
	}
	return all[i], (step - start) / (all[i].end - start)
}

func (s *Scheduler) anneal(start, end, pct float64) float64 {
	if s.args.Str(arg.AnnealStrategy) == "linear" {
		return (end-start)*pct + start
	}
	return end + (start-end)/2*(math.Cos(math.Pi*pct)+1)
}

func oneCycleMomentum(s *Scheduler) error {
	if s.LastEpoch > s.totalSteps() {
		return op.ValueError("Tried to step %d times. The specified number of total steps is %d", s.LastEpoch+1, s.totalSteps())
	}
	if !s.args.Bool(arg.CycleMomentum) {
		return nil
	}
	p, pct := s.phase()
	for _, g := range s.o.Groups {
		s.setMomentum(g, s.anneal(g.Float(p.startMomentum), g.Float(p.endMomentum), pct))
	}
	return nil
}
