package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"plumb/internal/find/finding"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
)

// Matrix says what of the operators each of several subjects has, and how well
// it agrees with the reference, by cases that were drawn from the operators'
// definitions. It is a sink of a run, or is read from what JSON wrote of some.
type Matrix struct {
	Reference string           `json:"reference"`
	Seeds     []uint64         `json:"seeds"`
	Subjects  []*MatrixSubject `json:"subjects"`
	Operators []*MatrixRow     `json:"operators"`
	// Elsewhere counts the records of tests that are not about one operator.
	Elsewhere int `json:"elsewhere,omitempty"`

	rows map[string]*MatrixRow
}

// MatrixSubject sums up a column.
type MatrixSubject struct {
	Subject   string `json:"subject"`
	Has       int    `json:"has"`       // operators
	Operators int    `json:"operators"` // of which a case was asked that the reference supports
	MatrixCounts
}

// MatrixRow is what each subject does with an operator.
type MatrixRow struct {
	Operator string        `json:"operator"`
	Cells    []*MatrixCell `json:"subjects"`
}

// MatrixCell is an operator of a subject.
type MatrixCell struct {
	Subject string `json:"subject"`
	// Has says that the subject has the operator: some legal case was computed, or
	// failed otherwise than as unsupported.
	Has bool `json:"has"`
	MatrixCounts
	// Reason is that of the first finding, or, where there is none, of the first
	// case that the subject does not support.
	Reason string `json:"reason,omitempty"`

	last  string // the case counted last
	found bool   // Reason is of a finding
}

// MatrixCounts are the numbers of a cell, and of a column.
type MatrixCounts struct {
	Cases   int `json:"cases"` // that the reference supports and that fit into memory
	Aligned int `json:"aligned"`
	// Refused are calls that break a rule and that both sides refuse.
	Refused     int `json:"refused"`
	Known       int `json:"known"` // proved faults of the reference, accepted failures
	Findings    int `json:"findings"`
	Unsupported int `json:"unsupported"`
	ForwardOnly int `json:"forward_only"` // of the aligned, those without their gradients
	// Share is the share of what was judged that is aligned, refused or known;
	// null of nothing.
	Share *float64       `json:"share"`
	Worst compare.Number `json:"worst"` // observed error ÷ limit
	// Time is the median of the subject's time ÷ the reference's over the aligned
	// cases; null where a side does not tell. Of a column it is the median of the
	// operators'.
	Time *float64 `json:"time_ratio"`

	times []float64
}

// matrixCase is what a matrix takes of a record, by the names that JSON gives.
type matrixCase struct {
	Test             string         `json:"test"`
	Case             int            `json:"case"`
	Candidate        string         `json:"candidate"`
	Verdict          verdict.Word   `json:"verdict"`
	Reason           string         `json:"reason"`
	Worst            compare.Number `json:"worst"`
	OfReference      bool           `json:"of_reference"`
	ForwardOnly      bool           `json:"forward_only"`
	Seconds          float64        `json:"seconds"`
	ReferenceSeconds float64        `json:"reference_seconds"`
}

// Illegal is the variant of an operator's test whose calls break a rule.
const Illegal = "illegal"

// OperatorTest names the test of an operator's cases in a variant, such as a dtype.
func OperatorTest(id, variant string) string { return fmt.Sprintf("ops::%s[%s]", id, variant) }

// OperatorOf returns the operator that a test is about, and the variant; false
// for any other test.
func OperatorOf(test string) (id, variant string, ok bool) {
	rest, ok := strings.CutPrefix(test, "ops::")
	id, variant, cut := strings.Cut(strings.TrimSuffix(rest, "]"), "[")
	return id, variant, ok && cut && strings.HasSuffix(rest, "]")
}

// NewMatrix returns an empty matrix of subjects.
func NewMatrix(subjects ...string) *Matrix {
	m := &Matrix{rows: map[string]*MatrixRow{}}
	for _, s := range subjects {
		m.subject(s)
	}
	return m
}

func (m *Matrix) subject(name string) int {
	at := slices.IndexFunc(m.Subjects, func(s *MatrixSubject) bool { return s.Subject == name })
	if at < 0 {
		at = len(m.Subjects)
		m.Subjects = append(m.Subjects, &MatrixSubject{Subject: name})
	}
	return at
}

// cell returns that of an operator and a subject.
func (m *Matrix) cell(operator, subject string) *MatrixCell {
	at := m.subject(subject)
	row := m.rows[operator]
	if row == nil {
		row = &MatrixRow{Operator: operator}
		m.rows[operator] = row
		m.Operators = append(m.Operators, row)
	}
	for len(row.Cells) < len(m.Subjects) {
		row.Cells = append(row.Cells, &MatrixCell{Subject: m.Subjects[len(row.Cells)].Subject})
	}
	return row.Cells[at]
}

// Record counts a record.
func (m *Matrix) Record(r *verdict.Record) {
	v := r.Verdict
	m.add(&matrixCase{
		Test: r.Test, Case: r.Index, Candidate: r.Candidate, Verdict: v.Word, Reason: v.Reason, Worst: v.Worst, OfReference: v.OfReference,
		ForwardOnly: v.ForwardOnly, Seconds: elapsed(r.Outcome).Seconds(), ReferenceSeconds: elapsed(r.Reference).Seconds(),
	})
}

