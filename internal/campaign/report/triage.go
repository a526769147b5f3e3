package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// Triage gathers the findings of a run by candidate, operator and cause, to tell
// what an adapter calls wrongly from what its framework computes wrongly.
type Triage struct {
	// Callable returns how PyTorch and the candidate's adapter call an operator;
	// nil for a candidate that has no table of names.
	Callable func(candidate, operator string) *Callables

	clusters map[[2]string]*Cluster
}

// Callables are the two signatures of an operator, side by side.
type Callables struct {
	Torch   []string `json:"torch"`
	Subject []string `json:"subject"`
}

// Cluster is the findings of one candidate in one operator.
type Cluster struct {
	Candidate string `json:"candidate"`
	Operator  string `json:"operator"`
	// Failed are the findings among the legal cases that were Judged: aligned, or
	// failed in this operator.
	Failed int      `json:"failed"`
	Judged int      `json:"judged"`
	Causes []*Cause `json:"causes"` // the most frequent first
	// Table says, where every judged case fails, or nearly (see whole), that the
	// adapter's table is likely wrong, and what it has.
	Table *Callables `json:"table_likely_wrong,omitempty"`
	// DTypes says, where every judged case fails, that all do by a dtype alone:
	// which one a result has is a framework's own choice.
	DTypes bool `json:"dtype_alone,omitempty"`

	// Default is an argument without which nearly every case fails, and with which hardly
	// one does: the adapter's default of it is likely wrong. Table says what it has.
	Default string `json:"default_likely_wrong,omitempty"`

	forms     map[string]*form    // of its calls, by what they give
	otherwise bool                // a finding differs in more than a dtype
	answered  bool                // one is of a call that came back: a process that ends, or hangs, tells of no wrong name
	forward   bool                // one is of a result: a name, or a default, that is wrong shows in results and not in gradients alone
	variants  map[string]*variant // of the operator's literal: the dtypes
}

// variant is how many legal cases of a variant failed, of those that were judged.
type variant struct{ failed, judged int }

// judge counts a legal case that failed, or was aligned.
func (c *Cluster) judge(name string, failed bool) {
	if c.variants == nil {
		c.variants = map[string]*variant{}
	}
	v := c.variants[name]
	if v == nil {
		v = &variant{}
		c.variants[name] = v
	}
	c.Judged, v.judged = c.Judged+1, v.judged+1
	if failed {
		c.Failed, v.failed = c.Failed+1, v.failed+1
	}
}

// whole reports whether every judged case fails; or three quarters, and among them every
// one of two dtypes: of others, such as bools, what is computed wrongly may come out alike.
func (c *Cluster) whole() bool {
	if c.Failed == c.Judged {
		return c.Failed >= fewest
	}
	whole := 0
	for _, v := range c.variants {
		if v.judged >= fewest && v.failed == v.judged {
			whole++
		}
	}
	return whole > 1 && 4*c.Failed >= 3*c.Judged
}

// Cause is what findings of a cluster have in common.
type Cause struct {
	Cause string `json:"cause"`
	Count int    `json:"count"`
}

// fewest is how many cases have to fail before all of them say something.
const fewest = 3

// Add counts a record.
func (t *Triage) Add(r *verdict.Record) {
	v := r.Verdict
	if v.OfReference {
		return
	}
	id, variant, ofOne := OperatorOf(r.Test)
	switch {
	case v.Word.IsFinding():
		if !ofOne {
			id, variant = operatorOf(r), ""
		}
		c := t.cluster(r.Candidate, id)
		c.add(cause(v))
		c.otherwise = c.otherwise || !ofDType(v)
		c.answered = c.answered || v.Word == verdict.Misaligned
		c.forward = c.forward || !ofGradients(v)
		if variant != Illegal {
			c.judge(variant, true)
			c.called(lastCall(r.Program, id, ofOne), true)
		}
	case v.Word == verdict.Aligned && ofOne && variant != Illegal:
		c := t.cluster(r.Candidate, id)
		c.judge(variant, false)
		c.called(lastCall(r.Program, id, ofOne), false)
	case v.Word == verdict.Aligned && !ofOne:
		var names []string
		for _, call := range r.Program.Calls {
			if name := verdict.OperatorName(call.Target); !slices.Contains(names, name) {
				names = append(names, name)
				c := t.cluster(r.Candidate, name)
				c.judge("", false)
				c.called(lastCall(r.Program, name, false), false)
			}
		}
	}
}

// operatorOf is the operator that a finding blames, else that of the last call.
func operatorOf(r *verdict.Record) string { return verdict.OperatorName(targetOf(r)) }

// targetOf is the name of the call that differs, or of the last.
func targetOf(r *verdict.Record) string {
	target := ""
	if r.Verdict.Where != nil {
		target = r.Verdict.Where.Target
	}
	if n := len(r.Program.Calls); target == "" && n > 0 {
		target = r.Program.Calls[n-1].Target
	}
	return target
}

