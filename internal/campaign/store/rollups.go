package store

import (
	"context"
	"database/sql"
	"errors"
)

// rollupTables are those that version 3 has not: what pages ask often, kept with
// what it is made from.
var rollupTables = []object{
	{"progress", `CREATE TABLE progress (
  run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  wanted INTEGER NOT NULL,          -- cases; 0 where that is not known
  written_ms INTEGER NOT NULL,      -- when something was last written
  doing TEXT NOT NULL               -- '' where it has ended
) STRICT`},
	{"latest", `CREATE TABLE latest (
  kind INTEGER NOT NULL,            -- of totals
  name INTEGER NOT NULL,
  subject INTEGER NOT NULL,
  run INTEGER NOT NULL,             -- the last that has it
  PRIMARY KEY (kind, name, subject)
) STRICT, WITHOUT ROWID`},
	{"spans", `CREATE TABLE spans (
  finding INTEGER PRIMARY KEY REFERENCES findings (id),
  first INTEGER NOT NULL,           -- run in which it was seen
  last INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  cases INTEGER NOT NULL
) STRICT`},
	{"spans_by_last", `CREATE INDEX spans_by_last ON spans (last DESC, finding)`},
	{"gone", `CREATE TABLE gone (
  run INTEGER PRIMARY KEY           -- that was deleted: no other has its number
) STRICT`},
}

// rollUp fills the tables of a file of version 3.
var rollUp = []string{
	`INSERT INTO progress SELECT id, 0, coalesce(ended_ms, started_ms + elapsed_ms), '' FROM runs`,
	`INSERT INTO latest SELECT kind, name, subject, max(run) FROM totals GROUP BY kind, name, subject`,
	`INSERT INTO spans ` + spansOf + ` GROUP BY finding`,
}

const spansOf = `SELECT finding, min(run), max(run), count(*), sum(cases) FROM sightings`

// span renews the span of a finding.
func span(ctx context.Context, tx *sql.Tx, finding int64) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM spans WHERE finding = ?`, finding); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO spans `+spansOf+` WHERE finding = ? GROUP BY finding`, finding)
	return err
}

// latestKey is a row of latest.
type latestKey struct {
	kind          Kind
	name, subject string
}

// addLatest keeps that the run has a name, which it says once.
func (w *Writer) addLatest(ctx context.Context, key total, name, subject any) error {
	k := latestKey{key.kind, key.name, key.subject}
	if w.told[k] {
		return nil
	}
	_, err := w.does.exec(ctx, `INSERT INTO latest (kind, name, subject, run) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET run = max(run, excluded.run)`, key.kind, name, subject, w.ID)
	if w.told == nil || len(w.told) >= maxNames {
		w.told = map[latestKey]bool{}
	}
	w.told[k] = true
	return err
}

// Delete deletes a run with all that it has. Its number is given to no other, and
// findings keep theirs, whose first and last runs are those that are left. The run is
// gone at once; its cases go piece by piece, so that others write meanwhile, and where
// that is interrupted the next Delete or Vacuum removes what is left.
func (s *Store) Delete(run int64) error {
	ctx := context.Background()
	err := s.unbound(ctx, func() error {
		if err := s.transaction(ctx, func(tx *sql.Tx) error { return forget(ctx, tx, run) }); err != nil {
			return err
		}
		return s.sweep(ctx)
	})
	if err != nil {
		return s.fail("delete a run", err)
	}
	return nil
}

// unbound does something while rows may refer to a run that is gone.
func (s *Store) unbound(ctx context.Context, do func() error) error {
	if _, err := s.conn.ExecContext(ctx, `PRAGMA foreign_keys = 0`); err != nil {
		return err
	}
	err := do()
	_, err2 := s.conn.ExecContext(ctx, `PRAGMA foreign_keys = 1`)
	return errors.Join(err, err2)
}

// ofRun are the tables with rows of a run beside those of cases.
var ofRun = []string{"subjects", "recordings", "totals", "sightings", "campaigns", "specs", "parts", "units", "progress", "digests"}

// ofCases are the tables with a row of a case.
var ofCases = []string{"details", "cases"}

// forget removes all of a run but its cases.
func forget(ctx context.Context, tx *sql.Tx, run int64) error {
	findings, err := integers(ctx, tx, `SELECT finding FROM sightings WHERE run = ?`, run)
	if err != nil {
		return err
	}
	texts := []string{`INSERT INTO gone (run) SELECT id FROM runs WHERE id = ?1`}
	for _, table := range ofRun {
		texts = append(texts, `DELETE FROM `+table+` WHERE run = ?1`)
	}
	texts = append(texts, `DELETE FROM runs WHERE id = ?1`,
		`DELETE FROM latest WHERE run = ?1 AND NOT EXISTS (`+ofLatest+`)`,
		`UPDATE latest SET run = (SELECT max(t.run) FROM (`+ofLatest+`) t) WHERE run = ?1`)
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text, run); err != nil {
			return err
		}
	}
	for _, f := range findings {
		if err := span(ctx, tx, f); err != nil {
			return err
		}
	}
	return nil
}

// piece is how many rows a transaction of sweep removes.
const piece = 50_000

// sweep removes the cases of runs that are gone.
func (s *Store) sweep(ctx context.Context) error {
	for _, table := range ofCases {
		for {
			var run, first int64
			err := s.conn.QueryRowContext(ctx, `SELECT run, (SELECT min(n) FROM `+table+` WHERE run = gone.run) AS first FROM gone WHERE first IS NOT NULL LIMIT 1`).Scan(&run, &first)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err == nil {
				_, err = s.conn.ExecContext(ctx, `DELETE FROM `+table+` WHERE run = ? AND n < ?`, run, first+piece)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// ofLatest are the totals of a row of latest.
const ofLatest = `SELECT run FROM totals WHERE kind = latest.kind AND name = latest.name AND subject = latest.subject`

func integers(ctx context.Context, tx *sql.Tx, text string, args ...any) (all []int64, err error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}
