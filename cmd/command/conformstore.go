package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/conform/baseline"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// storeVariable is the environment variable that names the results store where
// --store does not.
const storeVariable = "PLUMB_STORE"

// keeper keeps the records of a conformance run in a results store.
type keeper struct {
	path   string
	resume bool

	store  *store.Store // nil without --store
	writer *store.Writer
	done   map[string]bool         // cases that an interrupted run has judged
	stop   context.CancelCauseFunc // ends the run when the store cannot be written
	failed bool
	spare  *spare
}

func (k *keeper) add(fl *pflag.FlagSet) {
	fl.Var(outFile(&k.path), "store", "keep the results in this file, for plumb conform history (default: $"+storeVariable+", else none)")
	fl.BoolVar(&k.resume, "resume", false, "continue the last interrupted run that judged the same, start anew when there is none; without --store the results are kept in a file of the user's cache")
}

// named is the file, "" for none.
func (k *keeper) named() (string, error) {
	path := cmp.Or(k.path, os.Getenv(storeVariable))
	if path != "" || !k.resume {
		return path, nil
	}
	return resumeStore()
}

// resumeStore is the store of --resume without one: a file of the user's cache.
func resumeStore() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", usage(fmt.Errorf("--resume needs --store FILE: %w", err))
	}
	path := filepath.Join(cache, "plumb", "conform.db")
	return path, os.MkdirAll(filepath.Dir(path), 0o755)
}

// keep opens the store, if there is one to be.
func (r *conformRun) keep(args []string, cfg *baseline.RunConfig, stop context.CancelCauseFunc, errs io.Writer) error {
	path, err := r.kept.named()
	if err != nil || path == "" {
		return err
	}
	row, err := r.storedRun(args)
	if err != nil {
		return err
	}
	r.kept.stop = stop
	if r.before, r.earlier, err = storedBefore(path, row); err != nil {
		return usage(err)
	}
	return r.kept.open(path, cfg, row, r.replay(cfg), errs)
}

// storedBefore is the report of the last complete run of the store that had the
// same baseline and candidate; nil where there is none.
func storedBefore(path string, row *store.Run) (*report.Conformance, string, error) {
	s, err := store.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer s.Close()
	var last *store.Run
	if err := s.Runs(func(one *store.Run) error {
		if one.Complete && one.Baseline == row.Baseline && one.Candidate == row.Candidate {
			last = one
		}
		return nil
	}); err != nil || last == nil {
		return nil, "", err
	}
	c := report.NewConformance(last.Candidate, last.Reference, last.Seed, nil)
	err = s.Results(last.ID, func(one *store.Result) error { c.Add(conformanceCase(one)); return nil })
	c.Finish()
	return c, fmt.Sprintf("run %d of %s, candidate %s", last.ID, last.Started.Format(time.DateTime), last.CandidateVersion), err
}

// open begins a run in the store, or goes on with one: what it has is handed to
// replay, and its cases are not selected again.
func (k *keeper) open(path string, cfg *baseline.RunConfig, run *store.Run, replay func(*store.Result) error, errs io.Writer) (err error) {
	if k.spare, err = newSpare(cfg); err != nil {
		return harness(err)
	}
	info := k.spare.Info()
	run.CandidateVersion = strings.TrimSpace(info.Name + " " + info.Version)
	if k.store, err = store.Open(path); err != nil {
		return usage(err)
	}
	var before *store.Run
	if k.resume {
		if before, err = k.store.Unfinished(run); err != nil {
			return usage(err)
		}
	}
	switch {
	case before != nil:
		err = k.goOn(cfg, before, replay, errs)
	default:
		if k.resume {
			fmt.Fprintf(errs, "plumb: %s has no interrupted run of this baseline, candidate and flags; this is a new one\n", path)
		}
		k.writer, err = k.store.Begin(run)
	}
	if err != nil {
		return &exitError{exitFault, err}
	}
	return nil
}

