package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumb/internal/campaign/report/picture"
	"plumb/internal/find/finding"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Block is what there is to see of a finding: it is a few lines, and the smallest
// program among them.
type Block struct {
	Word     verdict.Word
	ID       string
	Operator string
	DType    string
	Program  []string // the lines of the smallest program, without its head
	Where    string   // which result differs
	Reason   string   // where no element does
	Elements []Element
	Limit    string
	Because  string
	Picture  *picture.Field // of the case as it was drawn, where that has more to see
	Drawn    bool           // it is of that case
	Small    *picture.Field // of the smallest
	Notes    [][2]string
	Next     []string // commands
}

// Element is a diverging element: the first, and the one that is worst.
type Element struct {
	Which, Index, Want, Got, Truth, ULP, Ratio string
}

// NewBlock gathers a finding's.
func NewBlock(f *finding.Finding) *Block {
	r := f.Result.Record
	v := r.Verdict
	b := &Block{Word: v.Word, ID: f.ID, Operator: called(r), Program: Body(r.Program), Reason: firstLine(v.Reason)}
	if f.Unstable != "" {
		b.Word = verdict.Unstable
	}
	b.look(r)
	if drawn := picture.Of(f.Groups[0].First); drawn != nil && (b.Picture == nil || len(drawn.Ratio) > len(b.Picture.Ratio)) {
		b.Picture, b.Drawn = drawn, true
	}
	b.Notes = blockNotes(f)
	if again := f.Command(); again != "" {
		b.Next = append(b.Next, again)
	}
	return b
}

// BlockOf gathers what a record shows that was not made smaller.
func BlockOf(r *verdict.Record) *Block {
	b := &Block{Word: r.Verdict.Word, ID: r.Program.ID(), Operator: called(r), Program: Body(r.Program), Reason: firstLine(r.Verdict.Reason)}
	b.look(r)
	b.Notes = [][2]string{{"seen", fmt.Sprintf("%s case %d", r.Test, r.Index)}, {"candidate", Candidate(r)}}
	return b
}

// called is the last part of the name of the call that differs, as it is written.
func called(r *verdict.Record) string {
	target := targetOf(r)
	return target[strings.LastIndexByte(target, '.')+1:]
}

// look takes the elements of a record's first difference.
func (b *Block) look(r *verdict.Record) {
	v := r.Verdict
	if v.Where != nil {
		b.Where = v.Where.String()
	}
	b.Picture = picture.Of(r)
	b.Small = b.Picture
	if b.Picture == nil {
		return
	}
	d := &v.Differences[0]
	b.DType = b.Picture.DType.String()
	b.Limit, b.Because = d.Limit.String(), d.Limit.Reason
	if d.Explained != "" {
		b.Because += "; " + d.Explained + ", at the worst element"
	}
	b.Elements = append(b.Elements, element("first", b.Picture, b.Picture.First, d))
	if !slices.Equal(b.Picture.First, b.Picture.Worst) {
		b.Elements = append(b.Elements, element("worst", b.Picture, b.Picture.Worst, d))
	}
}

func element(which string, f *picture.Field, index []int, d *verdict.Difference) Element {
	i := f.Offset(index)
	want, got := f.Element(index)
	e := Element{Which: which, Index: tensor.ShapeString(index), Want: want, Got: got, Ratio: short(f.Ratio[i])}
	if ulp := f.ULP[i]; ulp < 1<<40 { // near 0 and where one is not finite they say nothing
		e.ULP = short(ulp)
	}
	if exact := d.Exact(); exact != nil && exact.Len() == len(f.Ratio) {
		e.Truth = compare.Element(exact, i)
	}
	return e
}

// short prints a number that is not negative with at most three digits or so.
func short(x float64) string {
	if x >= 10 && x < 1e6 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// Body is a program's text without the head that makes it run.
func Body(p *program.Program) []string {
	var out []string
	for line := range strings.Lines(p.String()) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "from ") || strings.HasPrefix(line, "case(") {
			continue
		}
		out = append(out, line)
	}
	return out
}

