package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// campaignTables are those of campaigns: a campaign is a run whose cases come in
// units, each of which is written whole, once.
var campaignTables = []object{
	{"campaigns", `CREATE TABLE campaigns (
  run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  stop INTEGER NOT NULL             -- 1 where somebody asked it to
) STRICT`},
	{"specs", `CREATE TABLE specs (
  run INTEGER NOT NULL REFERENCES campaigns (run) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  piece BLOB NOT NULL,              -- of what is to be judged, and how
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID`},
	{"parts", `CREATE TABLE parts (
  run INTEGER NOT NULL REFERENCES campaigns (run) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  test INTEGER NOT NULL REFERENCES names (id),
  subject INTEGER NOT NULL REFERENCES names (id),
  depends BLOB NOT NULL,            -- a hash of all that its verdicts depend on
  wanted INTEGER NOT NULL,          -- cases
  fixed INTEGER NOT NULL,           -- 1 where rejected draws are not replaced
  most INTEGER NOT NULL,            -- rejected draws after which it is given up
  next INTEGER NOT NULL,            -- index that no unit has
  judged INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  over INTEGER NOT NULL,            -- 1 where no more units are to come
  error TEXT NOT NULL,
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID`},
	{"parts_by_depends", `CREATE INDEX parts_by_depends ON parts (depends)`},
	{"units", `CREATE TABLE units (
  run INTEGER NOT NULL REFERENCES campaigns (run) ON DELETE CASCADE,
  n INTEGER NOT NULL,
  part INTEGER NOT NULL,
  first INTEGER NOT NULL,           -- index of its first case
  size INTEGER NOT NULL,
  done INTEGER NOT NULL,            -- 1 with its cases
  judged INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  elapsed_us INTEGER NOT NULL,
  worker INTEGER NOT NULL REFERENCES names (id),
  taken INTEGER,                    -- the run from which its cases are
  from_n INTEGER NOT NULL,          -- of the cases: the first n, and how many
  cases INTEGER NOT NULL,
  PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID`},
	{"units_by_part", `CREATE INDEX units_by_part ON units (run, part, first)`},
}

// maxPiece bounds the pieces of a spec, maxSpec the whole.
const (
	maxPiece = 512 << 10
	maxSpec  = 1 << 30
)

// Campaign is a run that is made of units.
type Campaign struct {
	Run
	Name string `json:"name"`
	Stop bool   `json:"stop"` // somebody asked it to end
	Spec []byte `json:"-"`
}

// Part is a test on a candidate: the cases of a campaign that follow each other.
type Part struct {
	N       int
	Test    string
	Subject string
	Depends []byte // a hash of all that the verdicts depend on
	Wanted  int    // cases
	Fixed   bool   // rejected draws are not replaced
	Most    int    // rejected draws after which it is given up
	Next    int    // the first index that no unit has
	Judged  int
	// Rejected counts draws that were not judged; where Fixed they count as cases.
	Rejected int
	Over     bool // no more units are to come
	Error    string
}

// Unit is a lease: consecutive cases of a part.
type Unit struct {
	N     int64
	Part  int
	First int
	Size  int
}

// Done is what became of a unit.
type Done struct {
	Unit     Unit
	Judged   int
	Rejected int
	Elapsed  time.Duration
	Worker   string
	Taken    int64 // the run from which its cases are; 0 for judged
	Cases    []Case
}

