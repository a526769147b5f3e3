package backend

import (
	"fmt"
	"slices"

	"plumb/program"
)

// Observe returns the value of a name as it is after the program's last call:
// that of a tensor which calls have changed in place is the changed one. It
// has run run the program, or one that ends in a view of the tensor, or both;
// an outcome other than OK is to be an error of run.
func Observe(p *program.Program, ref program.Ref, run func(*Job) (*Outcome, error)) (Value, error) {
	job := NewJob(p)
	input := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(ref) })
	call := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Result == string(ref) })
	changed := p.ChangesAfter(call)
	switch {
	case input < 0 && call < 0:
		return Value{}, fmt.Errorf("%s is not a value of the program", ref)
	case input >= 0 && !changed:
		return Value{Tensor: job.Inputs[input], RequiresGrad: p.Inputs[input].RequiresGrad}, nil
	case input < 0:
		if v, err := result(job, call, run); err != nil || !changed || v.Tensor == nil {
			return v, err
		}
	}
	job.Program = p.AsNow(ref)
	return result(job, len(p.Calls), run)
}

// result runs a job and returns the result of a call.
func result(job *Job, call int, run func(*Job) (*Outcome, error)) (Value, error) {
	out, err := run(job)
	if err != nil {
		return Value{}, err
	}
	if call >= len(out.Values) {
		return Value{}, fmt.Errorf("%s is not among the values of the program", job.Program.Calls[call].Result)
	}
	return out.Values[call], nil
}
