package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"plumb/backend"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
)

// Console writes a log for people: findings with the smallest program that shows
// each and where in the tensor it differs, and a summary of a few lines. More is
// told with Tests and Verbose.
type Console struct {
	W       io.Writer
	Color   bool
	Tests   bool // a line per test, with what is weak and what is unsupported
	Verbose bool // a line per case, and every finding
	Quiet   bool // findings and counts only
	// MaxFindings bounds the findings printed per test; 0 means 1.
	MaxFindings int
	// Brief prints a line for a finding: Findings prints what it became.
	Brief bool
	// Counted says that another report has told how much was judged.
	Counted bool
	// Width is that of the terminal; 0 where there is none.
	Width int

	paper  *paper
	legend bool
	next   string // the command that comes next
	weak   string // a test that is weak, and for what

	test    *Summary
	name    string
	printed int
	brief   int    // findings in a line each
	unshown int    // those that were not
	shown   bool   // a program of a finding
	fault   string // what was printed last, and in how many cases it is again
	again   int
}

// mostBrief is how many findings have a line before they are made smaller.
const mostBrief = 5

// start begins a page: all that is printed is plain text and colours.
func (c *Console) start() {
	if c.paper == nil {
		c.paper = newPaper(c.W)
		c.W = c.paper
	}
}

// width is that of a line.
func (c *Console) width() int {
	if c.Width == 0 {
		return 100
	}
	return max(c.Width, 40)
}

// Record counts the record and prints it when it is a finding.
func (c *Console) Record(r *verdict.Record) {
	c.start()
	if c.test == nil || c.name != r.Test {
		c.test, c.name, c.printed = NewSummary(), r.Test, 0
	}
	c.test.Add(r)
	if c.Verbose {
		fmt.Fprintf(c.W, "  %s  case %d  %s  %s\n", c.paint(r.Verdict.Word), r.Index, r.Program.ID(), detail(r))
	}
	if r.Verdict.Word.IsFinding() {
		c.finding(r)
	}
}

func detail(r *verdict.Record) string {
	v := r.Verdict
	if v.Word == verdict.Aligned {
		return fmt.Sprintf("%d tensors, worst %.2g of the limit", v.Compared, float64(v.Worst))
	}
	return firstLine(v.Reason)
}

func (c *Console) finding(r *verdict.Record) {
	if r.Verdict.Word == verdict.Fault && r.Verdict.Reason == c.fault {
		c.again++
		return
	}
	c.repeated()
	if r.Verdict.Word == verdict.Fault {
		c.fault = r.Verdict.Reason
	}
	if c.printed++; c.printed > c.limit() {
		return
	}
	if c.Brief {
		if c.brief++; c.brief > mostBrief && !c.Verbose {
			c.unshown++
			return
		}
		fmt.Fprintf(c.W, "%s %s, case %d (%s), candidate %s\n", c.paint(r.Verdict.Word), r.Test, r.Index, r.Program.ID(), Candidate(r))
		c.say("  %s", firstLine(r.Verdict.Reason))
		return
	}
	fmt.Fprintf(c.W, "\n%s %s, case %d (%s), candidate %s\n", c.paint(r.Verdict.Word), r.Test, r.Index, r.Program.ID(), Candidate(r))
	fmt.Fprintln(c.W, indent(r.Verdict.Text()))
	if r.Program != nil && len(r.Program.Calls) > 0 {
		c.shown = true
		fmt.Fprintf(c.W, "\n%s\n", r.Program)
	}
}

// repeated says in how many more cases the last fault was, such as one of a file
// that spoils all that it has.
func (c *Console) repeated() {
	if c.again > 0 {
		fmt.Fprintf(c.W, "  and %s more\n", plural(c.again, "case"))
	}
	c.fault, c.again = "", 0
}

// Candidate names the candidate of a failing case and the modes that fail.
func Candidate(r *verdict.Record) string {
	s := r.Candidate
	if len(r.Modes) > 1 || len(r.Modes) == 1 && r.Modes[0] != backend.Eager && !strings.Contains(s, r.Modes[0]) {
		s += " in " + r.Mode()
	}
	if blame := r.Verdict.ToBlame(); blame != "" {
		s += " (to blame: " + blame + ")"
	}
	return s
}

