// Package proof runs the proofs of faults on the framework that is said to have
// them.
package proof

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Word says what a proof came to.
type Word string

// The words of proofs.
const (
	Held    Word = "held"    // the fault is there
	Gone    Word = "gone"    // it is not
	Changed Word = "changed" // the proof raises, crashes or hangs: neither
)

// Result is what came of one proof.
type Result struct {
	Word    Word
	Message string // of a proof that is changed
}

// Framework is where proofs run.
type Framework struct {
	Python  string
	Module  string // that is imported, and says its version
	Setup   string // Python that runs before each proof
	Seconds int    // that one proof may take
}

//go:embed proof.py
var program string

type request struct {
	Module  string   `json:"module"`
	Setup   string   `json:"setup"`
	Seconds int      `json:"seconds"`
	Proofs  []string `json:"proofs"`
}

// Run runs proofs and gives each result to f as it comes, in order. It returns
// the framework's version.
func (fw Framework) Run(ctx context.Context, proofs []string, f func(i int, r Result)) (version string, err error) {
	text, err := json.Marshal(request{fw.Module, fw.Setup, fw.Seconds, proofs})
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, fw.Python, "-c", program)
	cmd.Stdin = bytes.NewReader(text)
	said := &tail{}
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	version, err = read(out, len(proofs), f)
	if ended := cmd.Wait(); ended != nil {
		return version, fmt.Errorf("%s: %w: %s", fw.Python, ended, said)
	}
	return version, err
}

// read reads the version and n results.
func read(out io.Reader, n int, f func(i int, r Result)) (version string, err error) {
	lines := bufio.NewScanner(out)
	for i := -1; i < n && lines.Scan(); i++ {
		if i < 0 {
			if err := json.Unmarshal(lines.Bytes(), &version); err != nil {
				return "", err
			}
			continue
		}
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &[]any{&r.Word, &r.Message}); err != nil {
			return version, err
		}
		f(i, r)
	}
	return version, lines.Err()
}

// tail keeps the last of what is written to it.
type tail struct{ last []byte }

const room = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-room):]
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.last)) }
