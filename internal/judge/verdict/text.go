package verdict

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// String names the place, such as "call 2, value y[0]" or "gradient of x".
func (w *Where) String() string {
	switch w.Part {
	case backend.PartGrad, backend.PartParamGrad:
		return "gradient of " + w.Name
	case backend.PartSecondGrad, backend.PartSecondParamGrad:
		return "second-order gradient of " + w.Name
	case backend.PartStep:
		return "parameter " + w.Name + " after a step of SGD"
	case backend.PartChange:
		return fmt.Sprintf("%s after call %d", w.Name, w.Call)
	case backend.PartParam:
		return "parameter " + w.Name + " after the last call"
	case backend.PartState:
		return "buffer " + w.Name + " after the last call"
	}
	if w.Name == "" {
		return "backward pass"
	}
	s := fmt.Sprintf("call %d, value %s", w.Call, w.Name)
	for _, i := range w.Path {
		s += fmt.Sprintf("[%d]", i)
	}
	return s
}

// LedBy returns the verdict told by another of its differences than the first.
func (v *Verdict) LedBy(i int) *Verdict {
	if i <= 0 {
		return v
	}
	led := *v
	led.Differences = slices.Concat(v.Differences[i:i+1], v.Differences[:i], v.Differences[i+1:])
	first := &led.Differences[0]
	led.Where, led.Kind, led.Reason = &first.Where, first.Kind, first.reason()
	return &led
}

func (d *Difference) reason() string {
	s := d.Where.String() + ": " + d.Diff.Message
	switch d.Where.Part {
	case backend.PartGrad, backend.PartParamGrad:
		s = "the values agree; " + s
	case backend.PartSecondGrad, backend.PartSecondParamGrad:
		s = "the values and their gradients agree; " + s
	case backend.PartStep:
		s = "the values and the gradients agree; " + s
	}
	return s
}

// Text reports the verdict to a person, in lines that end with a newline. Equal
// verdicts give equal text.
func (v *Verdict) Text() string {
	var b strings.Builder
	fmt.Fprint(&b, v.Word)
	if v.Kind != "" {
		fmt.Fprintf(&b, " (%s)", v.Kind)
	}
	if reason := v.headline(); reason != "" {
		fmt.Fprintf(&b, ": %s", reason)
	}
	b.WriteByte('\n')
	if v.Blame != "" {
		fmt.Fprintf(&b, "  to blame    %s\n", v.Blame)
	}
	if len(v.Differences) > 0 {
		v.Differences[0].text(&b)
	}
	v.Reference.text(&b, "reference")
	v.Candidate.text(&b, "candidate")
	v.Vote.text(&b)
	v.others(&b)
	return b.String()
}

func (v *Verdict) headline() string {
	if v.Word != Aligned {
		return v.Reason
	}
	s := plural(v.Compared, "comparison")
	if v.Drawn > 0 {
		s += fmt.Sprintf(", %d of them of random draws", v.Drawn)
	}
	if v.WorstAt != nil && v.Worst > 0 {
		s += fmt.Sprintf(", worst error %s x the limit (%s of %s)", v.Worst, v.WorstAt.Part, v.WorstAt.Name)
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (d *Difference) text(b *strings.Builder) {
	if d.Where.Line != "" {
		fmt.Fprintf(b, "  %s\n", d.Where.Line)
	}
	for _, line := range d.Where.Users {
		fmt.Fprintf(b, "  used by %s\n", line)
	}
	if d.Diff.Rule == compare.Distance {
		fmt.Fprintf(b, "  limit       %s\n", d.Limit)
		fmt.Fprintf(b, "  because     %s\n", d.Limit.Reason)
		if d.Explained != "" {
			fmt.Fprintf(b, "              %s, at the worst element\n", d.Explained)
		}
		fmt.Fprintf(b, "  error       max abs %s, max rel %s, max ULP %d, mean abs %s, mean rel %s, bias %s, cosine %.6g\n",
			d.Diff.MaxAbs, d.Diff.MaxRel, uint64(d.Diff.MaxULP), d.Diff.MeanAbs, d.Diff.MeanRel, d.Diff.Bias, float64(d.Diff.Cosine))
		if d.Limit.Error == nil {
			fmt.Fprintf(b, "  would pass  %s\n", d.Diff.LeastLimit(d.Limit))
		}
		d.Truth.text(b)
	}
	if len(d.Around) > 0 {
		b.WriteByte('\n')
		d.excerpt(b)
		b.WriteByte('\n')
	}
}

// text says who is right.
func (t *Truth) text(b *strings.Builder) {
	if t == nil {
		return
	}
	source := "correctly rounded"
	if t.Near > 0 {
		source = "the reference in float64, here and on " + plural(t.Near, "nearby input")
	}
	fmt.Fprintf(b, "  truth       the candidate is off by up to %s, the reference by %s (%s)\n", t.Candidate, t.Reference, source)
	if t.At != nil {
		fmt.Fprintf(b, "              at %s the exact value is %s; the candidate is %s x as far from it as is allowed\n", tensor.ShapeString(t.At), t.Exact, t.Ratio)
	}
}

func (d *Difference) excerpt(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	told := len(d.Around) > 0 && d.Around[0].Truth != ""
	head := "  index\twant\tgot\t"
	if told {
		head += "truth\t"
	}
	fmt.Fprintln(w, head+"error / limit")
	for _, s := range d.Around {
		mark, truth := "", ""
		if s.Ratio > 1 {
			mark = "  <"
		}
		if told {
			truth = s.Truth + "\t"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s%s%s\n", tensor.ShapeString(s.Index), s.Want, s.Got, truth, s.Ratio, mark)
	}
	w.Flush()
	if d.Map != nil {
		b.WriteString("\n  error / limit by place: · none, - below a tenth, + within, # beyond, X ten times beyond\n")
		for _, line := range d.Map {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
}

func (s *Side) text(b *strings.Builder, name string) {
	if s == nil {
		return
	}
	fmt.Fprintf(b, "  %-9s   %s", name, s.Status)
	switch {
	case s.Status != backend.Raised:
	case s.Line != "":
		fmt.Fprintf(b, " in %q", s.Line)
	default:
		b.WriteString(" in the backward pass")
	}
	if s.Class != "" || s.Message != "" {
		text := strings.TrimPrefix(s.Class+": "+s.Message, ": ")
		fmt.Fprintf(b, "\n              %s", strings.ReplaceAll(text, "\n", "\n              "))
	}
	b.WriteByte('\n')
}

// maxOthers is how many later differences are listed.
const maxOthers = 5

func (v *Verdict) others(b *strings.Builder) {
	if len(v.Differences) < 2 {
		return
	}
	rest := v.Differences[1:]
	fmt.Fprintf(b, "  also %s:\n", plural(len(rest), "later difference"))
	for i, d := range rest {
		if i == maxOthers {
			fmt.Fprintf(b, "    and %d more\n", len(rest)-i)
			return
		}
		fmt.Fprintf(b, "    %s: %s\n", &d.Where, d.Diff.Message)
	}
}
