// Package store keeps the results of conformance runs in a SQLite file: a row
// per run and a row per judged variant of a case, for histories and to go on
// with a run that was interrupted. It holds text and numbers alone; nothing in
// a file is executed, and one whose tables are not exactly those of this
// package is refused.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite" // registers itself as a driver
)

// Version is the version of the tables that this package writes and the newest
// that it reads. It is the file's user_version.
const Version = 1

// application is the file's application_id: "Plmb".
const application = 0x506c6d62

// The most that a file may make a reader hold.
const (
	maxValue  = 1 << 20 // bytes of one value or row
	maxReason = 4 << 10 // bytes of a reason that is written
	maxName   = 1 << 10 // of other texts
)

const limitLength = 0 // SQLITE_LIMIT_LENGTH

// tables are the statements that make the tables of a file, by name.
var tables = map[string]string{
	"runs": `CREATE TABLE runs (
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
) STRICT`,
	"results": `CREATE TABLE results (
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
) STRICT, WITHOUT ROWID`,
}

// Store is an opened file. It is used by one goroutine at a time; other
// processes may read and write the file meanwhile.
type Store struct {
	path string
	db   *sql.DB
	conn *sql.Conn
}

// Open opens a file to write to, and makes it where there is none.
func Open(path string) (*Store, error) { return open(path, "rwc") }

// Read opens a file that exists; nothing is written to it.
func Read(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("results store: %w", err)
	}
	return open(path, "rw&_pragma=query_only(1)")
}

func open(path, mode string) (_ *Store, err error) {
	s := &Store{path: path}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, s.fail("open", errors.New("it is not a regular file"))
	}
	defer func() {
		if err != nil {
			err = errors.Join(s.fail("open", err), s.Close())
		}
	}()
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=trusted_schema(0)&_txlock=immediate&mode=" + mode
	if s.db, err = sql.Open("sqlite", dsn); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err = sqlite.Limit(s.conn, limitLength, maxValue); err != nil {
		return nil, err
	}
	if strings.HasPrefix(mode, "rwc") {
		err = s.create(ctx)
	}
	if err == nil {
		err = s.check(ctx)
	}
	return s, err
}

// create makes the tables of an empty file.
func (s *Store) create(ctx context.Context) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		var objects int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil || objects > 0 {
			return err
		}
		for _, text := range []string{tables["runs"], tables["results"], fmt.Sprintf(`PRAGMA application_id = %d`, application), fmt.Sprintf(`PRAGMA user_version = %d`, Version)} {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// check refuses a file that is not exactly what create makes.
func (s *Store) check(ctx context.Context) error {
	var id, version int
	if err := s.conn.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return err
	}
	if err := s.conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	switch {
	case id != application:
		return errors.New("it is a database of another program, not a results store of Plumb")
	case version < 1 || version > Version:
		return fmt.Errorf("it has version %d of the tables; this Plumb reads up to %d", version, Version)
	}
	return s.checkTables(ctx)
}

func (s *Store) checkTables(ctx context.Context) error {
	rows, err := s.conn.QueryContext(ctx, `SELECT name, coalesce(sql, '') FROM sqlite_schema`)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		if want, ok := tables[name]; !ok || text != want {
			return fmt.Errorf("its %q is none of the tables of version %d", name, Version)
		}
		found++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if found != len(tables) {
		return fmt.Errorf("it lacks tables of version %d", Version)
	}
	return nil
}

// Close closes the file.
func (s *Store) Close() error {
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}

// fail adds the file and what was done with it to an error.
func (s *Store) fail(doing string, err error) error {
	return fmt.Errorf("results store %s: %s: %w", s.path, doing, err)
}

func (s *Store) transaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // SQLite has done it where the disk is full
		return err
	}
	return tx.Commit()
}

// cut is the start of a text, valid UTF-8 and at most n bytes long.
func cut(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
