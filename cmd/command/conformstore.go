package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
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

// keeper keeps the records of a conformance run in a results store.
type keeper struct {
	keeping
	resume bool

	done     map[string]bool // cases that an interrupted run has judged
	complete bool            // all cases are judged
	spare    *spare
}

func (k *keeper) add(fl *pflag.FlagSet) {
	k.flag(fl)
	fl.BoolVar(&k.resume, "resume", false, "continue the last interrupted run of the store that judged the same, start anew when there is none")
}

// keep opens the store, if there is one to be.
func (r *conformRun) keep(args []string, cfg *baseline.RunConfig, errs io.Writer) error {
	if err := r.kept.open(errs); err != nil {
		return err
	}
	if r.kept.store == nil {
		if r.kept.resume {
			return usage(errors.New("--resume needs a store: --store FILE"))
		}
		return nil
	}
	row, err := r.storedRun(args)
	if err != nil {
		return err
	}
	if r.before, r.earlier, err = storedBefore(r.kept.store, row); err != nil {
		r.kept.check(err)
		return nil
	}
	return r.kept.start(cfg, row, r.replay(cfg), errs)
}

// storedBefore is the report of the last complete run of the store that had the
// same baseline and candidate; nil where there is none.
func storedBefore(s *store.Store, row *store.Run) (*report.Conformance, string, error) {
	last, err := s.LastComplete(row)
	if err != nil || last == nil {
		return nil, "", err
	}
	candidate := last.Candidates()[0]
	c := report.NewConformance(candidate.Name, last.Reference().Name, last.Seed, nil)
	err = s.Cases(last.ID, func(one *store.Case) error { c.Add(conformanceCase(one)); return nil })
	c.Finish()
	return c, fmt.Sprintf("run %d of %s, candidate %s", last.ID, last.Started.Format(time.DateTime), candidate.Version), err
}

// start begins a run in the store, or goes on with one: what it has is handed to
// replay, and its cases are not selected again.
func (k *keeper) start(cfg *baseline.RunConfig, run *store.Run, replay func(*store.Case) error, errs io.Writer) (err error) {
	if k.spare, err = newSpare(cfg); err != nil {
		return harness(err)
	}
	run.Subjects[1].Version = subjectOf(run.Subjects[1].Name, k.spare.Info()).Version
	if !k.resume {
		k.begin(run)
		return nil
	}
	before, err := k.store.Unfinished(run)
	if err != nil {
		return usage(err)
	}
	if before == nil {
		fmt.Fprintf(errs, "plumb: %s has no interrupted run of this baseline, candidate and flags; this is a new one\n", k.file)
		k.begin(run)
		return nil
	}
	if err := k.goOn(cfg, before, replay, errs); err != nil {
		return &exitError{exitFault, err}
	}
	return nil
}

func (k *keeper) goOn(cfg *baseline.RunConfig, before *store.Run, replay func(*store.Case) error, errs io.Writer) (err error) {
	k.done = map[string]bool{}
	k.writer, err = k.store.Resume(before, func(r *store.Case) error {
		k.done[r.Name] = true
		return replay(r)
	})
	pick := cfg.Select
	cfg.Select = func(e *baseline.Entry) bool { return !k.done[e.Name] && pick(e) }
	fmt.Fprintf(errs, "plumb: going on with run %d: %d cases are judged\n", before.ID, len(k.done))
	return err
}

// close writes what is left, and how the command ends.
func (k *keeper) close(ends error) error {
	k.end(k.complete, ends)
	if k.spare == nil {
		return nil
	}
	return k.spare.close()
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
		Command: "plumb conform run", Seed: m.Seed, Plumb: plumb,
		Subjects:  []store.Subject{{Name: m.Reference.Name, Version: m.Reference.Version}, {Name: r.candidate}},
		Recording: &store.Recording{Config: m.Config.Name, ConfigSHA256: m.Config.SHA256, Baseline: r.base.SHA256, Flags: flags},
	}, nil
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
func (r *conformRun) result(rec *baseline.Record) store.Case {
	one := r.vendorCase(rec)
	v := rec.Verdict
	out := store.Case{
		Test: rec.Entry.Function, Name: rec.Entry.Name, Variant: rec.Variant, Number: rec.Index, Subject: r.candidate, Operators: []string{operatorOf(rec.Entry.Function)},
		DTypes: strings.Join(r.modes.dtypes(rec.Entry), " "), Outcome: one.Outcome(), Word: string(one.Word), Kind: string(v.Kind), Reason: v.Reason, Lenient: one.Lenient,
		Compared: v.Compared, Drawn: v.Drawn, Elapsed: rec.Elapsed,
	}
	out.Worst, out.WorstAt = worstOf(v)
	if v.Word.IsFinding() && len(rec.Program.Calls) > 0 {
		out.Text = rec.Program.String()
	}
	return out
}

// worstOf is the largest observed error ÷ limit of a verdict, NaN where nothing
// was compared, with the name of its tensor.
func worstOf(v *verdict.Verdict) (float64, string) {
	if v.WorstAt == nil {
		return math.NaN(), ""
	}
	return float64(v.Worst), string(v.WorstAt.Part) + " " + v.WorstAt.Name
}

// replay counts a result of an interrupted run, and prints it where it is a finding.
func (r *conformRun) replay(cfg *baseline.RunConfig) func(*store.Case) error {
	entries := make(map[string]*baseline.Entry, len(r.base.Manifest.Cases))
	for i := range r.base.Manifest.Cases {
		entries[r.base.Manifest.Cases[i].Name] = &r.base.Manifest.Cases[i]
	}
	return func(one *store.Case) error {
		e := entries[one.Name]
		if e == nil {
			return fmt.Errorf("the baseline has no case %s", one.Name)
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
func restored(one *store.Case, e *baseline.Entry) *baseline.Record {
	v := &verdict.Verdict{Word: verdict.Word(one.Word), Reason: one.Reason, Compared: one.Compared, Drawn: one.Drawn}
	if part, name, ok := strings.Cut(one.WorstAt, " "); ok {
		v.Worst, v.WorstAt = compare.Number(one.Worst), &verdict.Margin{Part: backend.Part(part), Name: name}
	}
	rec := &baseline.Record{
		Record: verdict.Record{Index: one.Number, Program: &program.Program{Name: e.Name}, Verdict: v},
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
	if k.writer == nil {
		return "interrupted; with --resume a run keeps what it has judged, and the same command goes on from there"
	}
	return "interrupted; the same command with --resume goes on from here"
}
