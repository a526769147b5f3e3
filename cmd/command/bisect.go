package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/open"
	"plumb/graph"
	"plumb/internal/find/bundle"
	"plumb/nn"
	"plumb/ops"
)

// bisect is plumb bisect.
type bisect struct {
	repro    reproFlags // how bundles are found
	over     string
	versions []string
	repo     string
	good     string
	bad      string
	build    string
	subject  string // of a commit, in its folder
	check    string // a command instead of a subject
	json     bool

	log io.Writer
}

func newBisect() *cobra.Command {
	var b bisect
	cmd := &cobra.Command{
		Use:   "bisect ID | FOLDER | ZIP",
		Short: "Find the version, commit or pass that changed the verdict of a finding",
		Long: `Bisect runs the smallest program of a finding on one candidate after the other, and
says between which two of them the verdict changes: over versions of a subject
(--versions, oldest first), over the commits of a repository between --good and --bad,
each built in a folder of its own, or over the passes of native:graph. What cannot be
built or run is passed over. The first and the last have to differ.

With --over commits the candidate is --subject, a worker below the commit's folder, or
--check, a command that exits with 0 where all is well and with 1 where it is not:
$PLUMB_BUNDLE is the finding's folder, so that Plumb's own commits are
--build 'go build -o p ./cmd/plumb' --check './p repro $PLUMB_BUNDLE --as plumb --run'.`,
		Example: `  plumb bisect 3f5a --over versions --versions torch:/env/torch1/bin/python,torch:/env/torch29/bin/python,torch:/env/torch2/bin/python
  plumb bisect 3f5a --over commits --repo ~/mygrad --good v1.2 --bad main --build 'make' --subject ./build/worker
  plumb bisect ./bundle --over passes`,
		Args: takes(1, 1, "one finding: an ID, a folder or a zip file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.log = cmd.ErrOrStderr()
			return b.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	fl := cmd.Flags()
	fl.Var(oneOf(&b.over, "versions", "commits", "passes"), "over", "what the verdict is followed over")
	fl.StringSliceVar(&b.versions, "versions", nil, "with --over versions: candidates by their names (plumb help backends), oldest first")
	fl.Var(folder(&b.repo), "repo", "with --over commits: the repository of git")
	fl.StringVar(&b.good, "good", "", "with --over commits: the one to begin with")
	fl.StringVar(&b.bad, "bad", "HEAD", "with --over commits: the one to end with")
	fl.StringVar(&b.build, "build", "", "with --over commits: the command that builds, run by sh in the commit's folder")
	fl.StringVar(&b.subject, "subject", "", "with --over commits: the worker that is built, below the commit's folder")
	fl.StringVar(&b.check, "check", "", "with --over commits: a command, run by sh, instead of --subject")
	fl.Var(folder(&b.repro.findings), "findings", "the folder of findings (default: in the user's cache)")
	jsonFlag(fl, &b.json, "print one object")
	bars(cmd, "check", "subject")
	return cmd
}

// step is a candidate whose verdict is asked for.
type step struct {
	name string
	try  func(context.Context) (bool, error) // whether the finding shows
}

// unableError is that of a step which cannot be run.
type unableError struct{ error }

func (b *bisect) run(ctx context.Context, out io.Writer, arg string) error {
	found, err := b.repro.open(arg)
	if err != nil {
		return usage(err)
	}
	return b.repro.inside(found, func(dir string) error {
		steps, done, err := b.steps(ctx, found, dir)
		if err != nil {
			return usage(err)
		}
		defer done()
		c, err := b.search(ctx, steps)
		if err != nil {
			return usage(err)
		}
		if b.json {
			return json.NewEncoder(out).Encode(c)
		}
		fmt.Fprintln(out, c)
		return nil
	})
}

// steps are the candidates in their order; done removes what they were made with.
func (b *bisect) steps(ctx context.Context, found *bundle.Bundle, dir string) (steps []step, done func(), err error) {
	done = func() {}
	switch b.over {
	case "passes":
		steps, err = b.passes(found)
	case "versions":
		if len(b.versions) < 2 {
			return nil, nil, errors.New("--versions needs two candidates or more, oldest first")
		}
		for _, spec := range b.versions {
			steps = append(steps, step{spec, func(ctx context.Context) (bool, error) { return shows(ctx, found, spec) }})
		}
	case "commits":
		steps, done, err = b.commits(ctx, found, dir)
	default:
		err = errors.New("--over is needed: versions, commits or passes")
	}
	return steps, done, err
}

// passes are native's graph after none of its passes, after the first, and so on.
func (b *bisect) passes(found *bundle.Bundle) ([]step, error) {
	finding, err := found.Finding()
	if err != nil {
		return nil, err
	}
	if of := open.ParseSpec(finding.Candidate.Spec); of.Name != "native" {
		return nil, fmt.Errorf("--over passes: the candidate of the finding is %s; the passes are those of native:graph", finding.Candidate.Spec)
	}
	names := append([]string{}, graph.Reuse)
	for _, p := range graph.Passes() {
		names = append(names, p.Name)
	}
	own := native.New(ops.Table(), nn.Modules())
	var steps []step
	for n := range len(names) + 1 {
		name := "no pass"
		if n > 0 {
			name = names[n-1]
		}
		without := append(slices.Clone(names[n:]), "")
		steps = append(steps, step{name, func(ctx context.Context) (bool, error) {
			return verdictOf(ctx, found, own.Graph(graph.Options{Without: without[:len(without)-1]}))
		}})
	}
	return steps, nil
}

// shows says whether a finding shows on a candidate by its name.
func shows(ctx context.Context, found *bundle.Bundle, spec string) (bool, error) {
	finding, err := found.Finding()
	if err != nil {
		return false, err
	}
	set := open.Set{Table: ops.Table(), Timeout: finding.Timeout, Growth: cmp.Or(finding.Growth, measureCapacity().growth(1))}
	opener, err := set.Opener(ctx, spec)
	if err != nil {
		return false, unableError{err}
	}
	candidate, err := opener()
	if err != nil {
		return false, unableError{err}
	}
	defer candidate.Close()
	return verdictOf(ctx, found, candidate)
}

// verdictOf says whether a finding shows on a candidate.
func verdictOf(ctx context.Context, found *bundle.Bundle, candidate backend.Backend) (bool, error) {
	finding, err := found.Finding()
	if err != nil {
		return false, err
	}
	outcome, err := within(ctx, candidate, finding)
	if err != nil {
		return false, unableError{err}
	}
	result, err := found.Judge(outcome)
	switch {
	case err != nil:
		return false, err
	case result.Unable:
		return false, unableError{errors.New(result.Text)}
	}
	return result.Misaligned, nil
}

// commits are those from --good to --bad along one line, each in a folder of its own
// that is there while it is tried.
func (b *bisect) commits(ctx context.Context, found *bundle.Bundle, dir string) ([]step, func(), error) {
	if b.repo == "" || b.good == "" || b.subject == "" && b.check == "" {
		return nil, nil, errors.New("--over commits needs --repo, --good, and --subject or --check")
	}
	text, err := b.git(ctx, "rev-list", "--reverse", "--ancestry-path", "--first-parent", b.good+".."+b.bad)
	if err != nil {
		return nil, nil, err
	}
	first, err := b.git(ctx, "rev-parse", "--verify", b.good+"^{commit}")
	if err != nil {
		return nil, nil, err
	}
	work, err := os.MkdirTemp("", "plumb-bisect-")
	if err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	var steps []step
	for _, commit := range append(strings.Fields(first), strings.Fields(text)...) {
		title, err := b.git(ctx, "show", "--no-patch", "--format=%h %s", commit)
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, step{backend.Printable(strings.TrimSpace(title), 200), func(ctx context.Context) (bool, error) {
			return b.commit(ctx, found, commit, filepath.Join(work, commit), dir)
		}})
	}
	return steps, func() { _ = os.RemoveAll(work) }, nil
}

// commit builds a commit and asks it.
func (b *bisect) commit(ctx context.Context, found *bundle.Bundle, commit, at, dir string) (bool, error) {
	if _, err := b.git(ctx, "worktree", "add", "--detach", "--force", at, commit); err != nil {
		return false, unableError{err}
	}
	defer func() { _, _ = b.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", at) }()
	if b.build != "" {
		if out, err := shell(ctx, at, dir, b.build).CombinedOutput(); err != nil {
			return false, unableError{fmt.Errorf("--build: %w: %s", err, bytes.TrimSpace(out))}
		}
	}
	if b.subject != "" {
		return shows(ctx, found, filepath.Join(at, b.subject))
	}
	out, err := shell(ctx, at, dir, b.check).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return true, nil
	}
	return false, unableError{fmt.Errorf("--check: %w: %s", err, bytes.TrimSpace(out))}
}

func shell(ctx context.Context, at, dir, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = at, append(os.Environ(), "PLUMB_BUNDLE="+dir)
	return cmd
}

func (b *bisect) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", b.repo}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	return string(out), nil
}

