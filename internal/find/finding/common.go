package finding

import (
	"fmt"
	"slices"
	"strings"

	"plumb/program"
	"plumb/tensor"
)

// fewest is how many cases of either kind a predicate has to tell apart.
const fewest = 3

// Common returns a simple predicate, or the conjunction of two, that holds for
// all failing programs and for no passing one; "" when there is none, or when
// too few programs are there to tell.
func Common(failing, passing []*program.Program) string {
	if len(failing) < fewest || len(passing) < fewest {
		return ""
	}
	shared := features(failing[0])
	for _, p := range failing[1:] {
		have := features(p)
		shared = slices.DeleteFunc(shared, func(f string) bool { return !slices.Contains(have, f) })
	}
	against := make([][]string, len(passing))
	for i, p := range passing {
		against[i] = features(p)
	}
	tells := func(fs ...string) bool {
		return !slices.ContainsFunc(against, func(have []string) bool {
			return !slices.ContainsFunc(fs, func(f string) bool { return !slices.Contains(have, f) })
		})
	}
	for _, f := range shared {
		if tells(f) {
			return f
		}
	}
	for i, f := range shared {
		for _, g := range shared[:i] {
			if tells(g, f) {
				return g + ", " + f
			}
		}
	}
	return ""
}

// features returns what is said of a program, the plainest first.
func features(p *program.Program) []string {
	var out []string
	add := func(format string, args ...any) {
		if f := fmt.Sprintf(format, args...); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	for i := range p.Inputs {
		inputFeatures(&p.Inputs[i], "an input", add)
	}
	for i := range p.Inputs {
		inputFeatures(&p.Inputs[i], p.Inputs[i].Name, add)
	}
	for i := range p.Calls {
		callFeatures(&p.Calls[i], add)
	}
	return out
}

func inputFeatures(in *program.Input, name string, add func(string, ...any)) {
	add("%s is %s", name, in.DType)
	add("%s has rank %d", name, len(in.Shape))
	n := tensor.NumElements(in.Shape)
	switch {
	case in.Strides == nil || tensor.Contiguous.Matches(in.Shape, in.Strides):
	case tensor.ChannelsLast.Matches(in.Shape, in.Strides):
		add("%s is channels_last", name)
	default:
		add("%s is non-contiguous", name)
	}
	if in.Strides != nil && n > 1 && slices.Contains(in.Strides, 0) {
		add("%s is expanded", name)
	}
	switch {
	case n == 0:
		add("%s is empty", name)
	case n == 1:
		add("%s has one element", name)
	default:
		add("%s has several elements", name)
	}
	if rank := len(in.Shape); rank > 0 {
		dimFeatures(in.Shape[rank-1], "the last dimension of "+name, add)
		dimFeatures(in.Shape[0], "the first dimension of "+name, add)
		if rank > 1 {
			dimFeatures(in.Shape[1], "dimension 1 of "+name, add)
		}
	}
	if in.RequiresGrad {
		add("%s requires a gradient", name)
	}
	if in.Fill.Kinks {
		add("%s holds exact zeros", name)
	}
}

func dimFeatures(d int, name string, add func(string, ...any)) {
	switch {
	case d == 1:
		add("%s is 1", name)
	case d > 1:
		add("%s is above 1", name)
	}
	if d%2 == 1 {
		add("%s is odd", name)
	} else {
		add("%s is even", name)
	}
	if d >= 8 {
		add("%s is 8 or more", name)
	}
}

func callFeatures(c *program.Call, add func(string, ...any)) {
	name := c.Target[strings.LastIndexByte(c.Target, '.')+1:]
	add("it calls %s", name)
	for i, a := range c.Args {
		valueFeatures(a, fmt.Sprintf("argument %d of %s", i+1, name), add)
	}
	for _, kw := range c.Kwargs {
		add("%s is given to %s", kw.Name, name)
		valueFeatures(kw.Value, fmt.Sprintf("%s of %s", kw.Name, name), add)
	}
}

func valueFeatures(v any, name string, add func(string, ...any)) {
	switch v := v.(type) {
	case nil, bool, string:
		add("%s is %s", name, program.FormatArg(v))
	case int64:
		numberFeatures(float64(v), name, add)
	case float64:
		numberFeatures(v, name, add)
	case program.Tuple:
		for _, e := range v {
			valueFeatures(e, name, add)
		}
	}
}

func numberFeatures(v float64, name string, add func(string, ...any)) {
	switch {
	case v < 0:
		add("%s is negative", name)
	case v == 0:
		add("%s is 0", name)
	case v == 1:
		add("%s is 1", name)
	case v > 1:
		add("%s is above 1", name)
	}
	if v != 0 {
		add("%s is not 0", name)
	}
}
