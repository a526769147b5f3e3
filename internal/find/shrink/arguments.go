package shrink

import (
	"math"
	"slices"

	"plumb/program"
)

// dropArguments leaves out optional arguments: keywords, and positional ones
// from the last.
func (s *search) dropArguments() bool {
	taken := false
	for i := range s.best().Calls {
		for k := len(s.best().Calls[i].Kwargs) - 1; k >= 0; k-- {
			taken = s.edit(func(p *program.Program) {
				p.Calls[i].Kwargs = slices.Delete(p.Calls[i].Kwargs, k, k+1)
				dropUnusedInputs(p)
			}) || taken
		}
		for n := len(s.best().Calls[i].Args) - 1; n > 0; n-- {
			if !s.edit(func(p *program.Program) {
				p.Calls[i].Args = p.Calls[i].Args[:n]
				dropUnusedInputs(p)
			}) {
				break
			}
			taken = true
		}
	}
	return taken
}

func dropUnusedInputs(p *program.Program) {
	p.Inputs = slices.DeleteFunc(p.Inputs, func(in program.Input) bool { return !used(p, in.Name) })
}

// simplifyArguments tries simpler values for every number, flag and list in
// the arguments.
func (s *search) simplifyArguments() bool {
	taken := false
	for i := range s.best().Calls {
		for leaf := 0; leaf < len(leaves(&s.best().Calls[i])) && !s.over(); leaf++ {
			for _, v := range simpler(leaves(&s.best().Calls[i])[leaf].value()) {
				if s.edit(func(p *program.Program) {
					leaves(&p.Calls[i])[leaf].set(v)
					dropUnusedInputs(p)
				}) {
					taken = true
					break
				}
			}
		}
	}
	return taken
}

// leaf is a value within the arguments of a call.
type leaf struct {
	value func() any
	set   func(any)
}

// leaves returns the values of a call's arguments and of the lists in them,
// without the receiver of a method.
func leaves(c *program.Call) []leaf {
	var out []leaf
	var walk func(at *any)
	walk = func(at *any) {
		out = append(out, leaf{func() any { return *at }, func(v any) { *at = v }})
		switch v := (*at).(type) {
		case program.List:
			for i := range v {
				walk(&v[i])
			}
		case program.Tuple:
			for i := range v {
				walk(&v[i])
			}
		case program.Slice:
			for part := range 3 {
				out = append(out, sliceLeaf(at, part))
			}
		}
	}
	for i := range c.Args {
		walk(&c.Args[i])
	}
	for i := range c.Kwargs {
		walk(&c.Kwargs[i].Value)
	}
	return out
}

func sliceLeaf(at *any, part int) leaf {
	field := func(s *program.Slice) *any { return [...]*any{&s.Start, &s.Stop, &s.Step}[part] }
	return leaf{
		func() any { s := (*at).(program.Slice); return *field(&s) },
		func(v any) { s := (*at).(program.Slice); *field(&s) = v; *at = s },
	}
}

// simpler returns values to try in the place of v, the simplest first.
func simpler(v any) []any {
	switch v := v.(type) {
	case bool:
		if v {
			return []any{false}
		}
	case int64:
		return integers(v)
	case float64:
		return []any{0.0, 1.0, math.Round(v), math.Round(v*8) / 8}
	case complex128:
		return []any{complex(1, 0), complex(math.Round(real(v)), math.Round(imag(v)))}
	case program.Ref:
		return []any{nil}
	case program.List:
		return shorter(v, func(vs []any) any { return program.List(vs) })
	case program.Tuple:
		return shorter(v, func(vs []any) any { return program.Tuple(vs) })
	}
	return nil
}

func integers(v int64) []any {
	var out []any
	for _, w := range []int64{0, 1, -1, 2, v / 2, v - sign(v)} {
		if weightOfNumber(float64(w)) < weightOfNumber(float64(v)) && !slices.Contains(out, any(w)) {
			out = append(out, w)
		}
	}
	return out
}

func sign(v int64) int64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// shorter returns the list without each of its elements, and the element of a
// list of equal ones.
func shorter(vs []any, list func([]any) any) []any {
	var out []any
	for i := range vs {
		out = append(out, list(slices.Delete(slices.Clone(vs), i, i+1)))
	}
	if n, ok := first(vs).(int64); ok {
		out = append(out, n)
	}
	return out
}

func first(vs []any) any {
	if len(vs) == 0 {
		return nil
	}
	return vs[0]
}
