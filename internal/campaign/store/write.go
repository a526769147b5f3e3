package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumb/internal/campaign/report"
)

// Run is one run of a command that judges.
type Run struct {
	ID      int64     `json:"id"`
	Command string    `json:"command"` // "plumb run"
	Args    []string  `json:"arguments"`
	Started time.Time `json:"started"`
	// Ended is zero, and Exit nil, of a run that is under way or was killed.
	Ended    time.Time `json:"ended,omitzero"`
	Elapsed  float64   `json:"seconds"`
	Complete bool      `json:"complete"` // every case has its results
	Exit     *int      `json:"exit,omitempty"`
	Seed     uint64    `json:"seed"`
	Plumb    string    `json:"plumb"` // version and build
	// Wanted is how many cases it is to have, as far as that is known. Doing says what
	// it does, "" where it has ended, and Written when it last wrote something.
	Wanted  int       `json:"wanted,omitempty"`
	Doing   string    `json:"doing,omitempty"`
	Written time.Time `json:"written,omitzero"`
	// Environment says on what it ran.
	Environment map[string]string `json:"environment,omitempty"`
	Subjects    []Subject         `json:"subjects"`            // the reference first
	Recording   *Recording        `json:"recording,omitempty"` // of conform run
	Counts
	Mistakes []Mistake `json:"mistakes,omitempty"` // of a run that has ended
	// Process is the one that writes it; "" where that is not known.
	Process string `json:"-"`
}

// Mistake is one in a test, which cannot be judged for it. The text names the test.
type Mistake struct {
	Test string `json:"test"`
	Text string `json:"text"`
}

// Subject is the reference or a candidate of a run.
type Subject struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// String is a subject with its version.
func (s Subject) String() string {
	if version := strings.TrimPrefix(s.Version, s.Name+" "); version != "" {
		return s.Name + " " + version
	}
	return s.Name
}

// Reference is the first subject.
func (r *Run) Reference() Subject {
	if len(r.Subjects) == 0 {
		return Subject{}
	}
	return r.Subjects[0]
}

// Candidates are the other subjects.
func (r *Run) Candidates() []Subject { return r.Subjects[min(1, len(r.Subjects)):] }

// now is the clock of the wall, which tests set; spans of time are of one that never
// goes back.
var now = time.Now

// silence is how long a run that is under way writes nothing at most.
const silence = 10 * time.Minute

// Going reports whether the run is under way: it has not ended, wrote something not
// long ago, and its process is not known to be gone.
func (r *Run) Going() bool {
	return r.Doing != "" && now().Sub(r.Written).Abs() < silence && !isGone(r.Process) // a clock may go back
}

// mistakes is the key of a run's environment under which the store keeps mistakes in tests.
const mistakes = "plumb_mistakes"

// owner is the key of a run's environment under which the store keeps its process.
const owner = "process"

// owned is an environment with the process that writes the run.
func owned(environment map[string]string) map[string]string {
	process := thisProcess()
	if process == "" {
		return environment
	}
	all := maps.Clone(environment)
	if all == nil {
		all = map[string]string{}
	}
	all[owner] = process
	return all
}

// End says how the run ended.
func (r *Run) End() string {
	switch {
	case r.Going():
		return "under way"
	case r.Doing != "":
		return "killed"
	case r.Exit == nil && r.Ended.IsZero():
		return "not yet, or killed"
	case !r.Complete:
		return "interrupted"
	case r.Exit == nil:
		return "yes"
	}
	return fmt.Sprintf("with %d", *r.Exit)
}

// Interrupted says that the run did not come to its end, or has not yet.
func (r *Run) Interrupted() bool { return !r.Complete }

