package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"plumb/backend/open"
	"plumb/internal/campaign/fleet"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/store"
	"plumb/internal/find/bundle"
	"plumb/internal/scratch"
)

// bundler has workers make bundles of the findings of a campaign that is judged.
type bundler struct {
	*campaignServe
	db    *store.Store
	books *ledger.Ledger
	run   int64
	names map[int64]string // of findings: operator and subject
}

// findings closes the campaign's books and returns its findings that have no bundle yet.
func (b *bundler) findings() ([]fleet.Finding, error) {
	c, err := b.db.Campaign(fmt.Sprint(b.run))
	if err == nil {
		_, _, err = b.closed(b.db, b.books, c)
	}
	if err != nil {
		return nil, err
	}
	each := map[string]int{} // by subject
	var all []fleet.Finding
	err = b.db.Sightings(b.run, func(f *store.Sighting) error {
		if f.Program == "" || f.Bundle != "" || each[f.Subject] == b.bundles {
			return nil
		}
		each[f.Subject]++
		b.names[f.Finding] = plain(fmt.Sprintf("%s on %s", f.Operator, f.Subject))
		all = append(all, fleet.Finding{N: f.Finding, Subject: f.Subject, Strict: ofOperators(f.Test), Program: f.Program})
		return nil
	})
	if len(all) > 0 {
		b.say("workers judge %s again, for the smallest programs", count(len(all), "finding"))
	}
	return all, err
}

// keep keeps a bundle that a worker sent among the findings of this machine.
func (b *bundler) keep(of fleet.Bundle, take func(io.Writer) error) error {
	if take == nil {
		b.say("%s has no bundle: %s", b.names[of.Finding], plain(of.Why))
		return nil
	}
	read, err := readSent(take)
	if err != nil {
		b.say("%s: what worker %s sent is no bundle: %s", b.names[of.Finding], plain(of.Worker), plain(err.Error()))
		return nil
	}
	dir, err := findingsDir("")
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, read.ID())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := read.Extract(dir); err != nil {
		return err
	}
	b.say("%s: %s; plumb repro %s", b.names[of.Finding], plain(read.Title()), read.ID())
	return b.books.Bundle(of.Finding, dir, of.Proof)
}

// readSent reads and checks a bundle that take writes as a zip file.
func readSent(take func(io.Writer) error) (*bundle.Bundle, error) {
	dir, err := scratch.Dir("bundle")
	if err != nil {
		return nil, err
	}
	defer scratch.Remove(dir) //nolint:errcheck // the next start removes it
	f, err := os.Create(filepath.Join(dir, "zip"))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(take(f), f.Close()); err != nil {
		return nil, err
	}
	b, err := bundle.Read(f.Name())
	if err == nil && !bundleName.MatchString(b.ID()) {
		err = fmt.Errorf("a bundle is not called %q", b.ID())
	}
	return b, err
}

var bundleName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// findings judges findings again until none waits, and returns how many.
func (w *workerCommand) findings(ctx context.Context, of *fleet.Worker, s *spec) (did int, err error) {
	for {
		f, err := of.Finding(ctx)
		if f == nil || err != nil {
			return did, err
		}
		if err := w.finding(ctx, of, s, f); err != nil {
			return did, err
		}
		did++
	}
}

func (w *workerCommand) finding(ctx context.Context, of *fleet.Worker, s *spec, f *fleet.Finding) error {
	dir, err := scratch.Dir("finding")
	if err != nil {
		return err
	}
	defer scratch.Remove(dir) //nolint:errcheck // the next start removes it
	b, zip := fleet.Bundle{Finding: f.N, Worker: of.Name}, filepath.Join(dir, "zip")
	looking, stop := context.WithTimeoutCause(ctx, fleet.Looking, fmt.Errorf("it takes more than %s", fleet.Looking))
	defer stop()
	if b.Proof, err = w.bundle(looking, s, f, dir); err == nil {
		b.Zip, err = zipBundle(filepath.Join(dir, "bundle"), zip)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case looking.Err() != nil && err != nil:
		err = context.Cause(looking)
	}
	if err != nil {
		b.Why, zip = err.Error(), ""
	}
	return of.Bundle(ctx, b, zip)
}

// bundle judges a finding as plumb run does, in a process of its own, and writes its bundle
// into the folder.
func (w *workerCommand) bundle(ctx context.Context, s *spec, f *fleet.Finding, dir string) (proof string, err error) {
	program := filepath.Join(dir, "finding.py")
	known, err := s.knownFile(dir)
	if err := cmp.Or(err, os.WriteFile(program, []byte(f.Program), 0o600)); err != nil {
		return "", err
	}
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	here := *s
	if at := w.on.held[open.ParseSpec(s.Reference).File()]; at != "" && s.sent(s.Reference) {
		here.Reference = "recorded:" + at
	}
	args := append([]string{"run", "--json", "--store", "none", "-j", fmt.Sprint(w.on.jobs)}, here.runFlags(runKind{f.Subject, f.Strict}, known)...)
	if w.on.python != "" && slices.ContainsFunc([]string{s.Reference, f.Subject}, isTorch) {
		args = append(args, "--python", w.on.python)
	}
	if w.on.sandbox {
		args = append(args, "--sandbox")
	}
	args = append(args, "--set", "margins=none", "--set", "findings="+filepath.Join(dir, "findings"), program)
	var out, printed bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = append(os.Environ(), "PLUMB_CONFIG=none", guardVariable+"=")
	cmd.Stdout, cmd.Stderr = &out, &printed
	err = cmd.Run()
	var found struct {
		Minimal struct{ Bundle, Proof string }
	}
	for lines := json.NewDecoder(&out); found.Minimal.Bundle == ""; {
		if end := lines.Decode(&found); end != nil {
			break
		}
	}
	switch {
	case found.Minimal.Bundle != "":
		return found.Minimal.Proof, os.Rename(found.Minimal.Bundle, filepath.Join(dir, "bundle"))
	case err == nil:
		return "", errors.New("it does not fail again")
	}
	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	return "", fmt.Errorf("plumb run: %w: %s", err, lines[len(lines)-1])
}

// zipBundle writes a bundle as a zip file, and returns its SHA-256.
func zipBundle(dir, path string) (digest string, err error) {
	b, err := bundle.Read(dir)
	if err != nil {
		return "", err
	}
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = errors.Join(bundle.WriteZip(io.MultiWriter(f, sum), b), f.Close())
	return hex.EncodeToString(sum.Sum(nil)), err
}