// End does nothing: a test that cannot be judged has no cases.
func (m *Matrix) End(*verdict.End) {}

// Findings does nothing: the failing cases were counted.
func (m *Matrix) Findings([]*finding.Finding) {}

// Summary takes the run's reference and seed, and finishes the matrix.
func (m *Matrix) Summary(s *Summary) {
	m.Reference, m.Seeds = s.Reference, []uint64{s.Seed}
	m.finish()
}

func (m *Matrix) add(c *matrixCase) {
	id, variant, ok := OperatorOf(c.Test)
	if !ok {
		m.Elsewhere++
		return
	}
	cell := m.cell(id, c.Candidate)
	key := fmt.Sprint(c.Test, c.Case)
	if c.OfReference || c.Verdict == verdict.Skipped || cell.last == key { // a case that fails differently in several modes counts once
		return
	}
	cell.last = key
	if c.Verdict == verdict.Aligned || c.Verdict.IsFinding() {
		cell.Worst = max(cell.Worst, c.Worst)
	}
	switch {
	case c.Verdict == verdict.Aligned:
		cell.Aligned++
		if c.ForwardOnly {
			cell.ForwardOnly++
		}
		if c.Seconds > 0 && c.ReferenceSeconds > 0 {
			cell.times = append(cell.times, c.Seconds/c.ReferenceSeconds)
		}
	case c.Verdict == verdict.Rejected && variant != Illegal:
		return // another draw stands for it
	case c.Verdict == verdict.Rejected:
		cell.Refused++
	case c.Verdict == verdict.Unsupported:
		cell.Unsupported++
	case c.Verdict.IsFinding():
		cell.Findings++
	default:
		cell.Known++
	}
	cell.Cases++
	if c.Verdict.IsFinding() && !cell.found || c.Verdict == verdict.Unsupported && cell.Reason == "" {
		cell.Reason, cell.found = firstLine(c.Reason), c.Verdict.IsFinding()
	}
	cell.Has = cell.Has || variant != Illegal && c.Verdict != verdict.Unsupported
}

// finish sorts the rows and computes what follows from the counts.
func (m *Matrix) finish() {
	slices.SortFunc(m.Operators, func(a, b *MatrixRow) int { return strings.Compare(a.Operator, b.Operator) })
	for i, s := range m.Subjects {
		*s = MatrixSubject{Subject: s.Subject}
		for _, row := range m.Operators {
			m.cell(row.Operator, s.Subject).settle()
			s.count(row.Cells[i])
		}
		s.settle()
	}
}

// count adds a cell to its column.
func (s *MatrixSubject) count(c *MatrixCell) {
	if c.Cases == 0 {
		return
	}
	s.Operators++
	s.Unsupported, s.Cases = s.Unsupported+c.Unsupported, s.Cases+c.Cases
	if !c.Has {
		return
	}
	s.Has++
	s.Aligned, s.Refused, s.Known, s.Findings = s.Aligned+c.Aligned, s.Refused+c.Refused, s.Known+c.Known, s.Findings+c.Findings
	s.ForwardOnly += c.ForwardOnly
	s.Worst = max(s.Worst, c.Worst)
	if c.Time != nil {
		s.times = append(s.times, *c.Time)
	}
}

func (n *MatrixCounts) settle() {
	if passed := n.Aligned + n.Refused + n.Known; passed+n.Findings > 0 {
		n.Share = new(float64)
		*n.Share = float64(passed) / float64(passed+n.Findings)
	}
	if len(n.times) > 0 {
		slices.Sort(n.times)
		n.Time = &n.times[len(n.times)/2]
	}
}

// Wrong counts the findings.
func (m *Matrix) Wrong() int {
	n := 0
	for _, s := range m.Subjects {
		n += s.Findings
	}
	return n
}

// ReadMatrix returns the matrix of what JSON wrote of runs.
func ReadMatrix(files ...io.Reader) (*Matrix, error) {
	m := NewMatrix()
	for _, f := range files {
		if err := m.read(f); err != nil {
			return nil, err
		}
	}
	if len(m.Operators) == 0 {
		return nil, errors.New("no case here was drawn from an operator's definition; plumb ops run PATTERN… --json writes such")
	}
	m.finish()
	return m, nil
}

// read takes the lines of one run.
func (m *Matrix) read(f io.Reader) error {
	for lines := json.NewDecoder(f); ; {
		var line struct {
			matrixCase
			Summary *struct {
				Reference string `json:"reference"`
				Seed      uint64 `json:"seed"`
			} `json:"summary"`
		}
		switch err := lines.Decode(&line); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("these are no records of --json: %w", err)
		}
		if s := line.Summary; s != nil {
			if m.Reference != "" && m.Reference != s.Reference {
				return fmt.Errorf("the runs have different references, %s and %s: their shares cannot be put side by side", m.Reference, s.Reference)
			}
			m.Reference = cmp.Or(m.Reference, s.Reference)
			if !slices.Contains(m.Seeds, s.Seed) {
				m.Seeds = append(m.Seeds, s.Seed)
			}
		}
		if line.Verdict != "" {
			m.add(&line.matrixCase)
		}
	}
}
