package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/onekernel"
	"plumb/internal/stopwatch"
)

// kernelFlags are those of plumb kernel.
type kernelFlags struct {
	onekernel.Options
	given       *uint64
	json, quiet bool
	verbose     bool
	bundle      string
	kept        keeping
	filed       filed
}

// longestLine bounds the line of a call, in bytes.
const longestLine = 600

func newKernel() *cobra.Command {
	f := &kernelFlags{Options: onekernel.Defaults()}
	f.YAML = decodeYAML
	cmd := &cobra.Command{
		Use:   "kernel [FILE[::FUNCTION]] --against REFERENCE",
		Short: "Judge one function, in Python, Triton or C, by the function that it should equal",
		Long: `Kernel draws calls for a function of yours, runs it in a process of its own, and
compares results and gradients with a reference: a function of PyTorch's, from whose
operator the calls follow, or any function of yours, with --inputs. It ends in a
verdict, by this precedence: cheats, unsafe, wrong, limited, right.

FILE.py::FUNCTION is a function of a Python file; FILE.py alone, with a file as the
reference, is a solution in KernelBench's form (ModelNew, by Model, get_inputs and
get_init_inputs) or, with a folder, a submission in GPU MODE's (task.yml, ref_kernel,
custom_kernel); FILE.so:FUNCTION is a function in C, by its --signature.

Exit codes: 0 right, 1 a finding, 2 a mistake in the command, 3 a fault, 5 nothing judged.`,
		Example: `  plumb kernel softmax.py::my_softmax --against torch.softmax
  plumb kernel fused.py::swiglu --against ref.py::swiglu --inputs 'x: f32[B,S,H], w: f32[H,2*F]'
  plumb kernel solution.py --against problem.py
  plumb kernel submission.py --against taskdir/
  plumb kernel --op mylib::rms_norm --import mylib --against torch.nn.functional.rms_norm
  plumb kernel ./libk.so:relu_f32 --against torch.relu --signature 'relu_f32(const float *input, float *out, int64_t n = input.numel())'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	cmd.AddCommand(newKernelServe())
	return cmd
}

func (f *kernelFlags) register(cmd *cobra.Command) {
	group(cmd, "What is judged by what", func(fl *pflag.FlagSet) {
		fl.StringVar(&f.Against, "against", "", "the reference: a function of PyTorch's, FILE.py::FUNCTION, or a problem's file")
		fl.StringVar(&f.Op, "op", "", "judge this registered operator, such as mylib::rms_norm")
		fl.StringVar(&f.Signature, "signature", "", "the declaration of a function in C; what is no tensor is told behind =")
		fl.StringSliceVar(&f.Imports, "import", nil, "a Python module to import first; may be repeated")
		pythonFlag(fl, &f.Python)
	})
	group(cmd, "What is drawn", func(fl *pflag.FlagSet) {
		fl.StringVar(&f.Inputs, "inputs", "", "the arguments, such as 'x: f32[B,S,H], i: i64[B] < V, dim = -1'; equal names are equal sizes")
		fl.StringArrayVar(&f.Fix, "fix", nil, "a parameter of the reference that the function lacks, as NAME=VALUE; may be repeated")
		fl.VarP(wholeNumber(&f.Cases, 1), "number", "n", "calls at most")
		fl.DurationVar(&f.Budget, "for", f.Budget, "begin no call after this time")
		fl.Var(anySeed(&f.given), "seed", "the seed of all calls (default: a new one, which is printed)")
	})
	group(cmd, "What the function promises", func(fl *pflag.FlagSet) {
		fl.StringSliceVar(&f.DTypes, "dtypes", nil, "it takes these dtypes only (default float32, float16, float64, bfloat16)")
		fl.StringVar(&f.Shapes, "shapes", "", "it takes these shapes only: given, as in its examples; near, of their kind; any (default any, against a problem or a task near)")
		fl.StringSliceVar(&f.Layouts, "layouts", nil, "it takes these layouts only: contiguous, transposed, sliced, expanded")
		fl.StringArrayVar(&f.Sizes, "sizes", nil, "a size lies within bounds, as B=1..64; may be repeated")
		fl.BoolVar(&f.NoEmpty, "no-empty", false, "it takes no tensor without elements")
		fl.BoolVar(&f.NoNonFinite, "no-nonfinite", false, "it takes no NaN and no infinity")
		fl.BoolVar(&f.Grad, "grad", false, "it has gradients (default: where it is made of PyTorch's operators, or its results have some)")
		fl.BoolVar(&f.GradGrad, "gradgrad", false, "it has gradients, and these have gradients, as the reference's do")
		fl.BoolVar(&f.NoGrad, "no-grad", false, "it has none")
	})
	group(cmd, howJudged, func(fl *pflag.FlagSet) {
		fl.StringVar(&f.Precision, "precision", "", "its arithmetic: tf32 (products of 11 bits) or fast (approximate functions); the limits are as many times wider (default full)")
		fl.StringVar(&f.Accumulate, "accumulate", "", "what it sums half dtypes in: float32 (the default) or half")
		fl.BoolVar(&f.Deterministic, "deterministic", false, "a result of other bits for equal arguments is a finding")
		fl.BoolVar(&f.NoFallback, "no-fallback", false, "a function that calls what it is to replace is a finding")
		fl.BoolVar(&f.AllowLimited, "allow-limited", false, "a function that refuses calls, and is right where it answers, passes")
		fl.BoolVar(&f.NoSandbox, "no-sandbox", false, "let the function's process write, connect and start others as you may")
		fl.DurationVar(&f.Timeout, "timeout", f.Timeout, "of one call")
		fl.BoolVar(&f.Time, "time", false, "measure what is found right beside the reference, in turns, over the sizes of the examples or of --sizes")
	})
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		fl.BoolVar(&f.json, "json", false, "print the report as one JSON object, the last line")
		fl.BoolVarP(&f.quiet, "quiet", "q", false, "print the verdict only")
		fl.BoolVarP(&f.verbose, "verbose", "v", false, "a line per call")
		fl.Var(folder(&f.bundle), "bundle", "the folder of what reproduces a finding (default: one in the user's cache; none writes none)")
		f.filed.flags(fl, "the verdict, the smallest call with pictures, evidence, what was tried, times")
		f.kept.flag(fl)
	})
	bars(cmd, "grad", "no-grad")
	bars(cmd, "gradgrad", "grad", "no-grad")
	bars(cmd, "quiet", "time", "verbose")
}

func (f *kernelFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		f.Kernel = args[0]
	}
	f.seed()
	cfg, err := f.Config()
	if fault := (*backend.Fault)(nil); errors.As(err, &fault) {
		return harness(err)
	} else if err != nil {
		return usage(err)
	}
	if err := f.kept.open(cmd.ErrOrStderr()); err != nil {
		return err
	}
	to := f.filed.begin("plumb kernel", time.Now(), nil)
	f.kept.begin(&store.Run{Command: "plumb kernel", Seed: f.Seed, Subjects: []store.Subject{{Name: f.Against}, {Name: f.subject()}}})
	rep, err := f.judge(cmd, cfg)
	f.store(rep, err)
	if rep == nil {
		return err
	}
	if len(to) > 0 {
		f.tell(to, rep)
	}
	return f.filed.end(err, cmd.ErrOrStderr())
}

// judge judges the kernel and reports.
func (f *kernelFlags) judge(cmd *cobra.Command, cfg *onekernel.Config) (*onekernel.Report, error) {
	began := stopwatch.CPUTime()
	cfg.Own = func() time.Duration { return stopwatch.CPUTime() - began }
	if f.verbose {
		cfg.Told = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), backend.Printable(line, longestLine)) }
	}
	rep, err := onekernel.Judge(cmd.Context(), *cfg)
	if mistake := (*onekernel.Mistake)(nil); errors.As(err, &mistake) {
		return nil, usage(err)
	} else if err != nil {
		return nil, harness(err)
	}
	if err := f.keep(cmd.Context(), rep, cfg); err != nil {
		return rep, harness(err)
	}
	if err := f.print(cmd.OutOrStdout(), rep); err != nil {
		return rep, err
	}
	switch {
	case f.Passes(rep):
		return rep, nil
	case rep.Verdict == onekernel.Nothing:
		return rep, &exitError{exitNothing, nil}
	}
	return rep, &exitError{exitFindings, nil}
}

// subject names what is judged.
func (f *kernelFlags) subject() string { return cmp.Or(f.Kernel, f.Op) }

// store keeps the verdict; err is how the command ends.
func (f *kernelFlags) store(rep *onekernel.Report, err error) {
	defer func() { f.kept.end(rep != nil, err) }()
	if rep == nil {
		return
	}
	c := store.Case{
		Test: "kernel::" + rep.Kernel, Subject: f.subject(), Operators: []string{operatorOf(rep.Against)}, DTypes: strings.Join(rep.Tried.DTypes, " "),
		Outcome: report.Failed, Word: string(rep.Verdict), Compared: rep.Tried.Cases, Worst: math.NaN(), Elapsed: time.Duration(rep.Seconds * float64(time.Second)),
	}
	switch {
	case rep.Verdict == onekernel.Nothing:
		c.Outcome = report.Unsupported
	case f.Passes(rep):
		c.Outcome = report.Passed
	}
	bundle := ""
	if rep.Smallest != nil {
		c.Text, c.Reason = rep.Smallest.Program, rep.Smallest.Reason
	}
	if rep.Bundle != nil {
		bundle = rep.Bundle.Dir
	}
	f.kept.subjects([]store.Subject{{Name: f.Against, Version: rep.Reference}, {Name: f.subject()}})
	f.kept.add(c)
	if c.Outcome != report.Failed {
		return
	}
	for _, r := range rep.Reasons {
		f.kept.sight(&store.Sighting{Subject: f.subject(), Operator: c.Operators[0], What: string(rep.Verdict) + ": " + r.Kind, Test: c.Test, Cases: max(r.Cases, 1), Reason: r.Text, Program: c.Text, Bundle: bundle})
	}
}

// seed takes the seed that was given, or a new one.
func (f *kernelFlags) seed() {
	if f.Seed = rand.Uint64() >> 32; f.given != nil {
		f.Seed = *f.given
	}
}

// keep writes the bundle of the smallest call: into the folder that is given, or one
// of its own beside the findings of runs.
func (f *kernelFlags) keep(ctx context.Context, rep *onekernel.Report, cfg *onekernel.Config) error {
	if rep.Smallest == nil || f.bundle == "none" {
		return nil
	}
	dir := f.bundle
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w: say where with --bundle", err)
		}
		dir = filepath.Join(cache, "plumb", "kernels", rep.ID())
	}
	return rep.WriteBundle(ctx, dir, cfg)
}

func (f *kernelFlags) print(out io.Writer, rep *onekernel.Report) error {
	switch {
	case f.json:
		return json.NewEncoder(out).Encode(rep)
	case f.quiet:
		_, err := fmt.Fprintln(out, rep.Verdict)
		return err
	}
	screen := report.NewScreen(out, widthOf(out))
	_, err := io.WriteString(screen, rep.Text())
	return cmp.Or(err, screen.Flush())
}

// decodeYAML reads a task.yml.
func decodeYAML(text []byte, into any) error { return yaml.Unmarshal(text, into) }
