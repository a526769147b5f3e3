package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strconv"
	"time"

	"plumb/internal/campaign/report"
)

// Run is a run of a conformance baseline.
type Run struct {
	ID       int64     `json:"id"`
	Started  time.Time `json:"started"`
	Elapsed  float64   `json:"seconds"`
	Complete bool      `json:"complete"` // every case has its results
	// Config is the name of the baseline's config, ConfigSHA256 that of its text,
	// Baseline that of the baseline's manifest.
	Config           string `json:"config"`
	ConfigSHA256     string `json:"config_sha256"`
	Baseline         string `json:"baseline_sha256"`
	Candidate        string `json:"candidate"`
	CandidateVersion string `json:"candidate_version"`
	Reference        string `json:"reference"`
	ReferenceVersion string `json:"reference_version"`
	Flags            string `json:"flags"` // JSON: all that changes verdicts
	Seed             uint64 `json:"seed"`
	Plumb            string `json:"plumb"` // version
	Counts
}

// Counts are what a vendor's report counts of a run.
type Counts struct {
	Functions   int `json:"functions"`   // of which a case was recorded
	Implemented int `json:"implemented"` // of these: computed a case, or failed one
	Passed      int `json:"passed"`
	Failed      int `json:"failed"`
	Unsupported int `json:"unsupported"`
	Skipped     int `json:"skipped"`
	Unrecorded  int `json:"unrecorded"`
}

// PassRate is the share of what was computed that passed, from 0 to 1; 0 of nothing.
func (c *Counts) PassRate() float64 { return share(c.Passed, c.Passed+c.Failed) }

// ImplementedRate is the share of the functions that the candidate implements.
func (c *Counts) ImplementedRate() float64 { return share(c.Implemented, c.Functions) }