// limit is how many findings of a test are printed in full.
func (c *Console) limit() int {
	if c.Verbose {
		return math.MaxInt
	}
	return max(c.MaxFindings, 1)
}

// End prints the test's line.
func (c *Console) End(e *verdict.End) {
	c.start()
	c.repeated()
	if e.Err != nil {
		fmt.Fprintf(c.W, "%s %s\n", c.color("31", "ERROR"), ErrorText(e.Err))
		return
	}
	s := c.test
	if s == nil || c.name != e.Test {
		s = NewSummary()
	}
	if e.Weak != nil && c.weak == "" {
		c.weak = e.Test
	}
	if c.Tests {
		c.line(e, s)
	}
	if more := c.printed - c.limit(); more > 0 && c.name == e.Test && (c.Tests || !c.Brief) {
		fmt.Fprintf(c.W, "  (%s of this test not shown; -vv shows every one)\n", plural(more, "more finding"))
	}
}

// line is a test's, with what there is to know of it.
func (c *Console) line(e *verdict.End, s *Summary) {
	line := fmt.Sprintf("%-60s %s", e.Test, s.Counts())
	if s.Worst > 0 {
		line += fmt.Sprintf(", worst %.2g of the limit", s.Worst)
	}
	fmt.Fprintln(c.W, line)
	if e.Weak != nil {
		fmt.Fprintf(c.W, "  %s\n", c.color("33", e.Weak.String()))
	}
	if e.Rejects {
		fmt.Fprintf(c.W, "  %s\n", c.color("33", fmt.Sprintf("weak: %s are rejected by both sides; @autotest(refusals=True) says that they are meant to be", share(e.Rejected, e.Rejected+e.Judged, "draw"))))
	}
	if s.Words[verdict.Unsupported] > 0 {
		fmt.Fprintf(c.W, "  %s\n", firstLine(s.Beyond))
	}
	if s.TooLarge != "" {
		fmt.Fprintf(c.W, "  %s\n", firstLine(s.TooLarge))
	}
}

// Findings prints each finding with its minimal program.
func (c *Console) Findings(fs []*finding.Finding) {
	c.start()
	c.repeated()
	c.unshown = 0
	for i, f := range fs {
		c.block(NewBlock(f), fmt.Sprintf("finding %d of %d, %s", i+1, len(fs), f.ID))
		c.next = cmp.Or(c.next, f.Command())
	}
}

// Summary prints the counts and the seed.
func (c *Console) Summary(s *Summary) {
	c.start()
	c.repeated()
	if c.unshown > 0 {
		c.say("and %s in other tests, which -vv shows at once", plural(c.unshown, "finding"))
	}
	fmt.Fprintln(c.W)
	if !c.Counted {
		c.say("judged: %s", share(s.Judged(), s.Cases(), "case"))
	}
	if lines := s.LackLines("--json counts"); len(lines) > 0 {
		c.say("unsupported: %s", share(s.Words[verdict.Unsupported], s.Cases(), "case"))
		for _, line := range lines {
			c.say("  %s", line)
		}
	}
	if s.Worst > 0 {
		c.say("nearest to its limit: %.2g at %s", s.Worst, s.WorstAt)
	}
	if s.Drawn > 0 {
		c.say("judged by statistics: %d of %s", s.Drawn, plural(s.Compared, "comparison"))
	}
	s.Triage.Text(c.W)
	for _, line := range s.Stale {
		fmt.Fprintln(c.W, c.color("33", line))
	}
	if n := s.Words[verdict.Known]; n > 0 && s.Excused != "" {
		c.say("known: %s, the first because %s", share(n, s.Cases(), "case"), cut(s.Excused))
	}
	if n := s.Words[verdict.Rejected]; n > 0 {
		c.say("rejected: %s", share(n, s.Cases(), "case"))
	}
	if s.Graphs+s.Uncaptured > 0 {
		c.say("%s", s.graphLine())
	}
	if s.NoDerived != "" {
		c.say("forward only: %s, the first because %s", plural(s.Forward, "case"), firstLine(s.NoDerived))
	}
	if v := s.Covered; v != nil {
		c.say("covered: %d of %s in %s; %s of operator × dtype × layout, each in %s or more", v.Tests, plural(s.Tests, "test"), plural(v.Rounds, "round"), plural(v.Cells, "cell"), plural(v.Least, "case"))
	} else if text := s.Met.String(); text != "" && !c.Counted {
		c.say("covered: %s", text)
	}
	c.weakness(s)
	c.say("%s, %s against %s, seed %d%s", plural(s.Tests, "test"), strings.Join(s.Candidates, ", "), s.Reference, s.Seed, s.drawn())
	c.verdict(s)
}

