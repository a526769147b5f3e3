package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend/worker"
	"plumb/internal/onekernel"
	"plumb/tensor"
)

// kernelFlags are those of plumb kernel.
type kernelFlags struct {
	against, inputs, signature, operator string
	fix, sizes                           []string
	imports                              []string
	python                               string
	dtypes                               []string
	layouts                              []string
	noEmpty, noNonFinite                 bool
	grad, noGrad                         bool
	noFallback, allowLimited             bool
	given                                *uint64
	cases                                int
	budget, timeout                      time.Duration
	json, quiet                          bool
	bundle                               string
}

func newKernel() *cobra.Command {
	f := &kernelFlags{cases: 60, budget: 15 * time.Second, timeout: 30 * time.Second}
	cmd := &cobra.Command{
		Use:   "kernel [FILE[::FUNCTION]] --against REFERENCE",
		Short: "Judge one function, in Python, Triton or C, by the function that it should equal",
		Long: `Kernel draws calls for a function of yours, runs it in a process of its own, and
compares results and gradients with a reference: a function of PyTorch's, from whose
operator the calls follow, or any function of yours, with --inputs. It ends in a
verdict, by this precedence: cheats, unsafe, wrong, limited, right.

FILE.py::FUNCTION is a function of a Python file; FILE.py alone, with a file as the
reference, is a solution in KernelBench's form (ModelNew, by Model, get_inputs and
get_init_inputs); FILE.so:FUNCTION is a function in C, by its --signature.

Exit codes: 0 right, 1 a finding, 2 a mistake in the command, 3 a fault, 5 nothing judged.`,
		Example: `  plumb kernel softmax.py::my_softmax --against torch.softmax
  plumb kernel fused.py::swiglu --against ref.py::swiglu --inputs 'x: f32[B,S,H], w: f32[H,2*F]'
  plumb kernel solution.py --against problem.py
  plumb kernel --op mylib::rms_norm --import mylib --against torch.nn.functional.rms_norm
  plumb kernel ./libk.so:relu_f32 --against torch.relu --signature 'relu_f32(const float *input, float *out, int64_t n = input.numel())'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	return cmd
}

func (f *kernelFlags) register(cmd *cobra.Command) {
	group(cmd, "What is judged by what", func(fl *pflag.FlagSet) {
		fl.StringVar(&f.against, "against", "", "the reference: a function of PyTorch's, FILE.py::FUNCTION, or a problem's file")
		fl.StringVar(&f.operator, "op", "", "judge this registered operator, such as mylib::rms_norm")
		fl.StringVar(&f.signature, "signature", "", "the declaration of a function in C; what is no tensor is told behind =")
		fl.StringSliceVar(&f.imports, "import", nil, "a Python module to import first; may be repeated")
		pythonFlag(fl, &f.python)
	})
	group(cmd, "What is drawn", func(fl *pflag.FlagSet) {
		fl.StringVar(&f.inputs, "inputs", "", "the arguments, such as 'x: f32[B,S,H], i: i64[B] < V, dim = -1'; equal names are equal sizes")
		fl.StringArrayVar(&f.fix, "fix", nil, "a parameter of the reference that the function lacks, as NAME=VALUE; may be repeated")
		fl.IntVarP(&f.cases, "number", "n", f.cases, "calls at most")
		fl.DurationVar(&f.budget, "for", f.budget, "begin no call after this time")
		fl.Var(anySeed(&f.given), "seed", "the seed of all calls (default: a new one, which is printed)")
	})
	group(cmd, "What the function promises", func(fl *pflag.FlagSet) {
		fl.StringSliceVar(&f.dtypes, "dtypes", nil, "it takes these dtypes only (default float32, float16, float64, bfloat16)")
		fl.StringSliceVar(&f.layouts, "layouts", nil, "it takes these layouts only: contiguous, transposed, sliced, expanded")
		fl.StringArrayVar(&f.sizes, "sizes", nil, "a size lies within bounds, as B=1..64; may be repeated")
		fl.BoolVar(&f.noEmpty, "no-empty", false, "it takes no tensor without elements")
		fl.BoolVar(&f.noNonFinite, "no-nonfinite", false, "it takes no NaN and no infinity")
		fl.BoolVar(&f.grad, "grad", false, "it has gradients (default: where it is made of PyTorch's operators, or its results have some)")
		fl.BoolVar(&f.noGrad, "no-grad", false, "it has none")
	})
	group(cmd, howJudged, func(fl *pflag.FlagSet) {
		fl.BoolVar(&f.noFallback, "no-fallback", false, "a function that calls what it is to replace is a finding")
		fl.BoolVar(&f.allowLimited, "allow-limited", false, "a function that refuses calls, and is right where it answers, passes")
		fl.DurationVar(&f.timeout, "timeout", f.timeout, "of one call")
	})
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		fl.BoolVar(&f.json, "json", false, "print the report as one JSON object, the last line")
		fl.BoolVarP(&f.quiet, "quiet", "q", false, "print the verdict only")
		fl.Var(folder(&f.bundle), "bundle", "the folder of what reproduces a finding (default: one in the user's cache; none writes none)")
	})
	bars(cmd, "grad", "no-grad")
}

func (f *kernelFlags) run(cmd *cobra.Command, args []string) error {
	cfg, err := f.config(args)
	if err != nil {
		return usage(err)
	}
	rep, err := onekernel.Judge(cmd.Context(), *cfg)
	if err != nil {
		return harness(err)
	}
	if err := f.keep(cmd.Context(), rep, cfg); err != nil {
		return harness(err)
	}
	if err := f.print(cmd.OutOrStdout(), rep); err != nil {
		return err
	}
	switch {
	case rep.Verdict == onekernel.Right, rep.Verdict == onekernel.Limited && f.allowLimited:
		return nil
	case rep.Verdict == onekernel.Nothing:
		return &exitError{exitNothing, nil}
	}
	return &exitError{exitFindings, nil}
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

// config reads the command line.
func (f *kernelFlags) config(args []string) (*onekernel.Config, error) {
	if f.against == "" {
		return nil, errors.New("--against is missing: name the function that the kernel should equal, such as torch.softmax or ref.py::swiglu")
	}
	cfg := &onekernel.Config{Against: f.against, Cases: f.cases, Budget: f.budget, Timeout: f.timeout, NoFallback: f.noFallback, Seed: rand.Uint64() >> 32}
	if f.given != nil {
		cfg.Seed = *f.given
	}
	var err error
	if cfg.Kernel, err = f.kernel(args); err != nil {
		return nil, err
	}
	if cfg.Reference, err = f.reference(cfg.Kernel.Form); err != nil {
		return nil, err
	}
	if cfg.Python, _, err = worker.FindPython(f.python); err != nil {
		return nil, err
	}
	if f.inputs == "" && cfg.Reference != nil && f.signature != "" {
		f.inputs = onekernel.InputsOfC(f.signature)
	}
	if f.inputs != "" {
		var dtypes []tensor.DType
		if cfg.Inputs, dtypes, err = onekernel.ParseSignature(f.inputs); err != nil {
			return nil, fmt.Errorf("--inputs: %w", err)
		}
		cfg.DTypes = dtypes
	}
	return cfg, f.promises(cfg)
}

// kernel is the function that is judged.
func (f *kernelFlags) kernel(args []string) (onekernel.Source, error) {
	src := onekernel.Source{Imports: f.imports, Signature: f.signature}
	switch {
	case f.operator != "" && len(args) > 0:
		return src, errors.New("--op names the kernel already")
	case f.operator != "":
		src.Form, src.Name = "operator", f.operator
		return src, nil
	case len(args) == 0:
		return src, errors.New("name the kernel: FILE.py::FUNCTION, FILE.py, FILE.so:FUNCTION, or --op mylib::name")
	}
	var err error
	if file, name, ok := strings.Cut(args[0], ".so:"); ok && f.signature != "" {
		src.Form, src.Name = "library", name
		src.File, err = existing(file + ".so")
		return src, err
	} else if ok {
		return src, errors.New("a function in C needs its --signature, such as 'f(const float *input, float *out, int64_t n = input.numel())'")
	}
	file, name, named := strings.Cut(args[0], "::")
	src.Form, src.Name = "problem", name
	if named {
		src.Form = "function"
	}
	src.File, err = existing(file)
	return src, err
}

func existing(file string) (string, error) {
	if info, err := os.Stat(file); err != nil {
		return "", err
	} else if info.IsDir() {
		return "", fmt.Errorf("%s is a folder", file)
	}
	return filepath.Abs(file)
}

// reference is a function of a file; nil for one of PyTorch's.
func (f *kernelFlags) reference(form string) (*onekernel.Source, error) {
	file, name, named := strings.Cut(f.against, "::")
	if !strings.HasSuffix(file, ".py") {
		if form == "problem" {
			return nil, fmt.Errorf("a file without ::FUNCTION is a solution of a problem: --against names its file, or the kernel is FILE.py::FUNCTION")
		}
		return nil, nil
	}
	src := &onekernel.Source{Form: "problem", Name: name, Imports: f.imports}
	if named {
		src.Form = "function"
	}
	if src.Form == "problem" && form != "problem" {
		return nil, fmt.Errorf("--against %s: which function of it? FILE.py::FUNCTION", f.against)
	}
	var err error
	src.File, err = existing(file)
	return src, err
}

func (f *kernelFlags) promises(cfg *onekernel.Config) error {
	for _, name := range f.dtypes {
		dt, err := tensor.ParseDType(name)
		if err != nil {
			return fmt.Errorf("--dtypes: %w", err)
		}
		if len(cfg.DTypes) == 0 || f.inputs == "" {
			cfg.DTypes = append(cfg.DTypes, dt)
		}
	}
	for _, name := range f.layouts {
		l, err := onekernel.ParseLayout(name)
		if err != nil {
			return fmt.Errorf("--layouts: %w", err)
		}
		cfg.Layouts = append(cfg.Layouts, l)
	}
	for _, text := range f.sizes {
		name, lo, hi, err := span(text)
		if err != nil {
			return fmt.Errorf("--sizes %s: %w", text, err)
		}
		if cfg.Ranges == nil {
			cfg.Ranges = map[string][2]int{}
		}
		cfg.Ranges[name] = [2]int{lo, hi}
	}
	for _, text := range f.fix {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("--fix %s: want NAME=VALUE", text)
		}
		if cfg.Fixed == nil {
			cfg.Fixed = map[string]any{}
		}
		cfg.Fixed[name] = onekernel.Plain(value)
	}
	cfg.NoEmpty, cfg.NoNonFinite = f.noEmpty, f.noNonFinite
	if f.grad || f.noGrad {
		cfg.Grad = &f.grad
	}
	return nil
}

// span reads B=1..64 and B=128.
func span(text string) (name string, lo, hi int, err error) {
	name, bounds, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", 0, 0, errors.New("want NAME=LO..HI")
	}
	first, last, isSpan := strings.Cut(bounds, "..")
	if !isSpan {
		last = first
	}
	if lo, err = strconv.Atoi(first); err == nil {
		hi, err = strconv.Atoi(last)
	}
	if err == nil && (lo < 0 || hi < lo) {
		err = errors.New("want 0 <= LO <= HI")
	}
	return name, lo, hi, err
}

func (f *kernelFlags) print(out io.Writer, rep *onekernel.Report) error {
	switch {
	case f.json:
		return json.NewEncoder(out).Encode(rep)
	case f.quiet:
		_, err := fmt.Fprintln(out, rep.Verdict)
		return err
	}
	_, err := io.WriteString(out, rep.Text())
	return err
}
