// Package margins keeps how near the comparisons of a run came to their
// limits, and sums it up: which limits are thin, which far too wide, and what
// limits the data would support.
//
// A file of margins has one JSON object per line for each operator, dtype and
// part, see row. Its size is bounded, and the files of two runs merge into
// exactly what one run of both would have left.
package margins

import (
	"cmp"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
)

// Margin is one comparison of one case.
type Margin struct {
	// Op is the public name of the operator, a module's constructor for its
	// calls. For the gradient of an input it is the one that reads the input,
	// "several operators" where they differ, "" where none does.
	Op    string
	DType string
	Part  backend.Part
	Class op.Class       // of numerics; "" for the default of the dtype
	Ratio compare.Number // observed error ÷ limit; infinite where nothing could pass
	At    Place
}

// Place says which comparison it was.
type Place struct {
	Test      string `json:"test"`
	Case      int    `json:"case"` // index
	Candidate string `json:"candidate"`
	Name      string `json:"name"` // of the result, input or parameter
}

func (p *Place) compare(q *Place) int {
	return cmp.Or(cmp.Compare(p.Test, q.Test), cmp.Compare(p.Case, q.Case),
		cmp.Compare(p.Candidate, q.Candidate), cmp.Compare(p.Name, q.Name))
}

// Of returns the margins of a record, in the order of the comparisons.
func Of(r *verdict.Record) []Margin {
	out := make([]Margin, len(r.Verdict.Margins))
	for i, m := range r.Verdict.Margins {
		out[i] = Margin{
			Op: m.Target, DType: m.DType, Part: m.Part, Class: m.Class, Ratio: m.Ratio,
			At: Place{Test: r.Test, Case: r.Index, Candidate: r.Candidate, Name: m.Name},
		}
		if m.Target == "" {
			out[i].Op = reader(r.Program, m.Name)
		}
	}
	return out
}

// several stands for the operators that read one input, when they differ.
const several = "several operators"

// reader names the operator that reads an input.
func reader(p *program.Program, name string) string {
	modules := map[string]string{}
	found := ""
	for i := range p.Calls {
		c := &p.Calls[i]
		target, reads := c.Target, false
		c.EachRef(func(r program.Ref) {
			reads = reads || string(r) == name
			if m := modules[string(r)]; m != "" && strings.HasPrefix(c.Target, "Module.") {
				target = m
			}
		})
		if program.IsModule(c.Target) {
			modules[c.Result] = target
		}
		switch {
		case !reads || found == target:
		case found == "":
			found = target
		default:
			return several
		}
	}
	return found
}
