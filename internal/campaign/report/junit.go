package report

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"plumb/backend"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/internal/scratch"
)

// The most that a test case of a JUnit file holds of each text, in bytes.
const (
	junitMessage = 512      // the first line of a reason
	junitReason  = 16 << 10 // a reason
	junitOutput  = 16 << 10 // system-out
)

// JUnit writes the XML that pytest writes with --junit-xml and CI systems read:
// a testsuite per test or function, with a testcase per case. A misaligned case
// is a failure; a crash, a time limit, exhausted memory, a fault of the harness
// and a test that cannot be drawn are errors; what is unsupported, refused by
// both sides or left out is skipped; a known fault of the reference has passed,
// and says so in its system-out.
//
// Cases may come in any order. They wait in a temporary file, so that only a
// few numbers of each suite are in memory, until Close writes the whole.
type JUnit struct {
	Name string // of the run, such as "plumb run"
	// Properties are given to each suite, in order: names and values.
	Properties [][2]string
	// Started is when the run began; zero writes no time.
	Started time.Time

	out    *os.File
	spool  *os.File
	buf    *bufio.Writer
	at     int64 // of the next case in the spool
	suites []*junitSuite
	byName map[string]*junitSuite
	err    error // the first
}

// JUnitCase is a testcase. Without a word it was left out, for the reason; Err
// is a mistake in the test itself.
type JUnitCase struct {
	Suite, Name string
	Word        verdict.Word
	Reason      string
	Output      string // system-out
	Elapsed     time.Duration
	Err         error
}

type junitSuite struct {
	name                             string
	tests, failures, errors, skipped int
	elapsed                          time.Duration
	pieces                           []piece
}

// piece is a part of the spool.
type piece struct{ from, to int64 }

// NewJUnit returns a sink that writes to a file at its Close. The file is made
// at once.
func NewJUnit(path, name string) (*JUnit, error) {
	out, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	spool, err := scratch.File("", "junit")
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return &JUnit{Name: name, out: out, spool: spool, buf: bufio.NewWriter(spool), byName: map[string]*junitSuite{}}, nil
}

// Record adds a case of a drawn test.
func (j *JUnit) Record(r *verdict.Record) {
	c := JUnitCase{Suite: r.Test, Name: fmt.Sprintf("case %d, %s", r.Index, r.Candidate), Word: r.Verdict.Word, Reason: r.Verdict.Reason, Elapsed: elapsed(r.Outcome)}
	if r.Verdict.Word.IsFinding() {
		c.Reason, c.Output = r.Verdict.Text(), r.Program.String()
	}
	j.Add(c)
}

func elapsed(o *backend.Outcome) time.Duration {
	if o == nil {
		return 0
	}
	return o.Elapsed
}

// End adds a test that could not be judged.
func (j *JUnit) End(e *verdict.End) {
	if e.Err != nil {
		j.Add(JUnitCase{Suite: e.Test, Name: "draw", Err: e.Err})
	}
}

// Findings does nothing: the failing cases are in the file as they were drawn.
func (j *JUnit) Findings([]*finding.Finding) {}

// Summary does nothing: Close writes the counts.
func (j *JUnit) Summary(*Summary) {}

// Add adds a case to its suite. What fails is told by Close.
func (j *JUnit) Add(c JUnitCase) {
	for _, text := range []*string{&c.Suite, &c.Name, &c.Reason, &c.Output} {
		*text = Plain(*text)
	}
	s := j.byName[c.Suite]
	if s == nil {
		s = &junitSuite{name: c.Suite}
		j.byName[c.Suite] = s
		j.suites = append(j.suites, s)
	}
	element := s.add(&c)
	text, err := xml.MarshalIndent(element, "    ", "  ")
	if err == nil {
		_, err = j.buf.Write(append(text, '\n'))
	}
	if err != nil {
		j.fail(err)
		return
	}
	from := j.at
	j.at += int64(len(text)) + 1
	if n := len(s.pieces); n > 0 && s.pieces[n-1].to == from {
		s.pieces[n-1].to = j.at
	} else {
		s.pieces = append(s.pieces, piece{from, j.at})
	}
}

