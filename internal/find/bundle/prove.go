package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// State is what a proof found.
type State string

// The states of a proof.
const (
	Reproduced    State = "reproduced"     // every run was misaligned
	Flaky         State = "flaky"          // some were
	NotReproduced State = "not reproduced" // none was
	Unproved      State = "unproved"       // the runs could not tell
)

// Proof says how often a bundle failed again in fresh processes.
type Proof struct {
	State  State  `json:"state"`
	Runs   int    `json:"runs"`
	Failed int    `json:"failed"`
	Reason string `json:"reason,omitempty"` // of another state than Reproduced
	Output string `json:"output,omitempty"` // of the run that decided
}

// String is "reproduced 3/3", "flaky 1/3", "not reproduced" or "unproved".
func (p Proof) String() string {
	if p.State == Reproduced || p.State == Flaky {
		return fmt.Sprintf("%s %d/%d", p.State, p.Failed, p.Runs)
	}
	return string(p.State)
}

// ProveOptions say how a bundle is run.
type ProveOptions struct {
	Runs    int           // 0 means 3
	Timeout time.Duration // of one run; 0 means twice a case's and half a minute
	Within  time.Duration // of all runs together; 0 means as long as they take
	// Command returns what is run for the bundle in a folder; nil means
	// Candidate. Its exit code is 1 where misaligned, 0 where not.
	Command func(b *Bundle, dir string) []string
	Env     []string // in addition to this process's
}

// maxOutput is how much of a run's output is kept.
const maxOutput = 8 << 10

// Prove runs the bundle in fresh processes. An error is a fault of the harness:
// the files could not be laid out. A run that cannot be started, or that cannot
// tell, makes the proof Unproved.
func (b *Bundle) Prove(ctx context.Context, o ProveOptions) (Proof, error) {
	dir := b.Dir
	if dir == "" {
		tmp, err := os.MkdirTemp("", "plumb-repro-*")
		if err != nil {
			return Proof{}, fmt.Errorf("proof of bundle %s: %w", b.ID(), err)
		}
		defer os.RemoveAll(tmp)
		if err := b.Extract(tmp); err != nil {
			return Proof{}, err
		}
		dir = tmp
	}
	if o.Runs <= 0 {
		o.Runs = 3
	}
	if o.Timeout <= 0 {
		o.Timeout = 2*b.timeout() + 30*time.Second
	}
	if o.Command == nil {
		o.Command = Candidate
	}
	var p Proof
	started := time.Now()
	for p.Runs < o.Runs {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		each := o
		if left := o.Within - time.Since(started); o.Within > 0 && left < o.Timeout {
			each.Timeout = max(left, 0)
		}
		r := run(ctx, o.Command(b, dir), each)
		if r.late && each.Timeout < o.Timeout && p.Runs > 0 {
			break // what the runs before have shown stands
		}
		p.Runs++
		switch {
		case r.misaligned || r.crashed && b.m.Place.Mode == byEnding:
			p.Failed++
			p.Output = r.output
		case r.unable != "":
			p.State, p.Reason, p.Output = Unproved, r.unable, r.output
			return p, nil
		case p.Failed == 0:
			p.Output = r.output
		}
	}
	return p.conclude(), nil
}

func (p Proof) conclude() Proof {
	switch {
	case p.Failed == p.Runs:
		p.State = Reproduced
	case p.Failed > 0:
		p.State, p.Reason = Flaky, fmt.Sprintf("%d of %d fresh processes agreed with the reference: the result depends on more than the program", p.Runs-p.Failed, p.Runs)
	default:
		p.State, p.Reason = NotReproduced, "every fresh process agreed with the reference: an earlier case may have left state behind"
	}
	return p
}

// Candidate returns the command that runs the candidate's side of the bundle
// in a folder: its own file where that is PyTorch's, else this very program.
func Candidate(b *Bundle, dir string) []string {
	for _, s := range b.m.Sides {
		if s.Role == "candidate" && strings.HasSuffix(s.File, ".py") && s.File != programFile {
			return []string{orPython(s.Python), filepath.Join(dir, s.File)}
		}
	}
	return Plumb(b, dir)
}

// Plumb returns the command that has this very program run the bundle in a
// folder on the candidate.
func Plumb(_ *Bundle, dir string) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	if strings.HasSuffix(filepath.Base(self), ".test") { // it would run its tests
		self = "plumb"
	}
	return []string{self, "repro", dir, "--as", "plumb", "--run"}
}

// Reference returns the command that runs PyTorch's file of the bundle in a folder.
func Reference(b *Bundle, dir string) []string {
	s := b.m.Sides["torch"]
	return []string{orPython(s.Python), filepath.Join(dir, s.File)}
}

func orPython(path string) string {
	if path == "" {
		return "python3"
	}
	return path
}

// ran is what one run showed.
type ran struct {
	misaligned bool
	crashed    bool   // so that it could not say what it found
	unable     string // why it could not tell
	late       bool   // because it did not end in time
	output     string
}

func run(ctx context.Context, argv []string, o ProveOptions) ran {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.WaitDelay = time.Second
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r := ran{output: strings.TrimSpace(out.b.String())}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.late = true
		r.unable = fmt.Sprintf("%s did not end within %v", argv[0], o.Timeout.Round(time.Millisecond))
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		r.misaligned = true
	case errors.As(err, &exit):
		r.crashed = exit.ExitCode() < 0 || crashedInGo.MatchString(r.output)
		r.unable = fmt.Sprintf("%s ended with %v, which tells nothing", argv[0], exit.ProcessState)
	default:
		r.unable = err.Error()
	}
	return r
}

// crashedInGo is what Go prints at the end of a program that it ends.
var crashedInGo = regexp.MustCompile(`(?m)^fatal error: |^goroutine \d+ .*\[running`)

// tail keeps the end of what is written to it.
type tail struct{ b bytes.Buffer }

var _ io.Writer = (*tail)(nil)

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	t.b.Next(max(0, t.b.Len()-maxOutput))
	return len(p), nil
}

// SetProof notes a proof in finding.json, which is replaced as a whole.
func (b *Bundle) SetProof(p Proof) error {
	b.m.Proof = &p
	if err := b.seal(); err != nil || b.Dir == "" {
		return err
	}
	path := filepath.Join(b.Dir, manifestFile)
	tmp := filepath.Join(b.Dir, "."+manifestFile)
	err := os.WriteFile(tmp, b.files[manifestFile], 0o644)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("proof of bundle %s was not written: %w", b.Dir, errors.Join(err, remove(tmp)))
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
