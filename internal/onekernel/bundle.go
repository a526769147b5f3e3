package onekernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"plumb/backend/worker"
)

// The files of a bundle; dataFile is there where an input is too large to be written
// into the program.
const (
	reproFile   = "repro.py"
	dataFile    = "repro.bin"
	programFile = "program.py"
	reportFile  = "report.json"
)

// Bundle is what was kept of the smallest call that shows a problem, and whether it
// was seen to fail again.
type Bundle struct {
	Dir string `json:"dir"`
	// Run is how its program is run.
	Run string `json:"run"`
	// Failed says that it was seen to fail in a fresh process.
	Failed bool `json:"failed"`
	// How says how it ended: "exit code 1", "SIGSEGV", or why it was not run.
	How    string `json:"how"`
	Output string `json:"output,omitempty"`
}

// String says what is in a bundle in one line.
func (b *Bundle) String() string { return fmt.Sprintf("%s (%s)", b.Run, b.Seen()) }

// Seen says whether its program was seen to fail, and how it ended.
func (b *Bundle) Seen() string {
	seen := "seen to fail in a fresh process"
	if !b.Failed {
		seen = "not seen to fail in a fresh process"
	}
	return seen + ": " + b.How
}

// WriteBundle writes what reproduces the smallest failing call into a folder: a program
// that needs PyTorch alone, the call in Plumb's form, and the report. The program is run
// in a fresh process before the report says that it fails.
func (r *Report) WriteBundle(ctx context.Context, dir string, cfg *Config) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, data, err := r.Smallest.repro(r)
	if errors.Is(err, errNoProgram) {
		r.Notes = append(r.Notes, err.Error())
		return os.WriteFile(filepath.Join(dir, programFile), []byte(r.Smallest.Program), 0o644)
	}
	if err != nil {
		return fmt.Errorf("the program of the bundle: %w", err)
	}
	files := map[string][]byte{reproFile: text, programFile: []byte(r.Smallest.Program)}
	if len(data) > 0 {
		files[dataFile] = data
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	r.Bundle = &Bundle{Dir: dir, Run: cfg.Python + " " + filepath.Join(dir, reproFile)}
	r.prove(ctx, cfg)
	report, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, reportFile), append(report, '\n'), 0o644)
}

// starting is what a fresh process is given beside the time of a call to import PyTorch.
const starting = time.Minute

// startups is how many times as long as the reference's process took to start that of a
// kernel that hangs is given: it was seen to hang before.
const startups = 3

// prove runs the program of a bundle, in the sandbox in which kernels are imported. One
// of a kernel that cheats is not run: what it does beside computing PyTorch alone does
// not see.
func (r *Report) prove(ctx context.Context, cfg *Config) {
	if r.Verdict == Cheats {
		r.Bundle.How = "not run, for the kernel cheats"
		return
	}
	limit := cfg.Timeout + starting
	if slices.ContainsFunc(r.Reasons, func(of Reason) bool { return of.Kind == "hangs" }) {
		limit = cfg.Timeout/asleep + min(starting, startups*r.Smallest.session.startup)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	folder, err := os.MkdirTemp("", "plumb-repro-")
	if err != nil {
		r.Bundle.How = err.Error()
		return
	}
	defer os.RemoveAll(folder)
	cmd, err := r.Bundle.command(limited, cfg, folder)
	if err != nil {
		r.Bundle.How = err.Error()
		return
	}
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	r.Bundle.Output = short(strings.TrimSpace(out.String()))
	r.Bundle.Failed, r.Bundle.How = ended(err, limited.Err() != nil)
}

// command runs the program, with a folder to write to.
func (b *Bundle) command(ctx context.Context, cfg *Config, folder string) (*exec.Cmd, error) {
	program := filepath.Join(b.Dir, reproFile)
	if cfg.NoSandbox {
		return exec.CommandContext(ctx, cfg.Python, program), nil
	}
	return worker.Confined(ctx, cfg.Python, folder, program)
}

// ended says whether a program has failed as one does whose kernel is at fault.
func ended(err error, late bool) (failed bool, how string) {
	var exit *exec.ExitError
	switch {
	case late:
		return true, "it gave no answer"
	case err == nil:
		return false, "exit code 0"
	case !errors.As(err, &exit):
		return false, err.Error()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true, status.Signal().String()
	}
	return exit.ExitCode() == exitWrong, fmt.Sprintf("exit code %d", exit.ExitCode())
}

// exitWrong is the exit code of a bundle's program where the kernel is wrong.
const exitWrong = 1

// ID tells the smallest call of a kernel from others.
func (r *Report) ID() string {
	sum := sha256.Sum256([]byte(r.Kernel + "\n" + r.Smallest.Program))
	return hex.EncodeToString(sum[:8])
}