func (k *keeper) goOn(cfg *baseline.RunConfig, before *store.Run, replay func(*store.Result) error, errs io.Writer) (err error) {
	k.done = map[string]bool{}
	k.writer, err = k.store.Resume(before, func(r *store.Result) error {
		k.done[r.Case] = true
		return replay(r)
	})
	pick := cfg.Select
	cfg.Select = func(e *baseline.Entry) bool { return !k.done[e.Name] && pick(e) }
	fmt.Fprintf(errs, "plumb: going on with run %d: %d cases are judged\n", before.ID, len(k.done))
	return err
}

// keep adds a result. The first failure ends the run.
func (k *keeper) keep(r store.Result) {
	if k.writer == nil || k.failed {
		return
	}
	if err := k.writer.Add(r); err != nil {
		k.failed = true
		k.stop(err)
	}
}

// close writes what is left, and that all cases have their results if they have.
func (k *keeper) close(complete bool) (err error) {
	if k.writer != nil && !k.failed {
		err = k.writer.Close(complete)
	}
	if k.store != nil {
		err = errors.Join(err, k.store.Close())
	}
	if k.spare != nil {
		err = errors.Join(err, k.spare.close())
	}
	return err
}

// spare is a candidate that was opened to be asked its version: the first
// instance of the run.
type spare struct {
	backend.Backend
	mu   sync.Mutex
	used bool
}

func newSpare(cfg *baseline.RunConfig) (*spare, error) {
	open := cfg.Open
	first, err := open()
	if err != nil {
		return nil, err
	}
	s := &spare{Backend: first}
	cfg.Open = func() (backend.Backend, error) {
		if b := s.take(); b != nil {
			return b, nil
		}
		return open()
	}
	return s, nil
}

// forwardOnly says that the candidate has no gradients, as far as it was asked.
func (k *keeper) forwardOnly() bool { return k.spare != nil && k.spare.Info().ForwardOnly }

// take returns the instance once, and nil after that.
func (s *spare) take() backend.Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used {
		return nil
	}
	s.used = true
	return s.Backend
}

// close closes the instance if nothing took it.
func (s *spare) close() error {
	if b := s.take(); b != nil {
		return b.Close()
	}
	return nil
}

// storedRun is the row of this run.
func (r *conformRun) storedRun(args []string) (*store.Run, error) {
	m := &r.base.Manifest
	flags, err := r.storedFlags(args)
	if err != nil {
		return nil, err
	}
	plumb, err := build()
	if err != nil {
		return nil, harness(err)
	}
	return &store.Run{
		Started: time.Now(), Config: m.Config.Name, ConfigSHA256: m.Config.SHA256, Baseline: r.base.SHA256,
		Candidate: r.candidate, Reference: m.Reference.Name, ReferenceVersion: m.Reference.Version,
		Flags: flags, Seed: m.Seed, Plumb: plumb,
	}, nil
}

// build is the version of this program with the start of its SHA-256: native's
// verdicts are those of one build.
func build() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	sum, err := fileSHA256(path)
	return fmt.Sprintf("%s, build %.12s", plumbVersion(), sum), err
}