func (t *Triage) cluster(candidate, operator string) *Cluster {
	key := [2]string{candidate, operator}
	if t.clusters == nil {
		t.clusters = map[[2]string]*Cluster{}
	}
	if t.clusters[key] == nil {
		t.clusters[key] = &Cluster{Candidate: candidate, Operator: operator}
	}
	return t.clusters[key]
}

func (c *Cluster) add(cause string) {
	at := slices.IndexFunc(c.Causes, func(o *Cause) bool { return o.Cause == cause })
	if at < 0 {
		at = len(c.Causes)
		c.Causes = append(c.Causes, &Cause{Cause: cause})
	}
	c.Causes[at].Count++
}

// cause is a finding's, without places and numbers: "value", "shape",
// "exception TypeError of the candidate".
func cause(v *verdict.Verdict) string {
	text := cmp.Or(string(v.Kind), string(v.Word))
	for _, side := range []struct {
		name string
		*verdict.Side
	}{{"the reference", v.Reference}, {"the candidate", v.Candidate}} {
		if side.Side != nil && side.Class != "" {
			text += fmt.Sprintf(" %s of %s", side.Class, side.name)
		}
	}
	return text
}

// ofDType reports whether all that differs is the dtype of results.
func ofDType(v *verdict.Verdict) bool {
	return v.Kind == verdict.Kind(compare.DType) && !slices.ContainsFunc(v.Differences, func(d verdict.Difference) bool { return d.Kind != v.Kind })
}

// ofGradients reports whether the results agree, as they do not where an argument is
// given in a wrong place or left out with another default.
func ofGradients(v *verdict.Verdict) bool {
	return v.Kind == verdict.Kind(backend.PartGrad) || v.Kind == verdict.Kind(backend.PartParamGrad)
}

// Clusters returns the operators with findings, those with a table that is
// likely wrong first, then by the number of findings.
func (t *Triage) Clusters() []*Cluster {
	if t == nil {
		return nil
	}
	var out []*Cluster
	for _, c := range t.clusters {
		if len(c.Causes) == 0 {
			continue
		}
		slices.SortStableFunc(c.Causes, func(a, b *Cause) int { return b.Count - a.Count })
		if c.whole() && c.answered && c.forward && t.Callable != nil {
			c.Table = t.Callable(c.Candidate, c.Operator)
			if c.DTypes = c.Table != nil && !c.otherwise; c.DTypes {
				c.Table = nil
			}
		}
		if c.Table == nil && !c.DTypes && c.answered && c.forward && t.Callable != nil {
			if has := t.Callable(c.Candidate, c.Operator); has != nil {
				if c.Default = c.wrongDefault(has.Torch); c.Default != "" {
					c.Table = has
				}
			}
		}
		out = append(out, c)
	}
	rank := func(c *Cluster) int {
		if c.Table != nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(out, func(a, b *Cluster) int {
		return cmp.Or(rank(a)-rank(b), b.findings()-a.findings(), strings.Compare(a.Candidate, b.Candidate), strings.Compare(a.Operator, b.Operator))
	})
	return out
}

func (c *Cluster) findings() int {
	n := 0
	for _, cause := range c.Causes {
		n += cause.Count
	}
	return n
}

// The most clusters, and causes of one, that Text prints.
const (
	mostClusters = 20
	mostCauses   = 3
)

// Text writes the clusters.
func (t *Triage) Text(w io.Writer) {
	all := t.Clusters()
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "findings by operator and cause:")
	for i, c := range all {
		if i == mostClusters {
			fmt.Fprintf(w, "  and in %s (--json has them)\n", plural(len(all)-i, "more operator"))
			break
		}
		c.text(w)
	}
	fmt.Fprintln(w)
}

func (c *Cluster) text(w io.Writer) {
	var causes []string
	for i, cause := range c.Causes {
		if i == mostCauses {
			causes = append(causes, "…")
			break
		}
		causes = append(causes, fmt.Sprintf("%d × %s", cause.Count, cause.Cause))
	}
	illegal := ""
	if n := c.findings() - c.Failed; n > 0 {
		illegal = ", and " + plural(n, "illegal case")
	}
	fmt.Fprintf(w, "  %s, %s: %d of %s fail%s: %s\n", c.Candidate, c.Operator, c.Failed, plural(c.Judged, "judged case"), illegal, strings.Join(causes, ", "))
	if c.DTypes {
		fmt.Fprintln(w, "    every one fails by its dtype alone: the framework's own choice, or a cast that the table lacks")
	}
	if c.Table == nil {
		return
	}
	which := "every one fails"
	if c.Default != "" {
		fmt.Fprintf(w, "    those that leave out %s fail, and hardly one that gives it: the adapter's table is likely wrong about its default\n", c.Default)
	} else if c.Failed < c.Judged {
		which = "most fail, and in some dtypes every one"
	}
	if c.Default == "" {
		fmt.Fprintf(w, "    %s: the adapter's table is likely wrong\n", which)
	}
	for _, line := range c.Table.Torch {
		fmt.Fprintf(w, "      PyTorch  %s\n", line)
	}
	for _, line := range c.Table.Subject {
		fmt.Fprintf(w, "      adapter  %s\n", line)
	}
}
