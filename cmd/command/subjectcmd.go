package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

func newSubject() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subject",
		Short: "Connect a framework of your own: write a worker to start from, and check one",
		Long: `A subject is a framework, a compiler, a library or a device that is judged. Plumb
runs it in a process of its own, a worker. docs/subject.md tells the whole way.`,
		Example: `  plumb subject new mine ./mine --module mylib   an adapter to start from
  plumb subject check ./mine/mine                what of it is right`,
	}
	return parent(cmd, newSubjectNew(), newSubjectCheck())
}

func newSubjectNew() *cobra.Command {
	var module, python string
	var own bool
	cmd := &cobra.Command{
		Use:   "new NAME DIR",
		Short: "Write a worker in Python for a framework",
		Long: `New writes into DIR what a worker in Python is made of: the kit, an adapter that
says what the framework is, an empty table of its differences from PyTorch, and
the program DIR/NAME that is the worker. With --own, for an interface that is not
PyTorch's, the adapter suits arrays like NumPy's, and the table has a dozen calls.`,
		Example: `  plumb subject new mygrad ./mygrad-subject
  plumb subject new mygrad ./mygrad-subject --module mygrad.torchlike --python ~/venv/bin/python
  plumb subject new mynp ./mynp-subject --module autograd.numpy --own`,
		Args: takes(2, 2, "a name and a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if module == "" {
				module = args[0]
			}
			interpreter := "/usr/bin/env python3"
			if python != "" {
				path, err := filepath.Abs(python)
				if err != nil {
					return usage(err)
				}
				interpreter = path
			}
			path, err := worker.NewSubject(args[1], args[0], module, interpreter, own)
			if err != nil {
				return usage(err)
			}
			if !filepath.IsAbs(path) {
				path = "./" + path
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is a worker for %s\nnext: plumb subject check %s\n", path, module, path)
			return nil
		},
	}
	cmd.Flags().StringVar(&module, "module", "", "the module that is imported (default: NAME)")
	cmd.Flags().BoolVar(&own, "own", false, "the framework's interface is its own, and not PyTorch's")
	cmd.Flags().StringVar(&python, "python", "", "the Python that has it (default: python3 on the PATH)")
	return cmd
}

// tour are the operators that a new subject is tried on.
var tour = strings.Fields("relu add mul matmul sum softmax cat index_select where reshape")

func newSubjectCheck() *cobra.Command {
	var html, python string
	cmd := &cobra.Command{
		Use:   "check WORKER",
		Short: "Try a worker: the protocol, then a tour of ten operators",
		Long: `Check starts a worker, asks it what the protocol asks of every one, and compares
ten operators with the reference. What it prints says what to do next.`,
		Example: `  plumb subject check ./mygrad-subject/mygrad
  plumb subject check oneflow:/path/to/python --python ~/torch/bin/python`,
		Args: takes(1, 1, "a worker, such as ./my-worker"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkProtocol(cmd.Context(), args[0], cmd.OutOrStdout()); err != nil {
				return err
			}
			return takeTour(cmd, args[0], html, python)
		},
	}
	cmd.Flags().Var(outFile(&html), "html", "write the tour as one page to this file")
	pythonFlag(cmd.Flags(), &python)
	return cmd
}

// takeTour compares the operators of the tour, and says of each what most of
// its failures have in common.
func takeTour(cmd *cobra.Command, spec, html, python string) error {
	var records bytes.Buffer
	run := newOpsRun()
	args := slices.Concat(tour, []string{"--candidate", spec, "-n", "3", "--seed", "1", "--json", "--set", "shrink.runs=0"})
	for name, value := range map[string]string{"--html": html, "--python": python} {
		if value != "" {
			args = append(args, name, value)
		}
	}
	run.SetArgs(args)
	run.SetOut(&records)
	run.SetErr(cmd.ErrOrStderr())
	run.SilenceErrors, run.SilenceUsage = true, true
	err := run.ExecuteContext(cmd.Context())
	var failed *exitError
	if err != nil && (!errors.As(err, &failed) || failed.code != exitFindings && failed.code != exitNothing) {
		return err
	}
	out := cmd.OutOrStdout()
	failing := tellTour(out, tourRows(records.Bytes()))
	if failing != "" {
		fmt.Fprintf(out, "what the framework does not have is for the adapter to say: texts of exceptions in gaps, names and arguments in the table; a line of the adapter is where to mend it\nnext: plumb ops run %s --candidate %s\n", failing, spec)
		return &exitError{exitFindings, nil}
	}
	fmt.Fprintf(out, "next: plumb run suites/activation.py --candidate %s\n", spec)
	return err // of a tour in which nothing was judged
}

// tellTour prints what became of each operator, and returns the first that fails.
func tellTour(out io.Writer, rows map[string]*tourRow) (failing string) {
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		fmt.Fprintf(out, "%-14s %s\n", name, r.summary.Counts())
		most := slices.SortedFunc(maps.Keys(r.reasons), func(a, b tourReason) int {
			return cmp.Or(a.gap()-b.gap(), r.reasons[b]-r.reasons[a], strings.Compare(a.text, b.text))
		})
		for _, reason := range most[:min(2, len(most))] {
			fmt.Fprintf(out, "  %d × %s: %s\n", r.reasons[reason], reason.word, reason.text)
		}
		if failing == "" && r.summary.Findings() > 0 {
			failing = name
		}
	}
	return failing
}