// NewCampaign makes the rows of a campaign.
func (s *Store) NewCampaign(c *Campaign, parts []Part) error {
	if len(c.Spec) > maxSpec {
		return s.fail("begin a campaign", fmt.Errorf("its sources take %d MB, at most %d are kept", len(c.Spec)>>20, maxSpec>>20))
	}
	ctx := context.Background()
	one := c.Run
	one.ID, one.Doing, one.Written = 0, starting, now()
	for i := range parts {
		one.Wanted += parts[i].Wanted
	}
	err := s.transaction(ctx, func(tx *sql.Tx) error {
		if err := s.insertRun(ctx, tx, &one); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO campaigns (run, name, stop) VALUES (?, ?, 0)`, one.ID, cut(c.Name, maxName)); err != nil {
			return err
		}
		for n := 0; n*maxPiece < len(c.Spec); n++ {
			piece := c.Spec[n*maxPiece : min((n+1)*maxPiece, len(c.Spec))]
			if _, err := tx.ExecContext(ctx, `INSERT INTO specs (run, n, piece) VALUES (?, ?, ?)`, one.ID, n, piece); err != nil {
				return err
			}
		}
		return insertParts(ctx, tx, one.ID, parts)
	})
	if err != nil {
		return s.fail("begin a campaign", err)
	}
	c.ID = one.ID
	return nil
}

func insertParts(ctx context.Context, tx *sql.Tx, run int64, parts []Part) error {
	var names interner
	if err := names.begin(ctx, tx); err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		p.N = i
		ids, err := names.all(ctx, p.Test, p.Subject)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO parts (run, n, test, subject, depends, wanted, fixed, most, next, judged, rejected, over, error)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, '')`, run, i, ids[0], ids[1], p.Depends, p.Wanted, p.Fixed, p.Most)
		if err != nil {
			return err
		}
	}
	return nil
}

// Campaign returns a campaign by its number or name, the last of a name, or the
// last one by "last".
func (s *Store) Campaign(name string) (*Campaign, error) {
	c := &Campaign{}
	row := s.conn.QueryRowContext(context.Background(), `SELECT run, name, stop FROM campaigns WHERE ? = 'last' OR name = ? OR CAST(run AS TEXT) = ? ORDER BY run DESC LIMIT 1`, name, name, name)
	switch err := row.Scan(&c.ID, &c.Name, &c.Stop); {
	case err == sql.ErrNoRows && name == "last":
		return nil, fmt.Errorf("results store %s has no campaign", s.path)
	case err == sql.ErrNoRows:
		return nil, fmt.Errorf("results store %s has no campaign %q; plumb campaign status lists them", s.path, name)
	case err != nil:
		return nil, s.fail("read", err)
	}
	r, err := s.Run(fmt.Sprint(c.ID))
	if err != nil {
		return nil, err
	}
	c.Run = *r
	err = s.query(`SELECT piece FROM specs WHERE run = ? ORDER BY n`, []any{c.ID}, func(rows *sql.Rows) error {
		var piece []byte
		err := rows.Scan(&piece)
		if c.Spec = append(c.Spec, piece...); len(c.Spec) > maxSpec {
			return errors.New("a spec without end")
		}
		return err
	})
	return c, err
}

// Campaigns hands the name of each campaign on, the oldest first.
func (s *Store) Campaigns(each func(run int64, name string) error) error {
	return s.query(`SELECT run, name FROM campaigns ORDER BY run`, nil, func(rows *sql.Rows) error {
		var run int64
		var name string
		return then(rows.Scan(&run, &name), func() error { return each(run, name) })
	})
}

// AskToStop lets a campaign end soon, or go on.
func (s *Store) AskToStop(run int64, stop bool) error {
	_, err := s.conn.ExecContext(context.Background(), `UPDATE campaigns SET stop = ? WHERE run = ?`, stop, run)
	if err != nil {
		return s.fail("write", err)
	}
	return nil
}

// Stopping says whether the campaign is to end soon.
func (s *Store) Stopping(run int64) (stop bool, err error) {
	err = s.query(`SELECT stop FROM campaigns WHERE run = ?`, []any{run}, func(rows *sql.Rows) error { return rows.Scan(&stop) })
	return stop, err
}

// Parts returns the parts of a campaign.
func (s *Store) Parts(run int64) ([]Part, error) {
	var out []Part
	err := s.query(`SELECT n, t.text, u.text, depends, wanted, fixed, most, next, judged, rejected, over, error
		FROM parts p JOIN names t ON t.id = p.test JOIN names u ON u.id = p.subject WHERE run = ? ORDER BY n`, []any{run}, func(rows *sql.Rows) error {
		var p Part
		err := rows.Scan(&p.N, &p.Test, &p.Subject, &p.Depends, &p.Wanted, &p.Fixed, &p.Most, &p.Next, &p.Judged, &p.Rejected, &p.Over, &p.Error)
		if err == nil && p.N != len(out) {
			err = fmt.Errorf("part %d of run %d is missing", len(out), run)
		}
		out = append(out, p)
		return err
	})
	return out, err
}

