package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/script"
	"plumb/internal/kernel"
)

// profileCommand is plumb profile: the functions of test files that @profile
// marks.
type profileCommand struct {
	subjects
	rounds  int
	threads []int
	filter  string
	asJSON  bool
	before  string

	report profileReport
}

func newProfile() *cobra.Command {
	p := &profileCommand{subjects: newSubjects(), rounds: 9, threads: []int{1, 0}}
	cmd := &cobra.Command{
		Use:   "profile FILE…",
		Short: "Measure the functions of test files that @profile marks",
		Long: `Profile runs the functions that @profile(op) marks, and measures each call of op
in them on the reference and on the candidates: forward, and forward and
backward, on one thread and on one per core. What the function does before the
call is not counted, nor are the first two rounds. The subjects take turns; in a round
each makes the call as often as lasts ten milliseconds.

The median of the rounds is shown, an interval that holds it with 95%, how many
times as long as the reference's it is, and of elementwise operators the bytes
of arguments and results per second. An argument profile_description="…" of the
call names its row.

With --compare a JSON of an earlier run says what became slower, by times
relative to the reference in the same run, and beyond the intervals of both; the
exit code is then 1.`,
		Example: `  plumb profile test_conv2d.py
  plumb profile test_*.py --filter conv --threads 1
  plumb profile test_*.py --json > before.json
  plumb profile test_*.py --compare before.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			out := cmd.OutOrStdout()
			if p.asJSON {
				out = io.Discard
			}
			if err := p.run(cmd.Context(), files, out, cmd.ErrOrStderr()); err != nil {
				return err
			}
			return p.conclude(cmd.OutOrStdout())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&p.reference, "reference", "", "the backend to compare with (default torch); see plumb help backends")
	fl.StringSliceVar(&p.candidates, "candidate", p.candidates, "the backends that are measured; may be repeated")
	pythonFlag(fl, &p.python)
	fl.Var(wholeNumber(&p.rounds, 1), "count", "rounds; an interval of 95% takes six")
	fl.Var(wholeNumbers(&p.threads, 0), "threads", "numbers of threads; 0 is one per core")
	fl.StringVar(&p.filter, "filter", "", "only functions whose name contains this")
	fl.Var(inFile(&p.before), "compare", "the JSON of an earlier run: say what became slower")
	jsonFlag(fl, &p.asJSON, "print one object")
	return cmd
}

func (p *profileCommand) run(ctx context.Context, files []string, out, log io.Writer) (err error) {
	tests, err := p.marked(files, log)
	if err != nil {
		return usage(err)
	}
	p.report = profileReport{Rounds: p.rounds, Rows: []profileRow{}, Subjects: map[string]string{}}
	defer kernel.SetThreads(0)
	parts, sigs, err := p.openParts(ctx, log)
	defer func() {
		for _, part := range parts {
			err = errors.Join(err, part.close())
		}
	}()
	if err != nil {
		return err
	}
	defer sigs.Close()
	p.report.printHead(out)
	for _, t := range tests {
		first := len(p.report.Rows)
		if err := p.function(ctx, t, sigs, parts); err != nil {
			return err
		}
		if err := p.report.print(out, first); err != nil {
			return err
		}
	}
	return nil
}

// profileMemory is the address space of a worker: what asks for more is out of
// memory, and the machine stays usable.
const profileMemory = 8 << 30

// profilePart are the subjects with a number of threads.
type profilePart struct {
	threads int
	sides   []profileSide
}

func (p *profilePart) close() (err error) {
	for _, s := range p.sides {
		err = errors.Join(err, s.Close())
	}
	return err
}

// openParts opens the subjects for each number of threads; those that are open
// come with the error, too.
func (p *profileCommand) openParts(ctx context.Context, log io.Writer) (parts []*profilePart, sigs *signatures, err error) {
	var done []int
	for _, n := range p.threads {
		if n == 0 {
			n = runtime.GOMAXPROCS(0)
		}
		if slices.Contains(done, n) {
			continue
		}
		done = append(done, n)
		p.set.Threads, p.set.Memory = n, profileMemory
		cfg, err := p.open(ctx, &settings{}, false, log)
		if err != nil {
			return parts, nil, err
		}
		part := &profilePart{threads: n}
		parts = append(parts, part)
		if part.sides, err = openSides(append([]campaign.Candidate{{Name: p.reference, Open: cfg.Reference}}, cfg.Candidates...)); err != nil {
			return parts, nil, harness(err)
		}
		if sigs == nil {
			sigs = p.signatures(cfg)
		}
	}
	p.report.Reference = p.reference
	for _, s := range parts[0].sides {
		info := s.Info()
		p.report.Subjects[s.name] = info.Name + " " + info.Version
	}
	return parts, sigs, nil
}

// marked loads the files and returns their functions with @profile.
func (p *profileCommand) marked(files []string, log io.Writer) ([]*script.Test, error) {
	for _, spec := range p.specs() {
		if open.IsRecorded(spec) {
			return nil, fmt.Errorf("%s cannot be measured: it holds results", spec)
		}
	}
	files, _, err := withinFolders(files)
	if err != nil {
		return nil, err
	}
	var tests []*script.Test
	for _, name := range files {
		found, err := p.markedIn(name)
		switch {
		case err != nil && len(files) > 1:
			fmt.Fprintln(log, "plumb:", err)
		case err != nil:
			return nil, err
		}
		tests = append(tests, found...)
	}
	if len(tests) == 0 {
		return nil, errors.New("no function is marked; write one as\n\n  @profile(torch.relu)\n  def profile_relu(test_case):\n      torch.relu(torch.ones(128, 128))")
	}
	return tests, nil
}

func (p *profileCommand) markedIn(name string) ([]*script.Test, error) {
	src, err := readSource(name)
	if err != nil {
		return nil, err
	}
	f, err := script.LoadBeside(name, src, readSource)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(f.Profiles(), func(t *script.Test) bool { return !strings.Contains(t.Name, p.filter) }), nil
}

// profileSide is an opened subject.
type profileSide struct {
	name string
	backend.Backend
}

// openSides opens all; those that are open come with the error, too.
func openSides(all []campaign.Candidate) (sides []profileSide, err error) {
	for _, c := range all {
		b, err := c.Open()
		if err != nil {
			return sides, err
		}
		sides = append(sides, profileSide{c.Name, b})
	}
	return sides, nil
}

// function measures the calls of one function. What is wrong with it costs no
// other function its rows.
func (p *profileCommand) function(ctx context.Context, t *script.Test, sigs *signatures, parts []*profilePart) error {
	env := script.Env{Signatures: sigs, Reference: sigs.Reference(), Version: sigs.Version, Observer: sideObserver{ctx, parts[0].sides[0]}}
	prog, calls, err := t.DrawProfile(choice.New(1), env)
	var own *script.Error
	var cut *campaign.CutShort
	switch {
	case errors.As(err, &own), errors.As(err, &cut):
		p.report.skip(t.Name, err)
		return nil
	case err != nil:
		return harness(err)
	}
	for _, called := range calls {
		for _, part := range parts {
			kernel.SetThreads(part.threads)
			c := newProfiledCall(prog, called.Call)
			for _, backward := range []bool{false, true} {
				rows, err := c.measure(ctx, part.sides, backward, p.rounds)
				switch {
				case ctx.Err() != nil:
					return errInterrupted
				case err != nil:
					return harness(err)
				}
				for _, r := range rows {
					r.Function, r.Label, r.Threads = t.Name, called.Description, part.threads
					p.report.Rows = append(p.report.Rows, r)
				}
			}
		}
	}
	return nil
}