// tourRow is what became of an operator's cases.
type tourRow struct {
	summary *report.Summary
	reasons map[tourReason]int
}

// tourReason is why a case is not aligned.
type tourReason struct {
	word verdict.Word
	text string
}

// gap orders what a subject lacks behind what it does wrong.
func (r tourReason) gap() int {
	if r.word == verdict.Unsupported {
		return 1
	}
	return 0
}

func tourRows(records []byte) map[string]*tourRow {
	rows := map[string]*tourRow{}
	for line := range bytes.Lines(records) {
		var c struct {
			Test, Reason string
			Verdict      verdict.Word
		}
		if json.Unmarshal(line, &c) != nil || c.Verdict == "" {
			continue
		}
		name, _, _ := report.OperatorOf(c.Test)
		r := rows[name]
		if r == nil {
			r = &tourRow{report.NewSummary(), map[tourReason]int{}}
			rows[name] = r
		}
		r.summary.Words[c.Verdict]++
		if c.Verdict != verdict.Aligned && c.Verdict != verdict.Rejected {
			r.reasons[tourReason{c.Verdict, headLine(c.Reason, "")}]++
		}
	}
	return rows
}

// probes are programs that any worker answers in a known way.
var probes = []struct {
	what    string
	dtype   tensor.DType
	strides []int
	call    program.Call
	want    backend.Status
}{
	{"a name that no subject has is unsupported", tensor.F32, nil, program.Call{Target: "torch.no_such_function", Args: []any{program.Ref("x")}}, backend.Unsupported},
	{"a float32 tensor comes back as it is", tensor.F32, nil, program.Call{Target: "Tensor.clone", Args: []any{program.Ref("x")}}, backend.OK},
	{"so does one with gaps in its memory", tensor.F32, []int{1, 4}, program.Call{Target: "Tensor.clone", Args: []any{program.Ref("x")}}, backend.OK},
	{"so do integers", tensor.I64, nil, program.Call{Target: "Tensor.clone", Args: []any{program.Ref("x")}}, backend.OK},
	{"shapes that do not fit are refused", tensor.F32, nil, program.Call{Target: "torch.matmul", Args: []any{program.Ref("x"), program.Ref("x")}}, backend.Raised},
}

// checkProtocol asks a worker the probes.
func checkProtocol(ctx context.Context, spec string, out io.Writer) error {
	s := newSubjects()
	s.candidates = []string{spec}
	open, err := s.set.Opener(ctx, spec)
	if err != nil {
		return harness(err)
	}
	b, err := open()
	if err != nil {
		return harness(err)
	}
	defer b.Close()
	info := b.Info()
	fmt.Fprintf(out, "it greets: %s %s, devices %s, modes %s\n", info.Name, info.Version, strings.Join(info.Devices, " "), strings.Join(info.Modes, " "))
	bad := 0
	for _, p := range probes {
		x := program.Input{Name: "x", DType: p.dtype, Shape: []int{2, 3}, Strides: p.strides, Fill: program.Fill{Dist: program.Integer, Lo: -9, Hi: 9, Key: 1}}
		p.call.Result = "y"
		job := backend.NewJob(&program.Program{Name: "check", Seed: 1, Inputs: []program.Input{x}, Calls: []program.Call{p.call}})
		got, err := b.Run(ctx, job)
		if err != nil {
			return harness(err)
		}
		said := ""
		switch {
		case got.Status == backend.Unsupported && p.want != backend.Unsupported:
			said = "unsupported: " + got.Message
		case got.Status != p.want:
			said = fmt.Sprintf("NO: %s %s %s", got.Status, got.Class, got.Message)
		case p.want == backend.OK:
			said = altered(got.Values[0], job.Inputs[0], p.call.Target)
		}
		if strings.HasPrefix(said, "NO") {
			bad++
		}
		fmt.Fprintf(out, "  %s: %s\n", p.what, headLine(said, "yes"))
	}
	if bad > 0 {
		return &exitError{exitFindings, fmt.Errorf("%d of %d answers break the protocol: docs/worker-protocol.md", bad, len(probes))}
	}
	return nil
}

// altered says in which way what a call returned is not the tensor it was given.
func altered(value backend.Value, want *tensor.Tensor, target string) string {
	got := value.Tensor
	switch {
	case got == nil:
		return fmt.Sprintf("NO: %s returned no tensor of a dtype that there is (bool, int64, float32 …), but %v", target, value.Plain)
	case got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()):
		return fmt.Sprintf("NO: %s returned a %s%v, not a %s%v", target, got.DType(), got.Shape(), want.DType(), want.Shape())
	case !got.SameBits(want):
		return "NO: " + target + " returned other elements"
	}
	return ""
}

func headLine(s, empty string) string {
	if s == "" {
		return empty
	}
	head, _, _ := strings.Cut(s, "\n")
	return head
}