// change is where a verdict changes.
type change struct {
	Before  string   `json:"before"`
	After   string   `json:"after"` // the first whose verdict is another
	Shows   bool     `json:"shows"` // from there on
	Skipped []string `json:"skipped,omitempty"`
}

// String says it in a line or two.
func (c *change) String() string {
	what := "the finding shows from %s on; %s does not have it"
	if !c.Shows {
		what = "the finding is gone from %s on; %s has it"
	}
	text := fmt.Sprintf(what, c.After, c.Before)
	if c.Skipped != nil {
		text += fmt.Sprintf("\nor from one of these on, which cannot be run: %s", strings.Join(c.Skipped, ", "))
	}
	return text
}

// search halves what lies between two steps of different verdicts.
func (b *bisect) search(ctx context.Context, steps []step) (*change, error) {
	low, high := 0, len(steps)-1
	if high < 1 {
		return nil, errors.New("there is nothing between the first and the last")
	}
	first, err := b.ask(ctx, steps[low])
	if err != nil {
		return nil, err
	}
	last, err := b.ask(ctx, steps[high])
	if err != nil {
		return nil, err
	}
	if first == last {
		return nil, fmt.Errorf("the verdict on %s is that on %s: %s", steps[low].name, steps[high].name, showing(first))
	}
	unable := map[int]bool{}
	for {
		mid := between(low, high, unable)
		if mid < 0 {
			c := &change{Before: steps[low].name, After: steps[high].name, Shows: last}
			for i := low + 1; i < high; i++ {
				c.Skipped = append(c.Skipped, steps[i].name)
			}
			return c, nil
		}
		got, err := b.ask(ctx, steps[mid])
		switch {
		case errors.As(err, new(unableError)):
			unable[mid] = true
		case err != nil:
			return nil, err
		case got == first:
			low = mid
		default:
			high = mid
		}
	}
}

// between is the step nearest to the middle that may be tried; -1 for none.
func between(low, high int, unable map[int]bool) int {
	best := -1
	for i := low + 1; i < high; i++ {
		if middle := (low + high) / 2; !unable[i] && (best < 0 || max(i-middle, middle-i) < max(best-middle, middle-best)) {
			best = i
		}
	}
	return best
}

func (b *bisect) ask(ctx context.Context, s step) (bool, error) {
	got, err := s.try(ctx)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		fmt.Fprintf(b.log, "plumb: %s cannot be run: %s\n", s.name, backend.Printable(err.Error(), 1000))
		return false, err
	}
	fmt.Fprintf(b.log, "plumb: %s: %s\n", s.name, showing(got))
	return got, nil
}

func showing(shows bool) string {
	if shows {
		return "the finding shows"
	}
	return "aligned"
}
