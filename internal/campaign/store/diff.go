package store

import "database/sql"

// Change is a case, or a test, whose verdict differs between two runs.
type Change struct {
	Test    string `json:"test"`
	Case    string `json:"case,omitempty"`
	Variant string `json:"variant,omitempty"`
	Number  int    `json:"number"`
	Program string `json:"program,omitempty"`
	Subject string `json:"subject"`
	// Kind is "newly failing", "no longer judged", "newly passing", or "changed"
	// where none of these is so.
	Kind   string `json:"change"`
	Before string `json:"before"` // the words; "skipped" where there is none
	After  string `json:"after"`
	Reason string `json:"reason,omitempty"` // after
}

// The kinds of changes.
const (
	NewlyFailing   = "newly failing"
	NoLongerJudged = "no longer judged"
	NewlyPassing   = "newly passing"
	Changed        = "changed"
)

var changes = []string{NewlyFailing, NoLongerJudged, NewlyPassing, Changed}

// kindOf is the number of a kind of change, of the outcomes a before and b after.
const kindOf = `CASE WHEN b.outcome = 4 AND a.outcome <> 4 THEN 0 WHEN a.outcome >= 3 AND b.outcome < 3 THEN 1
	WHEN b.outcome = 3 AND a.outcome <> 3 THEN 2 ELSE 3 END`

// worstOf are the cases of a run, each with the worst of its modes. The case is
// the same in two runs where its program is. The other columns are those of the
// row with the worst outcome: SQLite's promise for max.
const worstOf = `(SELECT test, name, variant, number, coalesce(program, x'') AS program, subject, max(outcome) AS outcome, verdict, n
	FROM cases WHERE run = ? GROUP BY test, name, variant, number, coalesce(program, x''), subject)`

// both joins the cases that two runs, a and b, have.
const both = worstOf + ` b JOIN ` + worstOf + ` a USING (test, name, variant, number, program, subject)`

// Diff hands the changes from one run to another to each: what fails newly
// first, then what is no longer judged, then what passes newly, each in the order
// of the later run.
func (s *Store) Diff(before, after int64, each func(*Change) error) error {
	text := func(column string) string { return `(SELECT text FROM names WHERE id = ` + column + `)` }
	return s.query(`SELECT `+text("test")+`, `+text("name")+`, `+text("variant")+`, number, lower(hex(program)), `+text("subject")+`, `+kindOf+` AS kind,
			coalesce(nullif(`+text("a.verdict")+`, ''), 'skipped'), coalesce(nullif(`+text("b.verdict")+`, ''), 'skipped'),
			coalesce((SELECT reason FROM details d WHERE d.run = ? AND d.n = b.n), '')
		FROM `+both+` WHERE a.verdict <> b.verdict ORDER BY kind, b.n`, []any{after, after, before}, func(rows *sql.Rows) error {
		var c Change
		var kind int
		if err := rows.Scan(&c.Test, &c.Case, &c.Variant, &c.Number, &c.Program, &c.Subject, &kind, &c.Before, &c.After, &c.Reason); err != nil {
			return err
		}
		c.Kind = changes[kind]
		return each(&c)
	})
}

// Common counts the cases that two runs have both.
func (s *Store) Common(run, other int64) (int, error) {
	return s.count(`SELECT count(*) FROM `+both, run, other)
}

// Only counts the cases of a run that another run has not.
func (s *Store) Only(run, other int64) (int, error) {
	all, err := s.count(`SELECT count(*) FROM `+worstOf, run)
	if err != nil {
		return 0, err
	}
	common, err := s.Common(run, other)
	return all - common, err
}

// DiffTests hands the changes of tests to each, in the order of Diff: a test is
// as its worst case. It compares runs of other seeds too, whose cases are others.
func (s *Store) DiffTests(before, after int64, each func(*Change) error) error {
	const worst = `(SELECT name, subject, max(outcome) AS outcome, verdict FROM totals WHERE run = ? AND kind = 2 GROUP BY name, subject)`
	text := func(column string) string { return `(SELECT text FROM names WHERE id = ` + column + `)` }
	return s.query(`SELECT `+text("name")+`, `+text("subject")+`, `+kindOf+` AS kind,
			coalesce(nullif(`+text("a.verdict")+`, ''), 'skipped'), coalesce(nullif(`+text("b.verdict")+`, ''), 'skipped')
		FROM `+worst+` b JOIN `+worst+` a USING (name, subject) WHERE a.outcome <> b.outcome ORDER BY kind, 1, 2`, []any{after, before}, func(rows *sql.Rows) error {
		var c Change
		var kind int
		if err := rows.Scan(&c.Test, &c.Subject, &kind, &c.Before, &c.After); err != nil {
			return err
		}
		c.Kind = changes[kind]
		return each(&c)
	})
}

// CommonTests counts the tests of subjects that two runs have both.
func (s *Store) CommonTests(run, other int64) (int, error) {
	const tests = `(SELECT DISTINCT name, subject FROM totals WHERE kind = 2 AND run = ?)`
	return s.count(`SELECT count(*) FROM `+tests+` JOIN `+tests+` USING (name, subject)`, run, other)
}

func (s *Store) count(text string, args ...any) (n int, err error) {
	err = s.query(text, args, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}
