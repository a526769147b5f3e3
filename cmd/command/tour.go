package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/ops"
)

// guided is plumb tour: a fault that is found, looked at, explained and shown again.
type guided struct {
	out     io.Writer
	err     io.Writer
	in      *bufio.Reader // nil where nobody is to press Enter
	planted backend.Backend
	found   *finding.Finding
	sink    report.Sink // nil for the console
}

func newTour() *cobra.Command {
	var straight bool
	cmd := &cobra.Command{
		Use:   "tour",
		Short: "Two minutes with a planted fault: find it, look at it, explain it, show it again",
		Long: `Tour plants a fault in a copy of relu, finds it with the shipped tests, shows where
in the tensor it is wrong, says why the limit is what it is, and runs the smallest
program on both. It needs neither PyTorch nor a network, and keeps nothing.`,
		Example: `  plumb tour          with pauses, on a terminal
  plumb tour --yes    without`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := &guided{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
			if !straight && isTerminal(t.out) {
				t.in = bufio.NewReader(cmd.InOrStdin())
			}
			return t.walk(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&straight, "yes", false, "do not wait for Enter between the steps")
	return cmd
}

// walk takes the steps.
func (t *guided) walk(ctx context.Context) (err error) {
	table, modules, err := mutants.Leaky()
	if err != nil {
		return fault(err)
	}
	t.planted = native.New(table, modules)
	for _, step := range []struct {
		title, text string
		do          func(context.Context) error
	}{
		{"1. A fault", `Somebody optimised relu: its kernel works on pairs of elements, and where the last
dimension is odd, the last element of each row is copied as it is. Negative numbers
get through there. We plant that into a copy of Plumb's own relu, and let the true
one be the reference. (Usually the reference is PyTorch: plumb run --reference torch.)`, nil},
		{"2. Finding it", "$ plumb run -k activation.py::test_relu -n 12 --seed 1", t.find},
		{"3. Why that limit", "Is it a fault, or is the limit too tight?\n$ plumb explain ID", t.explain},
		{"4. Showing it again", `The smallest program is all that a bug report needs: saved, it runs as it stands.
A run that finds something keeps it in a bundle, with a proof from fresh processes:
$ plumb repro ID --run`, t.replay},
		{"5. Where to go", `  plumb run --html run.html     the same as a page: pictures, coverage, every case
  plumb run my_test.py          your own tests (docs/test-files.md)
  plumb ops run 'conv*'         operators, without a test file
  plumb doctor                  what is installed here, and what is missing`, nil},
	} {
		fmt.Fprintf(t.out, "\n%s\n%s\n%s\n", step.title, strings.Repeat("─", len([]rune(step.title))), step.text)
		if step.do != nil {
			if err := step.do(ctx); err != nil {
				return err
			}
		}
		if t.in != nil && step.title[0] != '5' {
			fmt.Fprint(t.out, "\n[Enter] ")
			if _, err := t.in.ReadString('\n'); err != nil {
				return nil
			}
		}
	}
	return ctx.Err()
}

// find runs the shipped tests of the operator.
func (t *guided) find(ctx context.Context) error {
	_, err := t.session(ctx, "plumb run", nil, "-k", "activation.py::test_relu", "-n", "12", "--seed", "1", "--check-graph=false", "--set", "findings=none")
	if err == nil && t.found == nil {
		return &exitError{exitFault, errors.New("the planted fault was not found")}
	}
	return err
}

// explain judges the smallest program again, and says why its limit is what it is.
func (t *guided) explain(ctx context.Context) error {
	x := &explanation{out: t.out}
	return t.again(ctx, x, t.planted)
}

// replay runs the smallest program on the operator with the fault and on that without.
func (t *guided) replay(ctx context.Context) error {
	fmt.Fprintf(t.out, "\n%s\n", fourIn(t.found.Result.Record.Program.String()))
	for _, on := range []struct {
		name    string
		backend backend.Backend
	}{{"with the fault   ", t.planted}, {"without the fault", native.New(ops.Table(), nn.Modules())}} {
		v := &lastVerdict{}
		if err := t.again(ctx, v, on.backend); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "%s  %s %s\n", on.name, v.Word, v.Reason)
	}
	return nil
}

// lastVerdict is a sink that keeps one.
type lastVerdict struct {
	explanation
	*verdict.Verdict
}

// Record keeps the verdict.
func (l *lastVerdict) Record(r *verdict.Record) { l.Verdict = r.Verdict }

// Summary says nothing.
func (l *lastVerdict) Summary(*report.Summary) {}

func fourIn(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// again judges the smallest program on a candidate.
func (t *guided) again(ctx context.Context, sink report.Sink, candidate backend.Backend) error {
	dir, err := os.MkdirTemp("", "plumb-tour-")
	if err != nil {
		return fault(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, t.found.ID+".py")
	if err := os.WriteFile(path, []byte(t.found.Result.Record.Program.String()), 0o600); err != nil {
		return fault(err)
	}
	planted := t.planted
	t.planted, t.sink = candidate, sink
	_, err = t.session(ctx, "plumb run", []string{path}, "--set", "shrink.runs=0", "--check-graph=false")
	t.planted, t.sink = planted, nil
	return err
}

// session is plumb run on the planted candidate.
func (t *guided) session(ctx context.Context, name string, args []string, flags ...string) (*runCommand, error) {
	r := &runCommand{session: newSession(drawingKeys...)}
	cmd := r.command()
	if err := cmd.ParseFlags(append(flags, "--reference", "native", "--known", "none", "--set", "margins=none", "--set", "power=0")); err != nil {
		return nil, err
	}
	cmd.SetOut(t.out)
	cmd.SetErr(t.err)
	r.attach(cmd)
	r.live = nil
	r.sink, r.judging.explain = t.sink, true
	tests, err := r.prepare(ctx, args)
	if err != nil {
		return nil, err
	}
	defer r.cases.sigs.Close()
	r.cfg.Candidates = []campaign.Candidate{{Name: "relu with a fault", Open: func() (backend.Backend, error) { return t.planted, nil }}}
	r.subjects.candidates = []string{"relu with a fault"}
	r.reports.kept.path = noStore
	err = r.session.run(ctx, name, tests)
	if t.found == nil && len(r.found) > 0 {
		t.found = r.found[0]
	}
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitFindings {
		err = nil
	}
	return r, err
}