// say prints a line of the summary.
func (c *Console) say(format string, args ...any) {
	fmt.Fprintln(c.W, wrap(Plain(fmt.Sprintf(format, args...)), c.Width, 2))
}

// weakness says how many tests are weak, and how they are seen.
func (c *Console) weakness(s *Summary) {
	if s.Weak == 0 || c.Tests || c.Quiet {
		return
	}
	text := fmt.Sprintf("weak: %s would let a wrong result pass, or mostly reject", plural(s.Weak, "test"))
	if c.weak != "" {
		text += ", such as " + c.weak
	}
	fmt.Fprintln(c.W, c.color("33", wrap(text+"; -v says of each why", c.Width, 2)))
}

// verdict prints the counts and the command that comes next.
func (c *Console) verdict(s *Summary) {
	line := s.Counts()
	if n := len(s.Errors); n > 0 {
		line += fmt.Sprintf(", %s in error", plural(n, "test"))
	}
	if s.Weak > 0 {
		line += fmt.Sprintf(", %s weak", plural(s.Weak, "test"))
	}
	if s.Forward > 0 {
		line += fmt.Sprintf(", %d forward only: backward not implemented", s.Forward)
	}
	code := "32"
	if s.Findings() > 0 || len(s.Errors) > 0 {
		code = "31"
	}
	fmt.Fprintln(c.W, c.color(code, wrap(fmt.Sprintf("== %s in %.2fs ==", line, s.Elapsed.Seconds()), c.Width, 3)))
	switch {
	case c.next != "":
		fmt.Fprintln(c.W, "next: "+c.next)
	case c.shown && s.Findings() > 0:
		fmt.Fprintln(c.W, "next: save a program above as finding.py, and see it fail again: plumb run finding.py")
	case c.Quiet || c.Counted || s.Findings()+len(s.Errors) > 0 || s.Judged() == 0:
	case c.weak != "" && !c.Tests && strings.Contains(c.weak, ".py::"):
		fmt.Fprintf(c.W, "next: plumb run -k '%s' -v\n", strings.TrimPrefix(c.weak, "suites/"))
	default:
		fmt.Fprintln(c.W, "next: plumb margins")
	}
}

// drawn is what the command line says beside the seed to draw the cases again.
func (s *Summary) drawn() string {
	if s.Shared {
		return " --shapes few"
	}
	return ""
}

func (c *Console) paint(w verdict.Word) string {
	switch {
	case w.IsFinding():
		return c.color("31", string(w))
	case w == verdict.Aligned:
		return c.color("32", string(w))
	}
	return c.color("33", string(w))
}

func (c *Console) color(code, s string) string {
	if !c.Color {
		return s
	}
	return c.paper.color(code, s)
}

// ErrorText returns the message of an error, and of one with a place in a file
// the source line below it.
func ErrorText(err error) string {
	var placed interface{ Excerpt() string }
	if errors.As(err, &placed) {
		if excerpt := placed.Excerpt(); excerpt != "" {
			return err.Error() + "\n" + excerpt
		}
	}
	return err.Error()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// share prints a part of a whole: "3 of 12 draws (25%)".
func share(n, of int, noun string) string {
	return fmt.Sprintf("%d of %s (%.0f%%)", n, plural(of, noun), 100*float64(n)/float64(max(of, 1)))
}

// longestReason bounds a reason in the summary, in characters.
const longestReason = 160

// cut keeps the beginning of a long reason.
func cut(reason string) string {
	if r := []rune(reason); len(r) > longestReason {
		return string(r[:longestReason-1]) + "…"
	}
	return reason
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
