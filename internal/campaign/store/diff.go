package store

import (
	"database/sql"
	"fmt"
)

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
func kindOf(a, b string) string {
	return fmt.Sprintf(`CASE WHEN %[2]s = 4 AND %[1]s <> 4 THEN 0 WHEN %[1]s >= 3 AND %[2]s < 3 THEN 1 WHEN %[2]s = 3 AND %[1]s <> 3 THEN 2 ELSE 3 END`, a, b)
}

// Overlap is how many cases two runs have.
type Overlap struct{ Common, OnlyBefore, OnlyAfter int }

// sides are the cases of two runs in the tests that are unlike, each with the worst of
// its modes before and after: 5 bits of outcome, 25 of verdict and 33 of n, so that the
// largest is the worst. A case is the same in two runs where its program is. Where the
// tests are scattered over the runs, all cases are read once instead; where few programs
// are common, their cases alone are kept.
func sides(scattered, few bool) string {
	from, where := `(SELECT d.run AS r, d.test AS t, d.subject AS s, d.first AS f, d.last AS l FROM `+unlike+`) CROSS JOIN cases`, `run = r AND n BETWEEN f AND l AND test = t AND subject = s`
	if scattered {
		from, where = `cases`, `run IN (?1, ?2) AND (test, subject) IN (SELECT d.test, d.subject FROM `+unlike+`)`
	}
	if few {
		where = `program IN (SELECT unhex(value) FROM json_each(?3)) AND ` + where
	}
	return `SELECT max(iif(run = ?1, (outcome << 58) | (verdict << 33) | n, NULL)) AS a, max(iif(run = ?2, (outcome << 58) | (verdict << 33) | n, NULL)) AS b
	FROM ` + from + ` WHERE ` + where + ` GROUP BY test, name, variant, number, coalesce(program, x''), subject`
}

const (
	sideVerdict = `>> 33 & 0x1ffffff`
	sideN       = `& 0x1ffffffff`
)

// Diff hands the changes from one run to another to each: what fails newly
// first, then what is no longer judged, then what passes newly, each in the order
// of the later run.
func (s *Store) Diff(before, after int64, each func(*Change) error) (o Overlap, err error) {
	cases, err := s.alike(before, after)
	if err != nil {
		return o, err
	}
	most, scattered, err := s.spread(before, after)
	if err != nil {
		return o, err
	}
	args, few := []any{before, after}, false
	if most {
		var common string
		if common, few, err = s.fewCommon(before, after); err != nil {
			return o, err
		}
		if few {
			args = append(args, common)
		}
	}
	err = s.query(`WITH sides AS MATERIALIZED (`+sides(scattered, few)+`), changes AS (
			SELECT -1 AS kind, -1 AS at, count(a) + count(b) - count(*) AS a, 0 AS b FROM sides
			UNION ALL SELECT `+kindOf("(a >> 58)", "(b >> 58)")+`, b `+sideN+`, a `+sideVerdict+`, b `+sideVerdict+` FROM sides WHERE a `+sideVerdict+` <> b `+sideVerdict+`)
		SELECT kind, changes.a, changes.b, coalesce(`+name("test")+`, ''), coalesce(`+name("name")+`, ''), coalesce(`+name("variant")+`, ''), coalesce(number, 0), lower(hex(program)), coalesce(`+name("subject")+`, ''),
			coalesce(nullif((SELECT text FROM names WHERE id = changes.a), ''), 'skipped'), coalesce(nullif((SELECT text FROM names WHERE id = changes.b), ''), 'skipped'),
			coalesce((SELECT reason FROM details d WHERE d.run = ?2 AND d.n = at), '')
		FROM changes LEFT JOIN cases c ON c.run = ?2 AND c.n = at ORDER BY kind, at`, args, func(rows *sql.Rows) error {
		var c Change
		var kind, common, y int
		if err := rows.Scan(&kind, &common, &y, &c.Test, &c.Case, &c.Variant, &c.Number, &c.Program, &c.Subject, &c.Before, &c.After, &c.Reason); err != nil {
			return err
		}
		if kind < 0 {
			o.Common = cases.alike + common
			o.OnlyBefore, o.OnlyAfter = cases.before-o.Common, cases.after-o.Common
			return nil
		}
		c.Kind = changes[kind]
		return each(&c)
	})
	return o, err
}

// DiffTests hands the changes of tests to each, in the order of Diff: a test is
// as its worst case. It compares runs of other seeds too, whose cases are others.
func (s *Store) DiffTests(before, after int64, each func(*Change) error) error {
	const worst = `(SELECT name, subject, max(outcome) AS outcome, verdict FROM totals WHERE run = ? AND kind = 2 GROUP BY name, subject)`
	text := func(column string) string { return `(SELECT text FROM names WHERE id = ` + column + `)` }
	return s.query(`SELECT `+text("name")+`, `+text("subject")+`, `+kindOf("a.outcome", "b.outcome")+` AS kind,
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
