package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"time"

	"plumb/internal/campaign/report"
)

// Runs hands every run to each, the oldest first.
func (s *Store) Runs(each func(*Run) error) error { return s.runs(`true ORDER BY id`, each) }

// Run returns a run by its id, or the last one by "last".
func (s *Store) Run(name string) (*Run, error) {
	var found *Run
	take := func(r *Run) error { found = r; return nil }
	if name == "last" {
		if err := s.runs(`true ORDER BY id DESC LIMIT 1`, take); err != nil || found != nil {
			return found, err
		}
		return nil, fmt.Errorf("results store %s has no runs", s.path)
	}
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("run %q: want its number, or last", name)
	}
	if err := s.runs(`id = ?`, take, id); err != nil || found != nil {
		return found, err
	}
	return nil, fmt.Errorf("results store %s has no run %d", s.path, id)
}

func (s *Store) runs(where string, each func(*Run) error, args ...any) error {
	return s.query(`SELECT id, started, elapsed_ms, complete, config, config_sha256, baseline_sha256, candidate, candidate_version,
		reference, reference_version, flags, seed, plumb, functions, implemented, passed, failed, unsupported, skipped, unrecorded
		FROM runs WHERE `+where, args, func(rows *sql.Rows) error {
		var r Run
		var started, seed string
		var ms int64
		err := rows.Scan(&r.ID, &started, &ms, &r.Complete, &r.Config, &r.ConfigSHA256, &r.Baseline, &r.Candidate, &r.CandidateVersion,
			&r.Reference, &r.ReferenceVersion, &r.Flags, &seed, &r.Plumb, &r.Functions, &r.Implemented, &r.Passed, &r.Failed, &r.Unsupported, &r.Skipped, &r.Unrecorded)
		if err != nil {
			return err
		}
		r.Elapsed = float64(ms) / 1000
		if r.Started, err = time.Parse(time.RFC3339, started); err != nil {
			return fmt.Errorf("run %d: %w", r.ID, err)
		}
		if r.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
			return fmt.Errorf("run %d: %w", r.ID, err)
		}
		return each(&r)
	})
}

// Results hands the results of a run to each, in the order of the baseline.
func (s *Store) Results(run int64, each func(*Result) error) error {
	return s.query(`SELECT case_name, variant, position, function, dtypes, outcome, word, reason, lenient, compared, drawn, worst, worst_at, elapsed_us
		FROM results WHERE run = ? ORDER BY position, variant`, []any{run}, func(rows *sql.Rows) error {
		var r Result
		var outcome string
		var worst sql.NullFloat64
		var us sql.NullInt64
		err := rows.Scan(&r.Case, &r.Variant, &r.Position, &r.Function, &r.DTypes, &outcome, &r.Word, &r.Reason, &r.Lenient, &r.Compared, &r.Drawn, &worst, &r.WorstAt, &us)
		if err != nil {
			return err
		}
		r.Outcome, r.Worst, r.Elapsed = report.Outcome(outcome), math.NaN(), time.Duration(us.Int64)*time.Microsecond
		if worst.Valid {
			r.Worst = worst.Float64
		}
		return each(&r)
	})
}

// Change is a variant of a case whose word differs between two runs.
type Change struct {
	Case     string `json:"case"`
	Variant  string `json:"variant,omitempty"`
	Function string `json:"function"`
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

// Diff hands the changes from one run to another to each: what fails newly
// first, then what is no longer judged, then what passes newly, each in the order of the later run's baseline.
func (s *Store) Diff(before, after int64, each func(*Change) error) error {
	return s.query(`SELECT b.case_name, b.variant, b.function,
			CASE WHEN b.outcome = 'failed' AND a.outcome <> 'failed' THEN 0
				WHEN a.outcome IN ('passed', 'failed') AND b.outcome NOT IN ('passed', 'failed') THEN 1
				WHEN b.outcome = 'passed' AND a.outcome <> 'passed' THEN 2 ELSE 3 END AS kind,
			coalesce(nullif(a.word, ''), a.outcome), coalesce(nullif(b.word, ''), b.outcome), b.reason
		FROM results b JOIN results a ON a.run = ? AND a.case_name = b.case_name AND a.variant = b.variant
		WHERE b.run = ? AND a.word <> b.word ORDER BY kind, b.position, b.variant`, []any{before, after}, func(rows *sql.Rows) error {
		var c Change
		var kind int
		if err := rows.Scan(&c.Case, &c.Variant, &c.Function, &kind, &c.Before, &c.After, &c.Reason); err != nil {
			return err
		}
		c.Kind = []string{NewlyFailing, NoLongerJudged, NewlyPassing, Changed}[kind]
		return each(&c)
	})
}

// Only counts the results of a run that another run has not.
func (s *Store) Only(run, other int64) (n int, err error) {
	err = s.query(`SELECT count(*) FROM results b WHERE b.run = ? AND NOT EXISTS
		(SELECT 1 FROM results a WHERE a.run = ? AND a.case_name = b.case_name AND a.variant = b.variant)`, []any{run, other},
		func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Common counts the results that two runs have both.
func (s *Store) Common(run, other int64) (n int, err error) {
	err = s.query(`SELECT count(*) FROM results b JOIN results a ON a.run = ? AND a.case_name = b.case_name AND a.variant = b.variant
		WHERE b.run = ?`, []any{other, run}, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// query hands each row of a query on.
func (s *Store) query(text string, args []any, each func(*sql.Rows) error) error {
	rows, err := s.conn.QueryContext(context.Background(), text, args...)
	if err != nil {
		return s.fail("read", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return s.fail("read", err)
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail("read", err)
	}
	return nil
}
