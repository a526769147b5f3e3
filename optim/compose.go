package optim

import (
	"fmt"
	"slices"

	"plumb/op"
)

// SequentialLR runs schedules one after the other.
type SequentialLR struct {
	// LastEpoch counts the steps from 0.
	LastEpoch int

	parts      []*Scheduler
	milestones []int
	last       []float64
}

// NewSequentialLR makes a schedule whose part i+1 begins at milestone i. Its
// parts have been attached to o. The error is a rejection.
func NewSequentialLR(o *Optimizer, parts []*Scheduler, milestones []int) (*SequentialLR, error) {
	fail := func(format string, args ...any) (*SequentialLR, error) {
		err := op.ValueError(format, args...)
		err.Op = "SequentialLR"
		return nil, err
	}
	for i, p := range parts {
		if p.o != o {
			return fail("Sequential Schedulers expects all schedulers to belong to the same optimizer, but got schedulers at index %d to be different than the optimizer passed in.", i)
		}
	}
	if len(milestones) != len(parts)-1 {
		return fail("Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got number of schedulers %d and the number of milestones to be equal to %d", len(parts), len(milestones))
	}
	for _, g := range o.Groups {
		g.SetLR(g.Float("initial_lr"))
	}
	for _, p := range parts {
		p.LastEpoch--
	}
	s := &SequentialLR{parts: slices.Clone(parts), milestones: slices.Clone(milestones)}
	if err := parts[0].start(); err != nil {
		return nil, err
	}
	s.last = parts[0].LastLR()
	return s, nil
}

// Step goes on by one epoch. A part begins by its closed form where it has one.
func (s *SequentialLR) Step() error {
	s.LastEpoch++
	i := count(s.milestones, func(m int) bool { return m <= s.LastEpoch })
	p := s.parts[i]
	step := p.Step
	if i > 0 && s.milestones[i-1] == s.LastEpoch {
		step = func() error { return p.StepTo(0) }
	}
	if err := step(); err != nil {
		return err
	}
	s.last = p.LastLR()
	return nil
}

// LastLR returns the rates of the groups that the last Step set.
func (s *SequentialLR) LastLR() []float64 { return slices.Clone(s.last) }

// StateDict returns what the schedule has to remember, under PyTorch's names:
// "_milestones", "last_epoch", "_last_lr" and the states of the parts, "_schedulers".
func (s *SequentialLR) StateDict() map[string]any {
	return map[string]any{"_milestones": slices.Clone(s.milestones), "last_epoch": s.LastEpoch, "_last_lr": s.LastLR(), "_schedulers": states(s.parts)}
}

// LoadStateDict restores what StateDict returned. The error names an entry
// that is missing or of another type.
func (s *SequentialLR) LoadStateDict(d map[string]any) error {
	epoch, a := d["last_epoch"].(int)
	milestones, b := d["_milestones"].([]int)
	if !a || !b || len(milestones) != len(s.milestones) {
		return fmt.Errorf("SequentialLR: last_epoch or _milestones is missing or of another type or length")
	}
	last, err := loadStates("SequentialLR", s.parts, d)
	if err != nil {
		return err
	}
	s.LastEpoch, s.milestones, s.last = epoch, slices.Clone(milestones), last
	return nil
}

func states(parts []*Scheduler) []map[string]any {
	var all []map[string]any
	for _, p := range parts {
		all = append(all, p.StateDict())
	}
	return all
}

// loadStates restores parts and returns the last rates.
func loadStates(name string, parts []*Scheduler, d map[string]any) ([]float64, error) {
	saved, a := d["_schedulers"].([]map[string]any)
	last, b := d["_last_lr"].([]float64)
	if !a || !b || len(saved) != len(parts) {
		return nil, fmt.Errorf("%s: _last_lr or _schedulers is missing or of another type or length", name)
	}
	for i, p := range parts {
		if err := p.LoadStateDict(saved[i]); err != nil {
			return nil, err
		}
	}
	return slices.Clone(last), nil
}

// ChainedScheduler steps several schedules of one optimizer at once; each
// starts from the rate that the one before it set.
type ChainedScheduler struct {
	o     *Optimizer
	parts []*Scheduler
	last  []float64
}

// NewChainedScheduler chains schedules of one optimizer. The error is a rejection.
func NewChainedScheduler(parts []*Scheduler) (*ChainedScheduler, error) {
	if len(parts) == 0 {
		return nil, &op.Error{Class: "IndexError", Op: "ChainedScheduler", Msg: "there are no schedulers"}
	}
	for i, p := range parts {
		if p.o != parts[0].o {
			err := op.ValueError("ChainedScheduler expects all schedulers to belong to the same optimizer, but got schedulers at index 0 and %d to be different", i)
			err.Op = "ChainedScheduler"
			return nil, err
		}
	}
	c := &ChainedScheduler{o: parts[0].o, parts: slices.Clone(parts)}
	c.last = rates(c.o)
	return c, nil
}

// Step steps every schedule.
func (c *ChainedScheduler) Step() error {
	for _, p := range c.parts {
		if err := p.Step(); err != nil {
			return err
		}
	}
	c.last = rates(c.o)
	return nil
}

// LastLR returns the rates of the groups that the last Step set.
func (c *ChainedScheduler) LastLR() []float64 { return slices.Clone(c.last) }

// StateDict returns what the schedule has to remember, under PyTorch's names:
// "_last_lr" and the states of the parts, "_schedulers".
func (c *ChainedScheduler) StateDict() map[string]any {
	return map[string]any{"_last_lr": c.LastLR(), "_schedulers": states(c.parts)}
}

// LoadStateDict restores what StateDict returned. The error names an entry
// that is missing or of another type.
func (c *ChainedScheduler) LoadStateDict(d map[string]any) error {
	last, err := loadStates("ChainedScheduler", c.parts, d)
	if err == nil {
		c.last = last
	}
	return err
}

func rates(o *Optimizer) []float64 {
	var lrs []float64
	for _, g := range o.Groups {
		lrs = append(lrs, g.LR())
	}
	return lrs
}
