package command

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/ops"
	"plumb/program"
)

// storeVariable is the environment variable that names the results store where
// --store does not.
const storeVariable = "PLUMB_STORE"

// noStore is the name of no store.
const noStore = "none"

// keeping keeps a run in the results store. A store that cannot be written ends
// the keeping with a warning, not the run.
type keeping struct {
	path string // of --store

	file   string       // that is kept in
	store  *store.Store // nil where nothing is kept
	writer *store.Writer
	stage  string // that was written last
	errs   io.Writer

	mistakes []store.Mistake
}

func (k *keeping) flag(fl *pflag.FlagSet) {
	fl.Var(&pathValue{&k.path, "file", checkStore}, "store", `keep the run in this file, for plumb history; "none" for no file (default: $`+storeVariable+", else plumb/plumb.db of the user's state folder)")
}

// checkStore returns an error where a path can be no store.
func checkStore(path string) error {
	if path == noStore {
		return nil
	}
	return checkWritable(path)
}

// stateFolder is where programs keep what outlasts their runs.
func stateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state"), err
}

// storeNamed is the file of a --store, of $PLUMB_STORE, or of the user's state
// folder; "" for none.
func storeNamed(flag string) (string, error) {
	path := cmp.Or(flag, os.Getenv(storeVariable))
	switch path {
	case noStore:
		return "", nil
	case "":
		dir, err := stateFolder()
		return filepath.Join(dir, "plumb", "plumb.db"), err
	}
	return path, nil
}

// open opens the store to write to, where there is to be one. What keeps it from
// being opened is a warning, or with --store a mistake of the caller's.
func (k *keeping) open(errs io.Writer) error {
	k.errs = errs
	path, err := storeNamed(k.path)
	k.file = path
	if err == nil && path == "" {
		return nil
	}
	if err == nil && k.path == "" && os.Getenv(storeVariable) == "" {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		k.store, err = store.Open(path)
	}
	if err != nil && k.path != "" {
		return usage(err)
	}
	k.check(err)
	return nil
}

// begin begins a run, whose start, build and environment it adds.
func (k *keeping) begin(r *store.Run) {
	if k.store == nil {
		return
	}
	plumb, err := build()
	if err == nil {
		r.Started, r.Plumb, r.Environment = time.Now(), plumb, environment()
		r.Args = slices.Clone(os.Args[min(1, len(os.Args)):])
		k.writer, err = k.store.Begin(r)
	}
	k.check(err)
}

// check ends the keeping where something went wrong, and says so.
func (k *keeping) check(err error) {
	if err == nil {
		return
	}
	fmt.Fprintf(k.errs, "plumb: the run is not kept: %v\n", err)
	k.writer = nil
}

// subjects sets what the subjects of the run are.
func (k *keeping) subjects(subjects []store.Subject) {
	if k.writer != nil {
		k.check(k.writer.Subjects(subjects))
	}
}

// doing keeps what the run does now, beside judging.
func (k *keeping) doing(stage string) {
	if k.writer != nil && k.stage != stage {
		k.stage = stage
		k.check(k.writer.Does(stage))
	}
}

func (k *keeping) add(c store.Case) {
	if k.writer != nil {
		k.check(k.writer.Add(c))
	}
}

// record adds a record of a drawn case.
func (k *keeping) record(r *verdict.Record) {
	if k.writer != nil {
		k.add(storedCase(r))
	}
}

// mistaken adds a mistake in a test.
func (k *keeping) mistaken(e *verdict.End) {
	k.mistakes = append(k.mistakes, store.Mistake{Test: e.Test, Text: report.ErrorText(e.Err)})
}

// findings adds the findings; where none were made smaller, the groups of cases
// that fail alike.
func (k *keeping) findings(found []*finding.Finding, groups []*finding.Group) {
	if k.writer == nil {
		return
	}
	for _, f := range found {
		s := sighting(f.Groups[0], f.Result.Record)
		s.What, s.Cases, s.Bundle, s.Proof = f.Result.Signature.String(), f.Count(), f.Bundle, f.Proof
		k.sight(s)
	}
	if len(found) == 0 {
		for _, g := range groups {
			k.sight(sighting(g, g.First))
		}
	}
}

func (k *keeping) sight(s *store.Sighting) {
	if k.writer == nil {
		return
	}
	if s.Bundle != "" {
		if dir, err := filepath.Abs(s.Bundle); err == nil {
			s.Bundle = dir // who reads the store may work elsewhere
		}
	}
	k.check(k.writer.Sight(s))
}

func sighting(g *finding.Group, r *verdict.Record) *store.Sighting {
	s := &store.Sighting{
		Subject: g.Candidate, Operator: operatorOf(g.Signature.Operator), What: g.Signature.String(), Test: g.Test, Cases: g.Count,
		Reason: r.Verdict.Reason, Program: r.Program.String(),
	}
	if names := operatorsOf(g.Test, r.Program); s.Operator == "" && len(names) > 0 {
		s.Operator = names[0]
	}
	return s
}