// blockNotes are the lines about a finding: how often, to blame, proved.
func blockNotes(f *finding.Finding) [][2]string {
	r, how := f.Result, ""
	if r.Runs > 0 {
		how = fmt.Sprintf("in %s of the candidate, %.1fs", plural(r.Runs, "run"), r.Elapsed.Seconds())
	}
	if how != "" && !r.Minimal {
		how += "; the budget ended the search (--set shrink.runs, shrink.time)"
	}
	all := [][2]string{
		{"seen", fmt.Sprintf("%s in %s, first %s case %d", plural(f.Count(), "case"), plural(len(f.Tests()), "test"), f.Groups[0].Test, f.Groups[0].First.Index)},
		{"candidate", f.Candidate()},
		{"modes", strings.Join(f.Modes(), ", ")},
		{"vote", ballots(r.Record.Verdict.Vote)},
		{"alone", alone(r.Record.Verdict.Vote)},
		{"to blame", blame(r.Record.Verdict)},
		{"unstable", f.Unstable},
		{"common", f.Common},
		{"ranks", r.Ranks},
		{"minimised", how},
		{"proof", f.Proof},
		{"bundle", f.Bundle},
	}
	return slices.DeleteFunc(all, func(n [2]string) bool { return n[1] == "" })
}

// ballots says what each subject and the truth hold, of two candidates or more.
func ballots(v *verdict.Vote) string {
	if v == nil || v.Candidates() < 2 {
		return ""
	}
	var rows []string
	for _, row := range v.Rows {
		rows = append(rows, row.Subject+" "+row.Holds)
	}
	return strings.Join(rows, "; ")
}

// alone names the subjects that agree with no other, of two candidates or more.
func alone(v *verdict.Vote) string {
	if v == nil || v.Candidates() < 2 {
		return ""
	}
	return strings.Join(v.Alone, ", ")
}

// blame says who is wrong, by the vote of all or by the distances from the truth.
func blame(v *verdict.Verdict) string {
	text := v.ToBlame()
	if len(v.Differences) == 0 || v.Differences[0].Truth == nil {
		return text
	}
	t := v.Differences[0].Truth
	who := "the candidate"
	if t.Reference > t.Candidate {
		who = "the reference, it seems"
	}
	return fmt.Sprintf("%s: it is off by up to %s, the other side by %s", cmp.Or(text, who), max(t.Candidate, t.Reference), min(t.Candidate, t.Reference))
}

// block prints a finding.
func (c *Console) block(b *Block, title string) {
	head := fmt.Sprintf("\n%s %s: %s", c.paint(b.Word), title, b.Operator)
	if b.DType != "" {
		head += ", " + b.DType
	}
	fmt.Fprintln(c.W, head)
	for _, line := range b.Program {
		fmt.Fprintf(c.W, "    %s\n", line)
	}
	note := func(name, text string) {
		if text != "" {
			fmt.Fprintln(c.W, wrap(fmt.Sprintf("  %-11s %s", name, Plain(text)), c.Width, 14))
		}
	}
	if b.Small == nil {
		note("reason", b.Reason)
	} else {
		note("differs", fmt.Sprintf("%s in %s", b.Where, b.extent()))
	}
	for _, e := range b.Elements {
		note(e.Which, e.String())
	}
	note("limit", b.Limit)
	note("because", b.Because)
	c.picture(b)
	for _, n := range b.Notes {
		note(n[0], n[1])
	}
	for _, next := range b.Next {
		note("again", next)
	}
}

func (b *Block) extent() string {
	return fmt.Sprintf("%d of %s", b.Small.Over, plural(len(b.Small.Ratio), "element"))
}

// String is the element in one line.
func (e Element) String() string {
	s := fmt.Sprintf("%s: got %s, want %s", e.Index, e.Got, e.Want)
	if e.Truth != "" {
		s += ", truth " + e.Truth
	}
	ulp := ""
	if e.ULP != "" {
		ulp = e.ULP + " ULP, "
	}
	if e.Ratio == "+Inf" {
		return s + "; " + ulp + "where none is allowed"
	}
	return s + fmt.Sprintf("; %s%s × the limit", ulp, e.Ratio)
}

// picture prints where in the tensor it differs.
func (c *Console) picture(b *Block) {
	if b.Picture == nil {
		return
	}
	lines := b.Picture.Text(c.width() - 14)
	words := b.Picture.Words()
	if len(lines) == 0 && words == "" {
		return
	}
	of := ""
	if b.Drawn {
		of = fmt.Sprintf("as first drawn, %s of %s: ", plural(b.Picture.Over, "element"), tensor.ShapeString(b.Picture.Shape))
	}
	if words == "" {
		words = "spread over it"
	}
	fmt.Fprintln(c.W, wrap(fmt.Sprintf("  %-11s %s%s", "location", of, words), c.Width, 14))
	for _, line := range lines {
		fmt.Fprintf(c.W, "  %-11s %s\n", "", line)
	}
	if len(lines) > 0 && !c.legend {
		c.legend = true
		fmt.Fprintln(c.W, wrap(fmt.Sprintf("  %-11s %s", "", picture.Legend), c.Width, 14))
	}
}
