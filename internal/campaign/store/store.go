// Package store keeps the results of runs in a SQLite file: a row per run, a row
// per judged case, and totals of these, for histories, trends, and to go on with a
// run that was interrupted. It holds text and numbers alone; nothing in a file is
// executed, and one whose tables are not exactly those of this package is
// refused.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"modernc.org/sqlite" // registers itself as a driver
	sqlite3 "modernc.org/sqlite/lib"
)

// application is the file's application_id: "Plmb".
const application = 0x506c6d62

// The most that a file may make a reader hold.
const (
	maxValue     = 1 << 20 // bytes of one value or row
	maxReason    = 4 << 10 // bytes of a reason that is written
	maxName      = 1 << 10 // of other texts
	maxProgram   = 64 << 10
	maxArguments = 256
)

const limitLength = 0 // SQLITE_LIMIT_LENGTH

// Store is an opened file. It is used by one goroutine at a time; other
// processes may read and write the file meanwhile.
type Store struct {
	path string
	db   *sql.DB
	conn *sql.Conn
	ctx  context.Context // of reads; nil for one without an end
}

// Within returns the same store, whose reads end with the context.
func (s *Store) Within(ctx context.Context) *Store {
	one := *s
	one.ctx = ctx
	return &one
}

func (s *Store) context() context.Context {
	if s.ctx == nil {
		return context.Background()
	}
	return s.ctx
}

// Open opens a file to write to, and makes it where there is none. A file of an
// earlier version becomes one of this.
func Open(path string) (*Store, error) { return open(path, "rwc") }

// Read opens a file that exists; nothing is written to it, unless it is of an
// earlier version: it becomes one of this.
func Read(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("results store: %w", err)
	}
	s, err := open(path, "rw&_pragma=query_only(1)")
	if isCode(err, sqlite3.SQLITE_CANTOPEN) && whole(path) {
		return open(path, "ro&immutable=1&_pragma=query_only(1)") // its folder cannot be written to
	}
	if !errors.As(err, new(earlier)) {
		return s, err
	}
	if s, err = open(path, "rw"); err == nil {
		err = s.Close()
	}
	if err != nil {
		return nil, err
	}
	return open(path, "rw&_pragma=query_only(1)")
}

func isCode(err error, code int) bool {
	var of *sqlite.Error
	return errors.As(err, &of) && of.Code()&0xff == code
}

// whole reports whether a file has all that was written: there is no log beside it.
func whole(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err != nil || info.Size() == 0
}

// earlier is the version of a file whose tables have to be made anew.
type earlier int

// Error says which version it is.
func (v earlier) Error() string { return fmt.Sprintf("it has version %d of the tables", int(v)) }

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
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + fmt.Sprintf("?_pragma=busy_timeout(%d)", patience.Milliseconds()) + "&_pragma=foreign_keys(1)&_pragma=trusted_schema(0)&_txlock=immediate&mode=" + mode
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
	if mode == "rwc" {
		err = s.create(ctx)
	}
	if err == nil {
		err = s.check(ctx)
	}
	if errors.As(err, new(earlier)) && !strings.Contains(mode, "query_only") {
		if err = s.migrate(ctx); err == nil {
			err = s.check(ctx)
		}
	}
	if err == nil && mode == "rwc" { // a file that is known to be ours
		err = s.writeAhead(ctx)
	}
	return s, err
}

// patience is how long a store that others use is waited for.
const patience = 10 * time.Second

// writeAhead has transactions written to a log first: who reads does not wait for
// who writes, and a killed process costs nothing that was committed. SQLite does not
// wait for others when it begins the log.
func (s *Store) writeAhead(ctx context.Context) error {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		_, err := s.conn.ExecContext(ctx, `PRAGMA journal_mode = WAL`)
		if isCode(err, sqlite3.SQLITE_BUSY) && time.Since(began) < patience {
			continue
		}
		if err != nil {
			return err
		}
		_, err = s.conn.ExecContext(ctx, `PRAGMA synchronous = NORMAL`)
		return err
	}
}

// create makes the tables of an empty file.
func (s *Store) create(ctx context.Context) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		var objects int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil || objects > 0 {
			return err
		}
		return execute(ctx, tx, statements())
	})
}

// statements make all of a file.
func statements() []string {
	return append(textsOf(tables), marks()...)
}

func textsOf(objects []object) []string {
	var texts []string
	for _, o := range objects {
		texts = append(texts, o.text)
	}
	return texts
}

func execute(ctx context.Context, tx *sql.Tx, texts []string) error {
	for _, text := range texts {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
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
	if err := s.checkTables(ctx, version); err != nil || version == Version {
		return err
	}
	return earlier(version)
}

func (s *Store) checkTables(ctx context.Context, version int) error {
	rows, err := s.conn.QueryContext(ctx, `SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT GLOB 'sqlite_autoindex_*'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	want, found := tablesOf(version), 0
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.name, &o.text); err != nil {
			return err
		}
		if !slices.Contains(want, o) {
			return fmt.Errorf("its %q is none of the tables of version %d", o.name, version)
		}
		found++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if found != len(want) {
		return fmt.Errorf("it lacks tables of version %d", version)
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
	if isCode(err, sqlite3.SQLITE_CANTOPEN) {
		err = fmt.Errorf("%w: is %s there, and may it be written to?", err, filepath.Dir(s.path))
	}
	if isCode(err, sqlite3.SQLITE_CORRUPT) || isCode(err, sqlite3.SQLITE_NOTADB) {
		err = fmt.Errorf("%w: the file is damaged; move it away, with %s-wal, and another begins (sqlite3's .recover may save what is in it)", err, filepath.Base(s.path))
	}
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
