// Package finding turns the failing cases of a run into findings: cases that
// fail alike are one, with their number, the smallest program that shows it,
// and what the failing cases have in common.
package finding

import (
	"fmt"
	"slices"

	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Group is the failing cases of one test that fail alike.
type Group struct {
	Test      string
	Candidate string
	Signature shrink.Signature
	First     *verdict.Record
	Count     int
	// Failing and Passing are programs of the test, as far as they were kept.
	Failing, Passing []*program.Program
}

// maxKept bounds the programs that are kept of a test to either side.
const maxKept = 200

// Collector gathers the groups of a run from its records.
type Collector struct {
	// Smallest makes the smallest failing program of a group its first.
	Smallest bool

	groups  []*Group
	current []*Group // of the running test
	passing map[string][]*program.Program
}

// Record takes a record; fails says whether it speaks against the candidate.
func (c *Collector) Record(r *verdict.Record, fails bool) {
	switch {
	case fails:
		g := c.group(r)
		g.Count++
		if c.Smallest && size(r.Program) < size(g.First.Program) {
			g.First = r
		}
		if len(g.Failing) < maxKept {
			g.Failing = append(g.Failing, r.Program)
		}
	case r.Verdict.Word == verdict.Aligned && len(c.passing[r.Candidate]) < maxKept:
		if c.passing == nil {
			c.passing = map[string][]*program.Program{}
		}
		c.passing[r.Candidate] = append(c.passing[r.Candidate], r.Program)
	}
}

// size is the number of elements of a program's inputs.
func size(p *program.Program) int {
	n := 0
	for i := range p.Inputs {
		n += tensor.NumElements(p.Inputs[i].Shape)
	}
	return n
}

func (c *Collector) group(r *verdict.Record) *Group {
	signature := shrink.SignatureOf(r)
	for _, g := range c.current {
		if g.Candidate == r.Candidate && g.Signature == signature {
			return g
		}
	}
	g := &Group{Test: r.Test, Candidate: r.Candidate, Signature: signature, First: r}
	c.current = append(c.current, g)
	return g
}

// End says that the running test has ended.
func (c *Collector) End() {
	for _, g := range c.current {
		g.Passing = c.passing[g.Candidate]
	}
	c.groups = append(c.groups, c.current...)
	c.current, c.passing = nil, nil
}

// Groups returns the groups in the order of their first cases.
func (c *Collector) Groups() []*Group { return c.groups }

// Finding is one failure, minimised.
type Finding struct {
	ID     string // of the minimal program
	Groups []*Group
	Result *shrink.Result
	// Common is what all failing cases have and no passing one; "" when nothing
	// simple is.
	Common string
	// Unstable says how the reference disagreed with itself; "" when it did not.
	Unstable string
	// Proof is what running the bundle in fresh processes gave, such as
	// "reproduced 3/3"; Bundle is its folder.
	Proof, Bundle string
	// Again is the command that shows it again, where it is not plumb repro.
	Again string
}

// Command is what shows the finding again; "" where nothing is kept of it.
func (f *Finding) Command() string {
	if f.Bundle == "" || f.Again != "" {
		return f.Again
	}
	return fmt.Sprintf("plumb repro %s --run", f.ID)
}

// Count returns the number of failing cases.
func (f *Finding) Count() int {
	n := 0
	for _, g := range f.Groups {
		n += g.Count
	}
	return n
}

// Tests returns the names of the tests in which it shows.
func (f *Finding) Tests() []string {
	var names []string
	for _, g := range f.Groups {
		if !slices.Contains(names, g.Test) {
			names = append(names, g.Test)
		}
	}
	return names
}

// Modes returns the candidate's modes in which it shows, its own first.
func (f *Finding) Modes() []string {
	var modes []string
	for _, g := range f.Groups {
		for _, m := range g.First.Modes {
			if !slices.Contains(modes, m) {
				modes = append(modes, m)
			}
		}
	}
	return modes
}

// Candidate returns the name of the candidate that fails.
func (f *Finding) Candidate() string { return f.Groups[0].Candidate }

// key tells findings apart: how they fail, and which operators the minimal
// program calls, be it as functions, methods or modules.
func (f *Finding) key() string {
	var operators []string
	for _, c := range f.Result.Record.Program.Calls {
		if c.Target != "Module.__call__" {
			operators = append(operators, verdict.OperatorName(c.Target))
		}
	}
	signature := f.Result.Signature
	signature.Operator = verdict.OperatorName(signature.Operator)
	return fmt.Sprint(f.Candidate(), signature, operators)
}

// smaller reports whether f's program is the better one to show.
func (f *Finding) smaller(g *Finding) bool {
	a, b := f.Result.Record.Program, g.Result.Record.Program
	if len(a.Calls) != len(b.Calls) {
		return len(a.Calls) < len(b.Calls)
	}
	return len(a.String()) < len(b.String())
}

// Cluster makes one finding of those whose minimal programs fail alike and call
// the same, and states what their failing cases have in common.
func Cluster(all []*Finding) []*Finding {
	var out []*Finding
	at := map[string]int{}
	for _, f := range all {
		k := f.key()
		i, seen := at[k]
		if !seen {
			at[k] = len(out)
			out = append(out, f)
			continue
		}
		groups := slices.Concat(out[i].Groups, f.Groups)
		if f.smaller(out[i]) {
			out[i] = f
		}
		out[i].Groups = groups
	}
	for _, f := range out {
		f.Common = Common(f.programs())
	}
	return out
}

func (f *Finding) programs() (failing, passing []*program.Program) {
	for _, g := range f.Groups {
		failing = append(failing, g.Failing...)
		passing = append(passing, g.Passing...)
	}
	return failing, passing
}