// end writes the rest, whether that is all, and how the command ends.
func (k *keeping) end(complete bool, err error) {
	if k.writer != nil {
		k.check(k.writer.End(complete, codeOf(err), k.mistakes...))
	}
	if k.store != nil {
		_ = k.store.Close()
		k.store, k.writer = nil, nil
	}
}

// codeOf is the exit code of a command that ends with an error, or without.
func codeOf(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitAligned
	case errors.As(err, &e):
		return e.code
	}
	return exitUsage
}

// build is the version of this program with the start of its SHA-256: native's
// verdicts are those of one build.
var build = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	sum, err := fileSHA256(path)
	return fmt.Sprintf("%s, build %.12s", plumbVersion(), sum), err
})

// environment says on what the command runs.
func environment() map[string]string {
	env := map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version()}
	for _, name := range []string{"GITHUB_SHA", "GITHUB_REF_NAME", "CI_COMMIT_SHA", "CI_COMMIT_REF_NAME"} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

// codeMark begins, in a version, the digest of what the version says nothing of.
const codeMark = " (code "

// subjectOf is a backend as the store keeps it, under its name on the command line.
func subjectOf(name string, info backend.Info) store.Subject {
	version := strings.TrimSpace(info.Name + " " + info.Version)
	if code, err := ownCode(name, info); err == nil && code != "" {
		version += codeMark + code + ")"
	}
	return store.Subject{Name: name, Version: version}
}

// localPart is the part of a version, by PEP 440, that says how it was built: 2.15.0+cpu.
var localPart = regexp.MustCompile(`\+[\w.]+`)

// publicVersion is a version without it: builds of one version are to compute the same.
func publicVersion(version string) string { return localPart.ReplaceAllString(version, "") }

// ownCode is a digest of what a subject runs that its version says nothing of: the file
// that its name is, and what its worker has loaded of its user's own; "" for neither.
func ownCode(name string, info backend.Info) (string, error) {
	file, err := fileSHA256(open.ParseSpec(name).File())
	loaded := info.Features["code"]
	if err != nil || file == "" && loaded == "" {
		return "", err
	}
	sum := sha256.Sum256([]byte(file + " " + loaded))
	return hex.EncodeToString(sum[:8]), nil
}

// storedCase is a record as the store keeps it.
func storedCase(r *verdict.Record) store.Case {
	v := r.Verdict
	c := store.Case{
		Test: r.Test, Number: r.Index, Program: r.Program.ID(), Subject: r.Candidate, Mode: r.Mode(), Operators: operatorsOf(r.Test, r.Program), DTypes: dtypesOf(r.Program),
		Outcome: report.OutcomeOf(v.Word), Word: string(v.Word), Kind: string(v.Kind), Reason: v.Reason, Compared: v.Compared, Drawn: v.Drawn,
	}
	c.Worst, c.WorstAt = worstOf(v)
	if r.Outcome != nil {
		c.Elapsed = r.Outcome.Elapsed
		if v.Word == verdict.Crash || v.Word == verdict.OOM { // by what it ended: a signal, an exit status
			c.Kind = cmp.Or(c.Kind, r.Outcome.Class)
		}
	}
	if r.Reference != nil {
		c.Reference = r.Reference.Elapsed
	}
	switch {
	case v.Word.IsFinding():
		c.Text = r.Program.String()
	case v.Word == verdict.Rejected && v.Reference != nil && v.Candidate != nil:
		c.Reason = fmt.Sprintf("%s: %s: %s", v.Reason, v.Reference.Class, v.Reference.Message)
	}
	return c
}

// dtypesOf are the dtypes of a program's inputs, distinct, in order.
func dtypesOf(p *program.Program) string {
	var all []string
	for i := range p.Inputs {
		if dt := p.Inputs[i].DType.String(); !slices.Contains(all, dt) {
			all = append(all, dt)
		}
	}
	return strings.Join(all, " ")
}

// operatorsOf are the operators of a case: the one that its test is about, and
// those that its program calls.
func operatorsOf(test string, p *program.Program) []string {
	var all []string
	add := func(name string) {
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if id, _, ok := report.OperatorOf(test); ok {
		add(id)
	}
	for i := range p.Calls {
		if target := p.Calls[i].Target; target != "Module.__call__" {
			add(operatorOf(target))
		}
	}
	return all
}

// operatorOf is the id of the operator that a call names, or the last part of the name.
func operatorOf(target string) string {
	if id := operatorIDs()[verdict.OperatorName(target)]; id != "" {
		return id
	}
	return target[strings.LastIndexByte(target, '.')+1:]
}

// operatorIDs are the ids of the table's operators, by the names by which forms
// of an operator are equal.
var operatorIDs = sync.OnceValue(func() map[string]string {
	ids := map[string]string{}
	for _, d := range ops.Table().Defs() {
		ids[verdict.OperatorName(d.ID())] = d.ID()
	}
	return ids
})
