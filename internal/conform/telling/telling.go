// Package telling finds what a conformance case could not tell from something
// else: an attribute from another value of it, an operator from a constant or
// from doing nothing. A fault that hides there passes.
package telling

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/conform/diopi"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Neighbour is a case with one attribute changed.
type Neighbour struct {
	Arg string
	// Kind says how the value was changed, the same for each value of the kind:
	// default, other, one more, …
	Kind    string
	From    any
	To      any
	Program *program.Program
}

// String is "dilation: (2, 2) as (1, 1)".
func (n *Neighbour) String() string {
	return fmt.Sprintf("%s=%s from %s", n.Arg, program.FormatArg(n.From), program.FormatArg(n.To))
}

// Teller runs cases and their neighbours on a backend.
type Teller struct {
	Backend backend.Backend
	// Defaults are those of a public name's parameters, by name.
	Defaults func(target string) map[string]any
}

// Run runs a program.
func (t *Teller) Run(ctx context.Context, p *program.Program) (*backend.Outcome, error) {
	return t.Backend.Run(ctx, backend.NewJob(p))
}

// Neighbours returns the case with one attribute changed at a time. A program is
// that of a case: its arguments stand in the first call that is made with them.
func (t *Teller) Neighbours(p *program.Program) []Neighbour {
	var out []Neighbour
	for i := range p.Calls {
		c := &p.Calls[i]
		defaults := t.Defaults(c.Target)
		for k, kw := range c.Kwargs {
			if isTensor(kw.Value) {
				continue
			}
			for _, v := range variations(kw.Value, defaults[kw.Name]) {
				changed := p.Clone()
				changed.Calls[i].Kwargs[k].Value = v.to
				out = append(out, Neighbour{kw.Name, v.kind, kw.Value, v.to, changed})
			}
		}
	}
	return out
}

func isTensor(v any) bool {
	found := false
	program.Refs(v, func(program.Ref) { found = true })
	return found
}

// Confusions are the kinds of neighbours that a function is likely to take for
// the value that it is given: of the others one case need not tell all.
var Confusions = []string{byItself, reversed}

const (
	byItself = "its default"
	reversed = "in reverse"
)

type variation struct {
	kind string
	to   any
}

// variations are the values beside one, each once.
func variations(v, byDefault any) []variation {
	all := []variation{{byItself, byDefault}}
	add := func(kind string, to any) { all = append(all, variation{kind, to}) }
	switch v := v.(type) {
	case bool:
		add("its contrary", !v)
	case int64:
		add("naught", int64(0))
		add("the last", int64(-1))
		add("one more", v+1)
		add("one less", v-1)
	case float64:
		add("none", 0.0)
		add("twice as much", 2*v+0.5)
	case program.Tuple:
		sequences(v, func(kind string, s []any) { add(kind, program.Tuple(s)) })
	case program.List:
		sequences(v, func(kind string, s []any) { add(kind, program.List(s)) })
	}
	seen := []string{meaning(v)}
	return slices.DeleteFunc(all, func(one variation) bool {
		text := meaning(one.to)
		if one.to == nil && byDefault == nil || slices.Contains(seen, text) {
			return true
		}
		seen = append(seen, text)
		return false
	})
}

// meaning is one text for all forms of a value: of a number those of Python that are equal
// to it, and of one number for all dimensions it alone.
func meaning(v any) string {
	switch x := v.(type) {
	case bool:
		if x {
			return "1"
		}
		return "0"
	case int64:
		return fmt.Sprint(x)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 && !(x == 0 && math.Signbit(x)) {
			return fmt.Sprint(int64(x))
		}
	case program.Tuple:
		return elements(x)
	case program.List:
		return elements(x)
	}
	return program.FormatArg(v)
}

func elements(of []any) string {
	var texts []string
	for _, x := range of {
		texts = append(texts, meaning(x))
	}
	if len(of) > 0 && len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0]
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// sequences are the neighbours of a sequence of integers.
func sequences(v []any, add func(kind string, s []any)) {
	if len(v) == 0 || slices.ContainsFunc(v, func(x any) bool { _, ok := x.(int64); return !ok }) {
		return
	}
	back := slices.Clone(v)
	slices.Reverse(back)
	add(reversed, back)
	add("all like the first", slices.Repeat(v[:1], len(v)))
	for i := range v {
		more, less := slices.Clone(v), slices.Clone(v)
		more[i], less[i] = v[i].(int64)+1, v[i].(int64)-1
		add(fmt.Sprintf("element %d one more", i), more)
		add(fmt.Sprintf("element %d one less", i), less)
	}
}

// Tells reports whether the outcomes of a case and of a neighbour differ in what
// is compared.
func Tells(a, b *backend.Outcome) bool {
	if a.Status != b.Status || len(a.Values) != len(b.Values) {
		return true
	}
	for i := range a.Values {
		if !sameValue(a.Values[i], b.Values[i]) {
			return true
		}
	}
	return !slices.EqualFunc(a.Slots, b.Slots, func(x, y backend.Slot) bool { return x.Place == y.Place && same(x.Tensor, y.Tensor) })
}

func sameValue(a, b backend.Value) bool {
	if a.IsTuple != b.IsTuple || !same(a.Tensor, b.Tensor) || fmt.Sprint(a.Plain) != fmt.Sprint(b.Plain) {
		return false
	}
	return slices.EqualFunc(a.Tuple, b.Tuple, sameValue)
}

func same(a, b *tensor.Tensor) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.DType() == b.DType() && slices.Equal(a.Shape(), b.Shape()) && bytes.Equal(a.Bytes(), b.Bytes())
}

// Trivial says what the results of a case are where they tell its operator from
// nothing: elements that are all equal, or an input. It is "" where they do.
func Trivial(p *program.Program, inputs []*tensor.Tensor, o *backend.Outcome) string {
	for i, c := range p.Calls {
		if !strings.HasPrefix(c.Result, diopi.Result) || i >= len(o.Values) || o.Values[i].Tensor == nil {
			continue
		}
		out := o.Values[i].Tensor
		if out.Len() < 2 {
			continue
		}
		size := out.DType().Size()
		if b := out.Bytes(); bytes.Equal(b[size:], b[:len(b)-size]) {
			return "a constant"
		}
		for k, in := range inputs {
			if same(in, out) {
				return "its argument " + p.Inputs[k].Name
			}
		}
	}
	return ""
}

// Defaults returns the defaults of the parameters of operators and modules.
func Defaults(table *op.Table, sigs func(target string) []*op.Sig) func(string) map[string]any {
	return func(target string) map[string]any {
		out := map[string]any{}
		all := sigs(target)
		for _, d := range table.Lookup(target) {
			all = append(all, d.Called(target))
		}
		for _, s := range all {
			for i := range s.Params {
				if p := &s.Params[i]; p.HasDefault {
					if _, ok := out[p.Name]; !ok {
						out[p.Name] = program.FromOp(p.Default)
					}
				}
			}
		}
		return out
	}
}
