package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/find/bundle"
	"plumb/internal/module"
	"plumb/ops"
)

// reproFlags are what plumb repro is told.
type reproFlags struct {
	as       string
	run      bool
	zip      string
	findings string
	python   string
	plumb    string // folder of Plumb's source
	mutant   string // planted into native
	after    string // programs to run before
}

func newRepro() *cobra.Command {
	var f reproFlags
	cmd := &cobra.Command{
		Use:   "repro [ID | FOLDER | ZIP]",
		Short: "Show, run or pack the bundle of a finding",
		Long: `Repro prints a program that shows a finding, or runs it. Each finding has a
bundle, a folder with the failing case as plain PyTorch, as a Go test for Plumb's
own operators, and as a program that Plumb reads. Without an argument repro lists
the findings.

With --run the exit code is that of the program: 1 misaligned, 0 aligned,
2 when it cannot run here.`,
		Example: `  plumb repro                                 the findings, newest first
  plumb repro 3f5a9c1200b7d4e8                the PyTorch program of one
  plumb repro 3f5a9c1200b7d4e8 --run          run it
  plumb repro 3f5a --as native --run          the Go test, against Plumb's source
  plumb repro ./bundle --as plumb --run       on the candidate, by Plumb itself
  plumb repro 3f5a --zip finding.zip          to send it to somebody`,
		Args: takes(0, 1, "one finding: an ID, a folder or a zip file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd, len(args) > 0); err != nil {
				return usage(err)
			}
			if len(args) == 0 {
				return f.list(cmd.OutOrStdout())
			}
			return f.show(cmd, args[0])
		},
	}
	fl := cmd.Flags()
	f.as = "torch"
	fl.Var(oneOf(&f.as, "torch", "native", "plumb", "torch_candidate"), "as", "which program: torch (plain PyTorch), native (a Go test), plumb (Plumb's own text), or torch_candidate where the candidate is PyTorch too")
	fl.BoolVar(&f.run, "run", false, "run the program, and exit with its exit code")
	fl.Var(outFile(&f.zip), "zip", "write the whole bundle to this zip file")
	fl.Var(folder(&f.findings), "findings", "the folder of findings (default: in the user's cache)")
	fl.StringVar(&f.python, "python", "", "the Python that has torch (default: the one with which it was found)")
	fl.Var(folder(&f.plumb), "plumb", "with --as native --run: the folder of Plumb's source (default: where this program was built)")
	fl.StringVar(&f.mutant, "mutant", "", "with --as plumb: the mutant that is planted in Plumb's own operators, for plumb selftest")
	fl.Var(inFile(&f.after), "after", "with --as plumb --run: first run the programs of this file on the candidate, in the same process")
	_ = fl.MarkHidden("mutant")
	needs(cmd, "python", "run")
	needs(cmd, "plumb", "run")
	needs(cmd, "after", "run")
	bars(cmd, "zip", "run", "as")
	return cmd
}

// check refuses flags that say nothing about what is asked for.
func (f *reproFlags) check(cmd *cobra.Command, one bool) error {
	fl := cmd.Flags()
	for _, c := range []struct {
		name  string
		ok    bool
		wants string
	}{
		{"run", one, "a finding: plumb repro ID --run"},
		{"as", one, "a finding: plumb repro ID --as plumb"},
		{"zip", one, "a finding: plumb repro ID --zip FILE"},
		{"mutant", f.as == "plumb", "--as plumb"},
		{"after", f.as == "plumb", "--as plumb"},
		{"plumb", f.as == "native", "--as native"},
		{"python", f.as != "native", "--as torch or --as plumb"},
	} {
		if fl.Changed(c.name) && !c.ok {
			return fmt.Errorf("--%s needs %s", c.name, c.wants)
		}
	}
	return nil
}

// findingsDir returns the folder in which the findings lie.
func findingsDir(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: say where with --findings", err)
	}
	return filepath.Join(dir, "plumb", "findings"), nil
}

// stored is one bundle in the folder of findings.
type stored struct {
	name string
	time time.Time
}

// findingsIn lists the folders of bundles, newest first.
func findingsIn(dir string) ([]stored, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []stored
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, stored{e.Name(), info.ModTime()})
		}
	}
	slices.SortStableFunc(out, func(a, b stored) int { return b.time.Compare(a.time) })
	return out, nil
}