// storedFlags are the flags and files that change verdicts: a run goes on only
// under the same.
func (r *conformRun) storedFlags(args []string) (string, error) {
	m := &r.modes
	flags := struct {
		Config    string   `json:"config,omitempty"` // SHA-256, as that of all files
		Functions []string `json:"fname,omitempty"`
		Without   []string `json:"filter-dtype,omitempty"`
		NHWC      bool     `json:"nhwc,omitempty"`
		MinDim    int      `json:"nhwc-min-dim,omitempty"`
		FourBytes bool     `json:"four-bytes,omitempty"`
		Forward   bool     `json:"forward,omitempty"`
		Model     string   `json:"model,omitempty"`
		ModelFile string   `json:"model-file,omitempty"`
		Device    string   `json:"device-config,omitempty"`
		Compat    string   `json:"compat,omitempty"`
		Timeout   string   `json:"timeout"`
	}{
		Functions: sorted(r.fnames), Without: sorted(m.without), NHWC: m.nhwc, MinDim: m.minDim, FourBytes: m.fourBytes,
		Forward: m.forward, Model: m.models.name, Compat: m.compat, Timeout: r.timeout.String(),
	}
	var errs [3]error
	flags.Config, errs[0] = fileSHA256(strings.Join(args, ""))
	flags.ModelFile, errs[1] = fileSHA256(m.models.file)
	flags.Device, errs[2] = fileSHA256(m.deviceFile)
	if err := errors.Join(errs[:]...); err != nil {
		return "", usage(err)
	}
	text, err := json.Marshal(flags)
	return string(text), err
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// fileSHA256 is that of a file's bytes; "" of no file.
func fileSHA256(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// result is a record as the store keeps it.
func (r *conformRun) result(rec *baseline.Record) store.Result {
	one := r.vendorCase(rec)
	v := rec.Verdict
	out := store.Result{
		Case: rec.Entry.Name, Variant: rec.Variant, Position: rec.Index, Function: rec.Entry.Function,
		DTypes: strings.Join(r.modes.dtypes(rec.Entry), " "), Outcome: one.Outcome(), Word: string(one.Word), Reason: v.Reason, Lenient: one.Lenient,
		Compared: v.Compared, Drawn: v.Drawn, Worst: math.NaN(), Elapsed: rec.Elapsed,
	}
	if v.WorstAt != nil {
		out.Worst, out.WorstAt = float64(v.Worst), string(v.WorstAt.Part)+" "+v.WorstAt.Name
	}
	return out
}

// replay counts a result of an interrupted run, and prints it where it is a finding.
func (r *conformRun) replay(cfg *baseline.RunConfig) func(*store.Result) error {
	entries := make(map[string]*baseline.Entry, len(r.base.Manifest.Cases))
	for i := range r.base.Manifest.Cases {
		entries[r.base.Manifest.Cases[i].Name] = &r.base.Manifest.Cases[i]
	}
	return func(one *store.Result) error {
		e := entries[one.Case]
		if e == nil {
			return fmt.Errorf("the baseline has no case %s", one.Case)
		}
		cfg.Skip(e) // marks the rules of a device config as used
		rec := restored(one, e)
		r.count(rec)
		if w := rec.Verdict.Word; w.IsFinding() && !r.json {
			fmt.Fprintf(r.out, "%s %s, judged before the run was interrupted\n%s", w, rec.Test, indented(firstLineOf(rec.Verdict.Reason)))
		}
		return nil
	}
}

// restored is a record without what the store does not keep: program and outcomes.
func restored(one *store.Result, e *baseline.Entry) *baseline.Record {
	v := &verdict.Verdict{Word: verdict.Word(one.Word), Reason: one.Reason, Compared: one.Compared, Drawn: one.Drawn}
	if part, name, ok := strings.Cut(one.WorstAt, " "); ok {
		v.Worst, v.WorstAt = compare.Number(one.Worst), &verdict.Margin{Part: backend.Part(part), Name: name}
	}
	rec := &baseline.Record{
		Record: verdict.Record{Index: one.Position, Program: &program.Program{Name: e.Name}, Verdict: v},
		Entry:  e, Variant: one.Variant, Skipped: one.Word == "", Elapsed: one.Elapsed,
	}
	if one.Lenient != "" {
		rec.Notes = map[string]string{"diopi": one.Lenient}
	}
	rec.Test = testName(rec)
	return rec
}

func firstLineOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// interrupted says how to go on after an interruption.
func (k *keeper) interrupted() string {
	if k.store == nil {
		return "interrupted; with --resume a run keeps what it has judged, and the same command goes on from there"
	}
	return "interrupted; the same command with --resume goes on from here"
}