// Waiting returns the units of a campaign that are not done.
func (s *Store) Waiting(run int64) ([]Unit, error) {
	var out []Unit
	err := s.query(`SELECT n, part, first, size FROM units WHERE run = ? AND done = 0 ORDER BY n`, []any{run}, func(rows *sql.Rows) error {
		var u Unit
		err := rows.Scan(&u.N, &u.Part, &u.First, &u.Size)
		out = append(out, u)
		return err
	})
	return out, err
}

// UnitTimes hands on of each unit that is done how many cases it has and how long it took.
func (s *Store) UnitTimes(run int64, each func(cases int, took time.Duration) error) error {
	return s.query(`SELECT judged + rejected, elapsed_us FROM units WHERE run = ? AND done = 1 ORDER BY n`, []any{run}, func(rows *sql.Rows) error {
		var cases int
		var us int64
		return then(rows.Scan(&cases, &us), func() error { return each(cases, time.Duration(us)*time.Microsecond) })
	})
}

// Took returns how long the units of each part took that are done.
func (s *Store) Took(run int64) (map[int]time.Duration, error) {
	out := map[int]time.Duration{}
	err := s.query(`SELECT part, sum(elapsed_us) FROM units WHERE run = ? AND done = 1 GROUP BY part`, []any{run}, func(rows *sql.Rows) error {
		var part int
		var us int64
		return then(rows.Scan(&part, &us), func() error { out[part] = time.Duration(us) * time.Microsecond; return nil })
	})
	return out, err
}