func (f *reproFlags) list(out io.Writer) error {
	dir, err := findingsDir(f.findings)
	if err != nil {
		return usage(err)
	}
	all, err := findingsIn(dir)
	if err != nil {
		return usage(err)
	}
	if len(all) == 0 {
		fmt.Fprintf(out, "no findings in %s\n", dir)
		return nil
	}
	for _, s := range all {
		b, err := bundle.Read(filepath.Join(dir, s.name))
		if err != nil {
			fmt.Fprintf(out, "%s  %s  %v\n", s.name, s.time.Format(time.DateTime), err)
			continue
		}
		fmt.Fprintf(out, "%s  %s  %s\n", s.name, s.time.Format(time.DateTime), b.Title())
	}
	fmt.Fprintf(out, "\nrun one:  plumb repro %s --run\n", all[0].name)
	return nil
}

// open reads the bundle that an argument names: a path, or the beginning of an
// ID among the findings.
func (f *reproFlags) open(arg string) (*bundle.Bundle, error) {
	if _, err := os.Stat(arg); err == nil {
		return bundle.Read(arg)
	}
	dir, err := findingsDir(f.findings)
	if err != nil {
		return nil, err
	}
	all, err := findingsIn(dir)
	if err != nil {
		return nil, err
	}
	var fit []string
	for _, s := range all {
		if strings.HasPrefix(s.name, arg) {
			fit = append(fit, s.name)
		}
	}
	switch len(fit) {
	case 0:
		return nil, fmt.Errorf("no finding %s in %s, and no such folder or zip file; see: plumb repro", arg, dir)
	case 1:
		return bundle.Read(filepath.Join(dir, fit[0]))
	}
	return nil, fmt.Errorf("%s is ambiguous: %s", arg, strings.Join(fit, ", "))
}

func (f *reproFlags) show(cmd *cobra.Command, arg string) error {
	b, err := f.open(arg)
	if err != nil {
		return usage(err)
	}
	if f.zip != "" {
		return f.pack(cmd.OutOrStdout(), b)
	}
	name, ok := b.Script(f.as)
	if !ok {
		return usage(fmt.Errorf("the bundle has no program for %q; it has %s", f.as, strings.Join(slices.Sorted(maps.Keys(b.Scripts())), ", ")))
	}
	if !f.run {
		_, err := cmd.OutOrStdout().Write(b.File(name))
		return err
	}
	switch {
	case f.as == "plumb":
		return f.judge(cmd, b)
	case strings.HasSuffix(name, ".go"):
		return f.goTest(cmd, b)
	}
	return f.script(cmd, b, name)
}

// pack writes the zip file beside its place first: a whole one is never
// replaced by half of one.
func (f *reproFlags) pack(out io.Writer, b *bundle.Bundle) error {
	err := whole(f.zip, func(w io.Writer) error { return bundle.WriteZip(w, b) })
	if err != nil {
		return usage(fmt.Errorf("--zip: %w", err))
	}
	fmt.Fprintf(out, "%s holds the finding %s\n", f.zip, b.ID())
	return nil
}