func (j *JUnit) fail(err error) {
	if j.err == nil {
		j.err = err
	}
}

type junitCase struct {
	XMLName xml.Name     `xml:"testcase"`
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitResult `xml:"failure"`
	Error   *junitResult `xml:"error"`
	Skipped *junitResult `xml:"skipped"`
	Output  string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// add counts a case and returns its element.
func (s *junitSuite) add(c *JUnitCase) *junitCase {
	s.tests++
	s.elapsed += c.Elapsed
	element := &junitCase{Class: s.name, Name: c.Name, Time: seconds(c.Elapsed), Output: clip(c.Output, junitOutput)}
	result := &junitResult{Type: string(c.Word), Message: clip(firstLine(c.Reason), junitMessage), Text: clip(c.Reason, junitReason)}
	switch {
	case c.Err != nil:
		element.Error = &junitResult{Type: "error", Message: clip(firstLine(c.Err.Error()), junitMessage), Text: clip(ErrorText(c.Err), junitReason)}
		s.errors++
	case c.Word == verdict.Misaligned:
		element.Failure = result
		s.failures++
	case c.Word.IsFinding():
		element.Error = result
		s.errors++
	case c.Word == "":
		element.Skipped = &junitResult{Type: "skipped", Message: result.Message}
		s.skipped++
	case c.Word == verdict.Unsupported, c.Word == verdict.Skipped, c.Word == verdict.Rejected:
		element.Skipped = &junitResult{Type: result.Type, Message: result.Message}
		s.skipped++
	case c.Word != verdict.Aligned:
		element.Output = clip(fmt.Sprintf("%s: %s", c.Word, c.Reason), junitOutput)
	}
	return element
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }

// clip is the start of a text, at most n bytes and whole characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// Close writes the file. The error is the first of the whole sink. That of nil
// does nothing.
func (j *JUnit) Close() error {
	if j == nil {
		return nil
	}
	if err := j.buf.Flush(); err != nil {
		j.fail(err)
	}
	if j.err == nil {
		w := bufio.NewWriter(j.out)
		if err := errors.Join(j.write(w), w.Flush()); err != nil {
			j.fail(err)
		}
	}
	return errors.Join(j.err, j.out.Close(), scratch.Discard(j.spool))
}

func (j *JUnit) write(w *bufio.Writer) error {
	all := junitSuite{name: j.Name}
	for _, s := range j.suites {
		all.tests += s.tests
		all.failures += s.failures
		all.errors += s.errors
		all.skipped += s.skipped
		all.elapsed += s.elapsed
	}
	fmt.Fprintf(w, "%s<testsuites%s>\n", xml.Header, all.attributes())
	for _, s := range j.suites {
		when := ""
		if !j.Started.IsZero() {
			when = attribute("timestamp", j.Started.Format("2006-01-02T15:04:05"))
		}
		fmt.Fprintf(w, "  <testsuite%s%s>\n    <properties>\n", s.attributes(), when)
		for _, p := range j.Properties {
			fmt.Fprintf(w, "      <property%s%s></property>\n", attribute("name", p[0]), attribute("value", p[1]))
		}
		fmt.Fprintln(w, "    </properties>")
		for _, p := range s.pieces {
			if _, err := io.Copy(w, io.NewSectionReader(j.spool, p.from, p.to-p.from)); err != nil {
				return err
			}
		}
		fmt.Fprintln(w, "  </testsuite>")
	}
	_, err := fmt.Fprintln(w, "</testsuites>")
	return err
}

func (s *junitSuite) attributes() string {
	return attribute("name", s.name) + fmt.Sprintf(` tests="%d" failures="%d" errors="%d" skipped="%d" time="%s"`, s.tests, s.failures, s.errors, s.skipped, seconds(s.elapsed))
}

func attribute(name, value string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(Plain(value)))
	return fmt.Sprintf(` %s="%s"`, name, b.String())
}