// LastUnit is the number of the last unit of a campaign; -1 for none.
func (s *Store) LastUnit(run int64) (n int64, err error) {
	err = s.query(`SELECT coalesce(max(n), -1) FROM units WHERE run = ?`, []any{run}, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// Earlier returns the units of the last run that judged a part with the same
// dependencies, in order, and that run; its own run aside.
func (s *Store) Earlier(run int64, depends []byte) (from int64, units []Done, err error) {
	err = s.query(`SELECT p.run, u.n, u.part, u.first, u.size, u.judged, u.rejected, u.elapsed_us, coalesce(u.taken, p.run)
		FROM parts p JOIN units u ON u.run = p.run AND u.part = p.n AND u.done = 1
		WHERE p.depends = ? AND p.run = (SELECT max(q.run) FROM parts q WHERE q.depends = ? AND q.run <> ? AND q.judged + q.rejected > 0)
		ORDER BY u.first`, []any{depends, depends, run}, func(rows *sql.Rows) error {
		var d Done
		var us int64
		err := rows.Scan(&from, &d.Unit.N, &d.Unit.Part, &d.Unit.First, &d.Unit.Size, &d.Judged, &d.Rejected, &us, &d.Taken)
		d.Elapsed = time.Duration(us) * time.Microsecond
		units = append(units, d)
		return err
	})
	return from, units, err
}

// UnitCases returns the cases of a unit that is done.
func (s *Store) UnitCases(run, unit int64) ([]Case, error) {
	var first, many int64
	err := s.query(`SELECT from_n, cases FROM units WHERE run = ? AND n = ? AND done = 1`, []any{run, unit}, func(rows *sql.Rows) error { return rows.Scan(&first, &many) })
	if err != nil {
		return nil, err
	}
	var out []Case
	err = s.cases(`c.run = ? AND c.n >= ? AND c.n < ? ORDER BY c.n`, func(c *Case) error { out = append(out, *c); return nil }, run, first, first+many)
	return out, err
}

// ErrDone is the error of a unit that is written a second time.
var ErrDone = errors.New("the unit is done already")

// Commit writes units with their cases, the parts that they change, and the units
// that follow, in one transaction: all of it or nothing.
func (w *Writer) Commit(done []Done, parts []Part, more []Unit) error {
	var froms []int64
	if w.next < 0 {
		err := w.store.query(`SELECT coalesce(max(n), -1) + 1 FROM cases WHERE run = ?`, []any{w.ID}, func(rows *sql.Rows) error { return rows.Scan(&w.next) })
		if err != nil {
			return err
		}
	}
	next := w.next
	for i := range done {
		froms = append(froms, next)
		next += int64(len(done[i].Cases))
		w.batch = append(w.batch, done[i].Cases...)
	}
	before := w.next
	err := w.flush(func(ctx context.Context, tx *sql.Tx) error {
		if err := w.names.begin(ctx, tx); err != nil {
			return err
		}
		for i := range done {
			if err := w.finishUnit(ctx, &done[i], froms[i]); err != nil {
				return err
			}
		}
		return errors.Join(w.updateParts(ctx, parts), w.insertUnits(ctx, more))
	})
	if err != nil { // nothing of it is written
		w.batch, w.counts, w.next, w.names = w.batch[:0], Counts{}, before, interner{}
		clear(w.totals)
		clear(w.digests)
	}
	return err
}

func (w *Writer) finishUnit(ctx context.Context, d *Done, from int64) error {
	worker, err := w.names.id(ctx, d.Worker)
	if err != nil {
		return err
	}
	did, err := w.does.exec(ctx, `UPDATE units SET done = 1, judged = ?, rejected = ?, elapsed_us = ?, worker = ?, taken = ?, from_n = ?, cases = ?
		WHERE run = ? AND n = ? AND done = 0`, d.Judged, d.Rejected, d.Elapsed.Microseconds(), worker,
		sql.NullInt64{Int64: d.Taken, Valid: d.Taken != 0}, from, len(d.Cases), w.ID, d.Unit.N)
	if err != nil {
		return err
	}
	if n, err := did.RowsAffected(); err != nil || n != 1 {
		return cmp.Or(err, ErrDone)
	}
	return nil
}

func (w *Writer) updateParts(ctx context.Context, parts []Part) error {
	for _, p := range parts {
		_, err := w.does.exec(ctx, `UPDATE parts SET next = ?, judged = ?, rejected = ?, over = ?, error = ? WHERE run = ? AND n = ?`,
			p.Next, p.Judged, p.Rejected, p.Over, cut(p.Error, maxReason), w.ID, p.N)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) insertUnits(ctx context.Context, units []Unit) error {
	none, err := w.names.id(ctx, "")
	if err != nil {
		return err
	}
	for _, u := range units {
		_, err := w.does.exec(ctx, `INSERT INTO units (run, n, part, first, size, done, judged, rejected, elapsed_us, worker, from_n, cases)
			VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, ?, 0, 0)`, w.ID, u.N, u.Part, u.First, u.Size, none)
		if err != nil {
			return err
		}
	}
	return nil
}

// Drop leaves out the units of a campaign that are not done.
func (w *Writer) Drop() error {
	return w.flush(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM units WHERE run = ? AND done = 0`, w.ID)
		return err
	})
}

// Disown keeps later campaigns from taking the units of this one for theirs.
func (w *Writer) Disown() error {
	return w.flush(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE parts SET depends = randomblob(16) WHERE run = ?`, w.ID)
		return err
	})
}

// Elapsed is how long the run has taken, by all of the processes that wrote it.
func (w *Writer) Elapsed() time.Duration { return w.spent + time.Since(w.start) }

// Join goes on with the run of a campaign.
func (s *Store) Join(c *Campaign) *Writer {
	_ = s.own(c.ID) // else it is under way until it is silent for long
	w := newWriter(s, c.ID)
	w.next = -1
	w.spent = time.Duration(c.Elapsed * float64(time.Second))
	return w
}

// Words counts the verdicts of a run, by subject.
func (s *Store) Words(run int64, each func(subject, word string, cases int) error) error {
	return s.query(`SELECT u.text, v.text, sum(cases) FROM totals t JOIN names u ON u.id = t.subject JOIN names v ON v.id = t.verdict
		WHERE run = ? AND kind = ? GROUP BY 1, 2 ORDER BY 1, 2`, []any{run, BySubject}, func(rows *sql.Rows) error {
		var subject, word string
		var n int
		return then(rows.Scan(&subject, &word, &n), func() error { return each(subject, word, n) })
	})
}

// then goes on where there is no error.
func then(err error, do func() error) error {
	if err != nil {
		return err
	}
	return do()
}
