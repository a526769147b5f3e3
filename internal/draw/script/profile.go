package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/internal/draw/choice"
	"plumb/program"
)

// profiled is what @profile(op) gives: the target of the calls to measure.
type profiled string

func (profiled) String() string        { return "profile" }
func (profiled) Type() string          { return "decorator" }
func (profiled) Freeze()               {}
func (profiled) Truth() starlark.Bool  { return true }
func (profiled) Hash() (uint32, error) { return 0, nil }

// skipProfile is why plumb run skips a profile.
const skipProfile = "@profile measures and compares nothing: plumb profile runs it"

// makeProfile takes an operator such as torch.relu or torch.Tensor.add_. What
// is none is a name that no call has.
func makeProfile(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	target := "nothing"
	if v := a.get("op"); v != nil {
		target = str(v)
	}
	if p, ok := asPath(a.get("op")).(path); ok {
		target = string(p)
	}
	if method, ok := strings.CutPrefix(target, "torch.Tensor."); ok {
		target = "Tensor." + method
	}
	return profiled(target), nil
}

// Profiles returns the functions with @profile in the order of the file.
func (f *File) Profiles() []*Test {
	return slices.DeleteFunc(slices.Clone(f.tests), func(t *Test) bool { return t.Profile == "" })
}

// Profiled is a call of a program that a profile measures.
type Profiled struct {
	Call        int
	Description string // the argument profile_description; empty without it
}

// described takes AutoTest's description out of a call's arguments.
func (d *draw) described(kwargs []starlark.Tuple) []starlark.Tuple {
	i := slices.IndexFunc(kwargs, func(kw starlark.Tuple) bool { return kw[0] == starlark.String("profile_description") })
	if i < 0 {
		return kwargs
	}
	if d.labels == nil {
		d.labels = map[int]string{}
	}
	d.labels[len(d.prog.Calls)] = str(kwargs[i][1])
	return slices.Delete(slices.Clone(kwargs), i, i+1)
}

// DrawProfile runs a function with @profile once, and returns its program and
// the calls of the operator that it names.
func (t *Test) DrawProfile(src *choice.Source, env Env) (*program.Program, []Profiled, error) {
	d := newDraw(t, src, env)
	d.prog.Seed = src.Key()
	if _, err := d.run(); err != nil || d.fault != nil {
		if d.fault != nil {
			return nil, nil, d.fault
		}
		return nil, nil, t.file.located(err)
	}
	made := map[program.Ref]string{}
	var out []Profiled
	for i := range d.prog.Calls {
		c := &d.prog.Calls[i]
		made[program.Ref(c.Result)] = c.Target
		of := c.Target
		if of == "Module.__call__" {
			module, _ := c.Args[0].(program.Ref)
			of = made[module]
		}
		if of == t.Profile && (c.Target != of || !program.IsModule(of)) {
			out = append(out, Profiled{i, d.labels[i]})
		}
	}
	if len(out) == 0 {
		return nil, nil, t.file.located(&positioned{point{int32(t.Line), 1}, fmt.Errorf("%s never calls %s, which @profile names", shortName(t.head), t.Profile)})
	}
	return d.prog, out, nil
}