// Recording is what a conformance run judged by.
type Recording struct {
	// Config is the name of the baseline's config, ConfigSHA256 that of its text,
	// Baseline that of the baseline's manifest.
	Config       string `json:"config"`
	ConfigSHA256 string `json:"config_sha256"`
	Baseline     string `json:"baseline_sha256"`
	Flags        string `json:"flags"` // JSON: all that changes verdicts
	// Functions are those of which a case was recorded; Implemented are those of
	// them of which the candidate computed a case, or failed one.
	Functions   int `json:"functions"`
	Implemented int `json:"implemented"`
}

// ImplementedRate is the share of the functions that the candidate implements.
func (r *Recording) ImplementedRate() float64 { return share(r.Implemented, r.Functions) }

// Counts are the cases of a run.
type Counts struct {
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Unsupported int `json:"unsupported"`
	Skipped     int `json:"skipped"`
	Unrecorded  int `json:"unrecorded"`
}

// PassRate is the share of what was computed that passed, from 0 to 1; 0 of nothing.
func (c *Counts) PassRate() float64 { return share(c.Passed, c.Passed+c.Failed) }

// Judged is how many cases passed or failed.
func (c *Counts) Judged() int { return c.Passed + c.Failed }

// Cases is how many there are.
func (c *Counts) Cases() int {
	return c.Passed + c.Failed + c.Unsupported + c.Skipped + c.Unrecorded
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (c *Counts) add(outcome, n int) {
	*[]*int{&c.Unrecorded, &c.Skipped, &c.Unsupported, &c.Passed, &c.Failed}[outcome] += n
}

// outcomes are in the order of their numbers in the file: what is worse counts more.
var outcomes = []report.Outcome{report.Unrecorded, report.Skipped, report.Unsupported, report.Passed, report.Failed}

// Case is the verdict on a case, in one or several modes of a subject.
type Case struct {
	N    int64  `json:"n"`    // in the order of the run, which the store gives
	Test string `json:"test"` // or the function of a recorded case
	// Name and Variant are those of a recorded case: "act::relu_3.pth", "inplace".
	Name    string `json:"case,omitempty"`
	Variant string `json:"variant,omitempty"`
	Number  int    `json:"number"`            // of the case in its test or baseline
	Program string `json:"program,omitempty"` // id of its text, 16 hexadecimal digits
	Subject string `json:"subject"`
	Mode    string `json:"mode,omitempty"`
	// Operators are those that the case calls; of what is read the first alone,
	// which the case is about.
	Operators []string       `json:"operators,omitempty"`
	DTypes    string         `json:"dtypes"` // of the arguments, distinct, separated by spaces
	Outcome   report.Outcome `json:"outcome"`
	Word      string         `json:"verdict,omitempty"` // empty where left out
	Kind      string         `json:"kind,omitempty"`    // of what is misaligned
	Reason    string         `json:"reason,omitempty"`
	Lenient   string         `json:"lenient,omitempty"` // what DIOPI's comparison says of a failure
	Compared  int            `json:"compared"`          // tensors
	Drawn     int            `json:"drawn,omitempty"`   // of these, judged by statistics
	// Worst is the largest observed error ÷ limit, NaN where nothing was compared;
	// WorstAt names the tensor, such as "grad x".
	Worst   float64 `json:"-"`
	WorstAt string  `json:"worst_at,omitempty"`
	// Elapsed and Reference are the times of the candidate and of the reference; 0
	// where a side does not tell.
	Elapsed   time.Duration `json:"-"`
	Reference time.Duration `json:"-"`
	Text      string        `json:"text,omitempty"` // the program of one that failed
}

// Sighting is a finding in a run.
type Sighting struct {
	Finding  int64  `json:"finding"`
	Run      int64  `json:"run"`
	Subject  string `json:"subject"`
	Operator string `json:"operator"`
	What     string `json:"what"`  // how it fails, in one line
	Test     string `json:"test"`  // the first in which it shows
	Cases    int    `json:"cases"` // that fail so
	Reason   string `json:"reason"`
	Program  string `json:"program"`
	Bundle   string `json:"bundle,omitempty"`
	Proof    string `json:"proof,omitempty"`
}

// A batch is written when it has so many cases, or is so old.
const (
	batchCases = 1024
	batchAge   = 2 * time.Second
)

// Writer adds cases to a run. The results of a case are written in one
// transaction, so that a case has all of them or none.
type Writer struct {
	ID    int64
	store *Store
	names interner
	does  prepared
	next  int64 // n of the next case; -1 where it is not known yet
	batch []Case
	since time.Time // of the batch
	start time.Time
	spent time.Duration // by earlier writers of the run

	counts Counts // of what is not written yet
	totals map[total]*sums
	told   map[latestKey]bool // that this run has them

	digests  map[[2]string]*digest
	lastCase caseKey
	doing    string
}

// The first stages of a run.
const (
	starting = "starting"
	Judging  = "judging"
)

// Begin makes the row of a run, whose id, counts and end are not looked at.
func (s *Store) Begin(r *Run) (*Writer, error) {
	one := *r
	one.ID, one.Ended, one.Elapsed, one.Complete, one.Exit, one.Doing, one.Written = 0, time.Time{}, 0, false, nil, starting, now()
	ctx := context.Background()
	if err := s.transaction(ctx, func(tx *sql.Tx) error { return s.insertRun(ctx, tx, &one) }); err != nil {
		return nil, s.fail("begin a run", err)
	}
	return newWriter(s, one.ID), nil
}

// insertRun writes the row of a run, its subjects and its recording; it sets the
// id where that is 0.
func (s *Store) insertRun(ctx context.Context, tx *sql.Tx, r *Run) error {
	var ended, exit any
	if !r.Ended.IsZero() {
		ended = r.Ended.UnixMilli()
	}
	if r.Exit != nil {
		exit = *r.Exit
	}
	environment := r.Environment
	if r.Doing != "" {
		environment = owned(environment)
	}
	done, err := tx.ExecContext(ctx, `INSERT INTO runs (id, command, arguments, started_ms, ended_ms, elapsed_ms, complete, exit, seed, plumb, environment,
		passed, failed, unsupported, skipped, unrecorded) VALUES (coalesce(?, (SELECT max(id) FROM (SELECT max(id) AS id FROM runs UNION ALL SELECT max(run) FROM gone)) + 1, 1), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)`,
		sql.NullInt64{Int64: r.ID, Valid: r.ID != 0}, cut(r.Command, maxName), encoded(bounded(r.Args)), r.Started.UnixMilli(), ended, int64(r.Elapsed*1000), r.Complete, exit,
		strconv.FormatUint(r.Seed, 10), cut(r.Plumb, maxName), encoded(environment))
	if err != nil {
		return err
	}
	if r.ID, err = done.LastInsertId(); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO progress (run, wanted, written_ms, doing) VALUES (?, ?, ?, ?)`, r.ID, r.Wanted, r.Written.UnixMilli(), r.Doing)
	if err != nil {
		return err
	}
	if rec := r.Recording; rec != nil {
		_, err := tx.ExecContext(ctx, `INSERT INTO recordings (run, config, config_sha256, baseline_sha256, flags) VALUES (?, ?, ?, ?, ?)`,
			r.ID, cut(rec.Config, maxName), rec.ConfigSHA256, rec.Baseline, rec.Flags)
		if err != nil {
			return err
		}
	}
	return s.insertSubjects(ctx, tx, r.ID, r.Subjects)
}

// bounded are the arguments of a command line that are kept.
func bounded(args []string) []string {
	out := make([]string, 0, min(len(args), maxArguments))
	for _, a := range args[:cap(out)] {
		out = append(out, cut(a, maxName))
	}
	if more := len(args) - len(out); more > 0 {
		out = append(out, "… "+strconv.Itoa(more)+" more")
	}
	return out
}

func (s *Store) insertSubjects(ctx context.Context, tx *sql.Tx, run int64, subjects []Subject) error {
	var names interner
	if err := names.begin(ctx, tx); err != nil {
		return err
	}
	for i, one := range subjects {
		id, err := names.id(ctx, one.Name)
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO subjects (run, n, name, version) VALUES (?, ?, ?, ?)`, run, i, id, cut(one.Version, maxName))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newWriter(s *Store, id int64) *Writer {
	return &Writer{ID: id, store: s, start: time.Now(), since: time.Now(), totals: map[total]*sums{}, digests: map[[2]string]*digest{}, doing: Judging}
}

// Unfinished returns the last conformance run that was to judge the same as r,
// under the same flags and versions, and did not get through all cases; nil where
// there is none.
func (s *Store) Unfinished(r *Run) (*Run, error) {
	var found *Run
	candidate := r.Candidates()[0]
	err := s.runs(`complete = 0 AND plumb = ? AND id IN (SELECT run FROM recordings WHERE baseline_sha256 = ? AND flags = ?)
		AND EXISTS (SELECT 1 FROM subjects u JOIN names ON names.id = u.name WHERE u.run = runs.id AND u.n = 1 AND text = ? AND u.version = ?)
		ORDER BY id DESC LIMIT 1`,
		func(one *Run) error { found = one; return nil },
		cut(r.Plumb, maxName), r.Recording.Baseline, r.Recording.Flags, cut(candidate.Name, maxName), cut(candidate.Version, maxName))
	return found, err
}

// Resume goes on with a run. It hands what the run has to each, in order.
func (s *Store) Resume(r *Run, each func(*Case) error) (*Writer, error) {
	w := newWriter(s, r.ID)
	w.next = -1
	w.spent = time.Duration(r.Elapsed * float64(time.Second))
	return w, errors.Join(s.own(r.ID), s.Cases(r.ID, each))
}

// own keeps that this process writes the run from now on.
func (s *Store) own(run int64) error {
	if err := setEnvironment(context.Background(), s.conn, run, owner, thisProcess()); err != nil {
		return s.fail("write", err)
	}
	return nil
}

// Subjects sets what the subjects are, once that is known.
func (w *Writer) Subjects(subjects []Subject) error {
	ctx := context.Background()
	err := w.store.transaction(ctx, func(tx *sql.Tx) error { return w.store.insertSubjects(ctx, tx, w.ID, subjects) })
	if err != nil {
		return w.store.fail("write subjects", err)
	}
	return nil
}

// Add adds the verdict on a case; those on one case follow each other.
func (w *Writer) Add(c Case) error {
	if n := len(w.batch); n > 0 && !w.batch[n-1].same(&c) && (n >= batchCases || time.Since(w.since) > batchAge) {
		if err := w.flush(func(context.Context, *sql.Tx) error { return nil }); err != nil {
			return err
		}
	}
	w.batch = append(w.batch, c)
	return nil
}

func (c *Case) same(d *Case) bool {
	return c.Number == d.Number && c.Name == d.Name && c.Test == d.Test
}

// Does says what the run does from now on.
func (w *Writer) Does(doing string) error {
	w.doing = cut(doing, maxName)
	return w.flush(func(context.Context, *sql.Tx) error { return nil })
}

// The most that is kept of mistakes.
const (
	mostMistakes = 1000
	mostMistake  = 4 << 10
)

// End writes what is left, and that the run has ended, as far as it came, with the mistakes
// in its tests.
func (w *Writer) End(complete bool, exit int, wrong ...Mistake) error {
	w.doing = ""
	wrong = slices.Clone(wrong[:min(len(wrong), mostMistakes)])
	for i := range wrong {
		wrong[i].Text = cut(wrong[i].Text, mostMistake)
	}
	return w.flush(func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET complete = ?, ended_ms = ?, exit = ? WHERE id = ?`, complete, now().UnixMilli(), exit, w.ID); err != nil || len(wrong) == 0 {
			return err
		}
		return setEnvironment(ctx, tx, w.ID, mistakes, encoded(wrong))
	})
}

// setEnvironment sets a key of what a run ran on.
func setEnvironment(ctx context.Context, on interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, run int64, key, value string) error {
	_, err := on.ExecContext(ctx, `UPDATE runs SET environment = json_set(CASE environment WHEN 'null' THEN '{}' ELSE environment END, '$.`+key+`', ?) WHERE id = ?`, value, run)
	return err
}

// flush writes the batch, and what more does, in one transaction.
func (w *Writer) flush(more func(context.Context, *sql.Tx) error) error {
	ctx := context.Background()
	err := w.store.transaction(ctx, func(tx *sql.Tx) error {
		if err := w.write(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE runs SET elapsed_ms = ? WHERE id = ?`, w.Elapsed().Milliseconds(), w.ID)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE progress SET written_ms = ?, doing = ? WHERE run = ?`, now().UnixMilli(), w.doing, w.ID)
		}
		return errors.Join(err, more(ctx, tx))
	})
	if err != nil {
		return w.store.fail("write results", err)
	}
	return nil
}

// write writes the batch and what it adds to the totals.
func (w *Writer) write(ctx context.Context, tx *sql.Tx) error {
	w.does = prepared{tx, map[string]*sql.Stmt{}}
	if len(w.batch) == 0 {
		return nil
	}
	if err := w.names.begin(ctx, tx); err != nil {
		return err
	}
	if w.next < 0 {
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(n), -1) + 1 FROM cases WHERE run = ?`, w.ID).Scan(&w.next); err != nil {
			return err
		}
	}
	if err := cmp.Or(w.insert(ctx), w.addTotals(ctx, tx), w.addDigests(ctx, tx)); err != nil {
		return err
	}
	c := &w.counts
	_, err := tx.ExecContext(ctx, `UPDATE runs SET passed = passed + ?, failed = failed + ?, unsupported = unsupported + ?,
		skipped = skipped + ?, unrecorded = unrecorded + ? WHERE id = ?`, c.Passed, c.Failed, c.Unsupported, c.Skipped, c.Unrecorded, w.ID)
	w.batch, w.since, w.counts = w.batch[:0], time.Now(), Counts{}
	return err
}

