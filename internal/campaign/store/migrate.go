package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"plumb/internal/campaign/report"
)

// tables1 are those of version 1, which had conformance runs alone.
var tables1 = []object{
	{"runs", `CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  started TEXT NOT NULL,            -- RFC 3339, UTC
  elapsed_ms INTEGER NOT NULL,
  complete INTEGER NOT NULL,        -- 1 where every case is in results
  config TEXT NOT NULL,
  config_sha256 TEXT NOT NULL,
  baseline_sha256 TEXT NOT NULL,    -- of the manifest
  candidate TEXT NOT NULL,
  candidate_version TEXT NOT NULL,
  reference TEXT NOT NULL,
  reference_version TEXT NOT NULL,
  flags TEXT NOT NULL,              -- JSON: what changes verdicts
  seed TEXT NOT NULL,
  plumb TEXT NOT NULL,
  functions INTEGER NOT NULL,       -- of which the reference computed a case
  implemented INTEGER NOT NULL,     -- of these
  passed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  unsupported INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  unrecorded INTEGER NOT NULL
) STRICT`},
	{"results", `CREATE TABLE results (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  case_name TEXT NOT NULL,
  variant TEXT NOT NULL,            -- '' or 'inplace'
  position INTEGER NOT NULL,        -- of the case in the baseline
  function TEXT NOT NULL,
  dtypes TEXT NOT NULL,             -- of the arguments, distinct, in order
  outcome TEXT NOT NULL,            -- passed failed unsupported skipped unrecorded
  word TEXT NOT NULL,               -- the verdict; '' of a skipped case
  reason TEXT NOT NULL,
  lenient TEXT NOT NULL,            -- what DIOPI's comparison says: passes fails
  compared INTEGER NOT NULL,        -- tensors
  drawn INTEGER NOT NULL,           -- of these, judged by statistics
  worst REAL,                       -- observed error / limit
  worst_at TEXT NOT NULL,
  elapsed_us INTEGER,               -- of the candidate
  PRIMARY KEY (run, case_name, variant)
) STRICT, WITHOUT ROWID`},
}

// migrate makes a file of an earlier version one of this: all or nothing of it.
func (s *Store) migrate(ctx context.Context) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil || version == Version {
			return err // another process has done it
		}
		if version > 1 {
			var texts []string
			if version == 2 {
				texts = textsOf(campaignTables)
			}
			if version <= 3 {
				texts = slices.Concat(texts, textsOf(rollupTables), rollUp)
			}
			return execute(ctx, tx, slices.Concat(texts, textsOf(digestTables), []string{digestAll}, marks()))
		}
		err := execute(ctx, tx, append([]string{`ALTER TABLE runs RENAME TO runs1`, `ALTER TABLE results RENAME TO results1`}, statements()...))
		if err != nil {
			return err
		}
		runs, err := runs1(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if err := s.migrateRun(ctx, tx, r); err != nil {
				return err
			}
		}
		return execute(ctx, tx, []string{`DROP TABLE results1`, `DROP TABLE runs1`})
	})
}

// runs1 are the runs of version 1.
func runs1(ctx context.Context, tx *sql.Tx) (all []*Run, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT id, started, elapsed_ms, complete, config, config_sha256, baseline_sha256,
		candidate, candidate_version, reference, reference_version, flags, seed, plumb FROM runs1 ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r := &Run{Command: "plumb conform run", Recording: &Recording{}, Subjects: make([]Subject, 2)}
		var started, seed string
		var ms int64
		err := rows.Scan(&r.ID, &started, &ms, &r.Complete, &r.Recording.Config, &r.Recording.ConfigSHA256, &r.Recording.Baseline,
			&r.Subjects[1].Name, &r.Subjects[1].Version, &r.Subjects[0].Name, &r.Subjects[0].Version, &r.Recording.Flags, &seed, &r.Plumb)
		if err != nil {
			return nil, err
		}
		r.Elapsed = float64(ms) / 1000
		if r.Started, err = time.Parse(time.RFC3339, started); err != nil {
			return nil, err
		}
		if r.Written = r.Started.Add(time.Duration(ms) * time.Millisecond); r.Complete {
			r.Ended = r.Written
		}
		if r.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// migrateRun writes a run of version 1 and its results, under the id it had.
func (s *Store) migrateRun(ctx context.Context, tx *sql.Tx, r *Run) error {
	if err := s.insertRun(ctx, tx, r); err != nil {
		return err
	}
	w := newWriter(s, r.ID)
	rows, err := tx.QueryContext(ctx, `SELECT case_name, variant, position, function, dtypes, outcome, word, reason, lenient,
		compared, drawn, worst, worst_at, elapsed_us FROM results1 WHERE run = ? ORDER BY position, variant`, r.ID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := Case{Subject: r.Subjects[1].Name, Worst: math.NaN()}
		var outcome string
		var worst sql.NullFloat64
		var us sql.NullInt64
		err := rows.Scan(&c.Name, &c.Variant, &c.Number, &c.Test, &c.DTypes, &outcome, &c.Word, &c.Reason, &c.Lenient,
			&c.Compared, &c.Drawn, &worst, &c.WorstAt, &us)
		if err != nil {
			return err
		}
		c.Outcome, c.Operators, c.Elapsed = report.Outcome(outcome), []string{c.Test}, time.Duration(us.Int64)*time.Microsecond
		if worst.Valid {
			c.Worst = worst.Float64
		}
		if w.batch = append(w.batch, c); len(w.batch) >= batchCases {
			if err := w.write(ctx, tx); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return w.write(ctx, tx)
}

// encoded is a value as JSON.
func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "null" // strings and maps of them have JSON
	}
	return string(text)
}