// whole writes a file that appears whole or not at all.
func whole(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".plumb-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if err := write(tmp); err != nil {
		tmp.Close()
		return err
	}
	if err := errors.Join(tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// judge runs the program on the candidate here and now.
func (f *reproFlags) judge(cmd *cobra.Command, b *bundle.Bundle) error {
	finding, err := b.Finding()
	if err != nil {
		return usage(err)
	}
	candidate, err := f.candidate(cmd.Context(), finding)
	if err != nil {
		return unable(err)
	}
	defer candidate.Close()
	if err := f.before(cmd.Context(), candidate); err != nil {
		return err
	}
	outcome, err := within(cmd.Context(), candidate, finding)
	if err != nil {
		return unable(err)
	}
	result, err := b.Judge(outcome)
	if err != nil {
		return usage(err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), result.Text)
	switch {
	case result.Misaligned:
		return &exitError{exitFindings, nil}
	case result.Unable:
		return &exitError{exitUsage, nil}
	}
	return nil
}

// before runs the programs of --after on the candidate. What comes of them does
// not matter, only what they leave behind.
func (f *reproFlags) before(ctx context.Context, candidate backend.Backend) error {
	if f.after == "" {
		return nil
	}
	text, err := readRegular(f.after)
	if err != nil {
		return usage(err)
	}
	programs, err := bundle.SplitPrograms(f.after, string(text))
	if err != nil {
		return usage(err)
	}
	for _, p := range programs {
		job := backend.NewJob(p)
		if _, err := candidate.Run(ctx, job); err != nil {
			return unable(fmt.Errorf("--after: %w", err))
		}
	}
	return nil
}

// candidate opens the finding's candidate.
func (f *reproFlags) candidate(ctx context.Context, finding *bundle.Finding) (backend.Backend, error) {
	if f.mutant != "" {
		return mutant(f.mutant)
	}
	set := open.Set{Table: ops.Table(), Python: f.python, Timeout: finding.Timeout, Growth: cmp.Or(finding.Growth, measureCapacity().growth(1))}
	open, err := set.Opener(ctx, finding.Candidate.Spec)
	if err != nil {
		return nil, err
	}
	return open()
}

// within runs the program for as long as a case may take; what does not heed
// the end of its time is left running.
func within(ctx context.Context, candidate backend.Backend, f *bundle.Finding) (*backend.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	type result struct {
		outcome *backend.Outcome
		err     error
	}
	done := make(chan result, 1)
	go func() {
		o, err := f.Run(ctx, candidate)
		done <- result{o, err}
	}()
	const grace = time.Second
	select {
	case r := <-done:
		return r.outcome, r.err
	case <-time.After(f.Timeout + grace):
		return &backend.Outcome{Status: backend.TimedOut, Message: fmt.Sprintf("no result after %v", f.Timeout)}, nil
	}
}

// unable ends with 2: the environment cannot run the program.
func unable(err error) error {
	var e *exitError
	if errors.As(err, &e) && e.err != nil {
		err = e.err
	}
	return &exitError{exitUsage, fmt.Errorf("cannot run here: %w", err)}
}

// script runs a PyTorch file.
func (f *reproFlags) script(cmd *cobra.Command, b *bundle.Bundle, name string) error {
	return f.inside(b, func(dir string) error {
		python := f.python
		if python == "" {
			python = b.Python(f.as)
		}
		if _, err := exec.LookPath(python); err != nil {
			if f.python != "" {
				return unable(err)
			}
			if python, _, err = worker.FindPython(""); err != nil {
				return unable(err)
			}
		}
		return execute(cmd, dir, nil, python, name)
	})
}

// inside calls f with the bundle's folder, or with a folder made of its zip file.
func (f *reproFlags) inside(b *bundle.Bundle, do func(dir string) error) error {
	if b.Dir != "" {
		return do(b.Dir)
	}
	dir, err := os.MkdirTemp("", "plumb-repro-*")
	if err != nil {
		return usage(err)
	}
	defer os.RemoveAll(dir)
	if err := b.Extract(dir); err != nil {
		return usage(err)
	}
	return do(dir)
}

// execute runs a command in a folder and takes over its exit code.
func execute(cmd *cobra.Command, dir string, env []string, argv ...string) error {
	c := exec.CommandContext(cmd.Context(), argv[0], argv[1:]...)
	c.Dir, c.Stdout, c.Stderr = dir, cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.Env = append(os.Environ(), env...)
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &exitError{exit.ExitCode(), nil}
	case err != nil:
		return unable(err)
	}
	return nil
}

// goTest runs the Go test in a module of its own that takes Plumb from its source.
func (f *reproFlags) goTest(cmd *cobra.Command, b *bundle.Bundle) error {
	source, err := f.source()
	if err != nil {
		return unable(err)
	}
	if _, err := exec.LookPath("go"); err != nil {
		return unable(fmt.Errorf("%w: the Go test needs Go, see https://go.dev/dl; plumb repro %s --as plumb --run does not", err, b.ID()))
	}
	dir, err := os.MkdirTemp("", "plumb-repro-*")
	if err != nil {
		return usage(err)
	}
	defer os.RemoveAll(dir)
	if err := b.Extract(dir); err != nil {
		return usage(err)
	}
	env := []string{"GOWORK=off"}
	if err := execute(cmd, dir, env, "go", "mod", "edit", "-replace", module.Path+"="+source); err != nil {
		return unable(fmt.Errorf("go mod edit: %w", err))
	}
	if err := execute(cmd, dir, env, "go", "test", "-mod=readonly", "-c", "-o", "repro.test", "."); err != nil {
		return unable(errors.New("the Go test does not compile against the source in " + source))
	}
	return execute(cmd, dir, nil, filepath.Join(dir, "repro.test"), "-test.v")
}

// source returns the folder of Plumb's source.
func (f *reproFlags) source() (string, error) {
	dir := f.plumb
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(file), "..", "..")
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+module.Path+"\n") {
		return "", fmt.Errorf("the source of Plumb is not in %s: say where with --plumb, or run: plumb repro --as plumb --run", dir)
	}
	return filepath.Abs(dir)
}