const caseColumns = `(run, n, test, name, variant, number, program, subject, mode, operator, dtypes, outcome, verdict,
	compared, drawn, worst, worst_at, elapsed_us, reference_us)`

const caseValues = 19

// insert writes the cases of the batch. Their rows go to the driver itself, which takes a
// third of the time: database/sql checks and copies each of the values. OR FAIL spares a
// journal of the statement: the transaction is undone in any case.
func (w *Writer) insert(ctx context.Context) (err error) {
	values := make([]driver.Value, 0, len(w.batch)*caseValues)
	for i := range w.batch {
		if values, err = w.values(ctx, values, &w.batch[i]); err != nil {
			return err
		}
		if err := w.details(ctx, &w.batch[i]); err != nil {
			return err
		}
		w.next++
	}
	row := make([]driver.NamedValue, caseValues)
	return w.store.conn.Raw(func(conn any) error {
		one, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, `INSERT OR FAIL INTO cases `+caseColumns+` VALUES (`+strings.Repeat("?, ", caseValues-1)+`?)`)
		if err != nil {
			return err
		}
		defer one.Close()
		for part := range slices.Chunk(values, caseValues) {
			for i, v := range part {
				row[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
			}
			if _, err := one.(driver.StmtExecContext).ExecContext(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// values appends the values of a case's row, and counts the case.
func (w *Writer) values(ctx context.Context, row []driver.Value, c *Case) ([]driver.Value, error) {
	ids, err := w.names.all(ctx, c.Test, c.Name, c.Variant, c.Subject, c.Mode, c.operator(), c.DTypes, c.Word, c.WorstAt)
	if err != nil {
		return nil, err
	}
	outcome := max(slices.Index(outcomes, c.Outcome), 0)
	w.counts.add(outcome, 1)
	w.sum(c, outcome)
	w.digest(c, outcome)
	return append(row, w.ID, w.next, ids[0], ids[1], ids[2], int64(c.Number), programID(c.Program), ids[3], ids[4], ids[5], ids[6], int64(outcome), ids[7],
		int64(c.Compared), int64(c.Drawn), plain(number(c.Worst)), ids[8], plain(microseconds(c.Elapsed)), plain(microseconds(c.Reference))), nil
}

func (c *Case) operator() string {
	if len(c.Operators) == 0 {
		return ""
	}
	return c.Operators[0]
}

// details writes what is kept of a case that has a reason or failed.
func (w *Writer) details(ctx context.Context, c *Case) error {
	text := ""
	if c.Outcome == report.Failed {
		text = cut(c.Text, maxProgram)
	}
	if c.Reason == "" && c.Lenient == "" && text == "" {
		return nil
	}
	_, err := w.does.exec(ctx, `INSERT INTO details (run, n, kind, reason, lenient, program) VALUES (?, ?, ?, ?, ?, ?)`,
		w.ID, w.next, cut(c.Kind, maxName), cut(c.Reason, maxReason), cut(c.Lenient, maxName), text)
	return err
}

// programID is the id of a program as the file holds it; nil of none.
func programID(id string) any {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) == 0 || len(raw) > 32 {
		return nil
	}
	return raw
}

// plain is a value as the driver takes it.
func plain(v driver.Valuer) driver.Value {
	value, _ := v.Value() // of those of package sql, there is none that fails
	return value
}

func number(x float64) sql.NullFloat64 { return sql.NullFloat64{Float64: x, Valid: !math.IsNaN(x)} }

func microseconds(d time.Duration) sql.NullInt64 {
	return sql.NullInt64{Int64: d.Microseconds(), Valid: d > 0}
}

// Sight adds findings of the run: all of them or none.
func (w *Writer) Sight(findings ...*Sighting) error {
	return w.flush(func(ctx context.Context, tx *sql.Tx) error {
		for _, f := range findings {
			if err := w.sight(ctx, tx, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *Writer) sight(ctx context.Context, tx *sql.Tx, f *Sighting) error {
	if err := w.names.begin(ctx, tx); err != nil {
		return err
	}
	ids, err := w.names.all(ctx, f.Subject, f.Operator, f.Test)
	if err != nil {
		return err
	}
	what := cut(f.What, maxReason)
	_, err = tx.ExecContext(ctx, `INSERT INTO findings (subject, operator, what) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, ids[0], ids[1], what)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO sightings (finding, run, test, cases, reason, program, bundle, proof)
		SELECT id, ?, ?, ?, ?, ?, ?, ? FROM findings WHERE subject = ? AND operator = ? AND what = ?
		ON CONFLICT DO UPDATE SET cases = cases + excluded.cases`,
		w.ID, ids[2], f.Cases, cut(f.Reason, maxReason), cut(f.Program, maxProgram), cut(f.Bundle, maxReason), cut(f.Proof, maxReason), ids[0], ids[1], what)
	if err != nil {
		return err
	}
	var id int64
	if err := tx.QueryRowContext(ctx, `SELECT id FROM findings WHERE subject = ? AND operator = ? AND what = ?`, ids[0], ids[1], what).Scan(&id); err != nil {
		return err
	}
	return span(ctx, tx, id)
}

// Bundle keeps where the bundle of a finding of the run lies, and what proves it.
func (w *Writer) Bundle(finding int64, dir, proof string) error {
	return w.flush(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE sightings SET bundle = ?, proof = ? WHERE finding = ? AND run = ?`, cut(dir, maxReason), cut(proof, maxReason), finding, w.ID)
		return err
	})
}