// Cases is how many variants of cases there are.
func (c *Counts) Cases() int {
	return c.Passed + c.Failed + c.Unsupported + c.Skipped + c.Unrecorded
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (c *Counts) of(o report.Outcome) *int {
	switch o {
	case report.Passed:
		return &c.Passed
	case report.Failed:
		return &c.Failed
	case report.Unsupported:
		return &c.Unsupported
	case report.Skipped:
		return &c.Skipped
	}
	return &c.Unrecorded
}

// Result is the verdict on a variant of a case.
type Result struct {
	Case     string         `json:"case"`
	Variant  string         `json:"variant,omitempty"` // "inplace"
	Position int            `json:"position"`          // of the case in the baseline
	Function string         `json:"function"`
	DTypes   string         `json:"dtypes"` // of the arguments, distinct, separated by spaces
	Outcome  report.Outcome `json:"outcome"`
	Word     string         `json:"verdict,omitempty"` // empty where skipped
	Reason   string         `json:"reason,omitempty"`
	Lenient  string         `json:"lenient,omitempty"` // what DIOPI's comparison says of a failure
	Compared int            `json:"compared"`          // tensors
	Drawn    int            `json:"drawn,omitempty"`   // of these, judged by statistics
	// Worst is the largest observed error ÷ limit, NaN where nothing was compared;
	// WorstAt names the tensor, such as "grad x".
	Worst   float64       `json:"-"`
	WorstAt string        `json:"worst_at,omitempty"`
	Elapsed time.Duration `json:"-"` // of the candidate; 0 where it does not tell
}

// A batch is written when it has so many results, or is so old.
const (
	batchResults = 256
	batchAge     = 2 * time.Second
)

// Writer adds results to a run. The results of a case are written in one
// transaction, so that a case has all of them or none.
type Writer struct {
	ID    int64
	store *Store
	batch []Result
	since time.Time // of the batch
	start time.Time
	spent time.Duration // by earlier writers of the run

	counts    Counts
	functions map[string]Counts
}

// Begin makes the row of a run, whose id and counts are not looked at.
func (s *Store) Begin(r *Run) (*Writer, error) {
	ctx := context.Background()
	done, err := s.conn.ExecContext(ctx, `INSERT INTO runs (started, elapsed_ms, complete, config, config_sha256, baseline_sha256,
		candidate, candidate_version, reference, reference_version, flags, seed, plumb,
		functions, implemented, passed, failed, unsupported, skipped, unrecorded)
		VALUES (?, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0)`,
		r.Started.UTC().Format(time.RFC3339), cut(r.Config, maxName), r.ConfigSHA256, r.Baseline, cut(r.Candidate, maxName), cut(r.CandidateVersion, maxName),
		cut(r.Reference, maxName), cut(r.ReferenceVersion, maxName), r.Flags, strconv.FormatUint(r.Seed, 10), cut(r.Plumb, maxName))
	if err != nil {
		return nil, s.fail("begin a run", err)
	}
	id, err := done.LastInsertId()
	if err != nil {
		return nil, s.fail("begin a run", err)
	}
	return newWriter(s, id), nil
}

func newWriter(s *Store, id int64) *Writer {
	return &Writer{ID: id, store: s, start: time.Now(), since: time.Now(), functions: map[string]Counts{}}
}

// Unfinished returns the last run that was to judge the same as r, under the
// same flags and versions, and did not get through all cases; nil where there
// is none.
func (s *Store) Unfinished(r *Run) (*Run, error) {
	var found *Run
	err := s.runs(`complete = 0 AND baseline_sha256 = ? AND candidate = ? AND candidate_version = ? AND flags = ? AND plumb = ? ORDER BY id DESC LIMIT 1`,
		func(one *Run) error { found = one; return nil },
		r.Baseline, cut(r.Candidate, maxName), cut(r.CandidateVersion, maxName), r.Flags, cut(r.Plumb, maxName))
	return found, err
}

// Resume goes on with a run. It hands what the run has to each, in the order of
// the baseline.
func (s *Store) Resume(r *Run, each func(*Result) error) (*Writer, error) {
	w := newWriter(s, r.ID)
	w.spent = time.Duration(r.Elapsed * float64(time.Second))
	err := s.Results(r.ID, func(one *Result) error {
		w.count(one)
		return each(one)
	})
	return w, err
}

// Add adds a result; those of a case follow each other.
func (w *Writer) Add(r Result) error {
	if n := len(w.batch); n > 0 && w.batch[n-1].Case != r.Case && (n >= batchResults || time.Since(w.since) > batchAge) {
		if err := w.flush(false); err != nil {
			return err
		}
	}
	w.batch = append(w.batch, r)
	return nil
}

// Close writes what is left, and that the run has all results where it has.
func (w *Writer) Close(complete bool) error { return w.flush(complete) }

// count adds a result to the counts.
func (w *Writer) count(r *Result) {
	*w.counts.of(r.Outcome)++
	f := w.functions[r.Function]
	before := f
	*f.of(r.Outcome)++
	w.functions[r.Function] = f
	if f.asked() && !before.asked() {
		w.counts.Functions++
	}
	if f.done() && !before.done() {
		w.counts.Implemented++
	}
}

func (c *Counts) done() bool  { return c.Passed+c.Failed > 0 }
func (c *Counts) asked() bool { return c.done() || c.Unsupported > 0 }

func (w *Writer) flush(complete bool) error {
	for i := range w.batch {
		w.count(&w.batch[i])
	}
	ctx := context.Background()
	err := w.store.transaction(ctx, func(tx *sql.Tx) error {
		return errors.Join(w.insert(ctx, tx), w.update(ctx, tx, complete))
	})
	if err != nil {
		return w.store.fail("write results", err)
	}
	w.batch, w.since = w.batch[:0], time.Now()
	return nil
}

func (w *Writer) insert(ctx context.Context, tx *sql.Tx) error {
	if len(w.batch) == 0 {
		return nil
	}
	stmt, err := tx.PrepareContext(ctx, `INSERT INTO results (run, case_name, variant, position, function, dtypes, outcome, word, reason, lenient,
		compared, drawn, worst, worst_at, elapsed_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for i := range w.batch {
		r := &w.batch[i]
		_, err := stmt.ExecContext(ctx, w.ID, r.Case, r.Variant, r.Position, r.Function, cut(r.DTypes, maxName), string(r.Outcome), r.Word,
			cut(r.Reason, maxReason), r.Lenient, r.Compared, r.Drawn,
			sql.NullFloat64{Float64: r.Worst, Valid: !math.IsNaN(r.Worst)}, cut(r.WorstAt, maxName),
			sql.NullInt64{Int64: r.Elapsed.Microseconds(), Valid: r.Elapsed > 0})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) update(ctx context.Context, tx *sql.Tx, complete bool) error {
	c := &w.counts
	_, err := tx.ExecContext(ctx, `UPDATE runs SET elapsed_ms = ?, complete = ?, functions = ?, implemented = ?, passed = ?, failed = ?,
		unsupported = ?, skipped = ?, unrecorded = ? WHERE id = ?`,
		(w.spent + time.Since(w.start)).Milliseconds(), complete, c.Functions, c.Implemented, c.Passed, c.Failed, c.Unsupported, c.Skipped, c.Unrecorded, w.ID)
	return err
}
