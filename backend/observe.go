package backend

import (
	"fmt"
	"slices"

	"plumb/program"
)

// Observe returns the values of names as they are after the program's last call:
// that of a tensor which calls have changed in place is the changed one. It
// has run run the program, or one that ends in a view of such a tensor, or both;
// an outcome other than OK is to be an error of run.
func Observe(p *program.Program, refs []program.Ref, run func(*Job) (*Outcome, error)) ([]Value, error) {
	o := observation{job: NewJob(p), run: run}
	o.job.Wanted = []int{}
	for i, c := range p.Calls {
		if slices.Contains(refs, program.Ref(c.Result)) {
			o.job.Wanted = append(o.job.Wanted, i)
		}
	}
	vs := make([]Value, len(refs))
	for i, ref := range refs {
		var err error
		if vs[i], err = o.value(p, ref); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

type observation struct {
	job     *Job
	run     func(*Job) (*Outcome, error)
	outcome *Outcome // of the program; nil until it is needed
}

func (o *observation) value(p *program.Program, ref program.Ref) (v Value, err error) {
	input := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(ref) })
	call := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Result == string(ref) })
	changed := p.ChangesAfter(call) || call >= 0 && p.GathersAfter(call)
	switch {
	case input < 0 && call < 0:
		return Value{}, fmt.Errorf("%s is not a value of the program", ref)
	case input >= 0 && !changed:
		return Value{Tensor: o.job.Inputs[input], RequiresGrad: p.Inputs[input].RequiresGrad}, nil
	case input < 0:
		if o.outcome == nil {
			if o.outcome, err = o.run(o.job); err != nil {
				return Value{}, err
			}
		}
		if v, err := result(o.outcome, p, call); err != nil || !changed || v.Tensor == nil {
			return v, err
		}
	}
	now := *o.job
	now.Program, now.Wanted = p.AsNow(ref), []int{len(p.Calls)}
	out, err := o.run(&now)
	if err != nil {
		return Value{}, err
	}
	return result(out, now.Program, len(p.Calls))
}

// result returns the result of a call.
func result(out *Outcome, p *program.Program, call int) (Value, error) {
	if call >= len(out.Values) {
		return Value{}, fmt.Errorf("%s is not among the values of the program", p.Calls[call].Result)
	}
	return out.Values[call], nil
}
