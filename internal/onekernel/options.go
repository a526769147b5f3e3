package onekernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plumb/backend/worker"
	"plumb/tensor"
)

// Options are what a user says of a kernel, in the words of plumb kernel's flags.
type Options struct {
	// Kernel is FILE.py::FUNCTION, FILE.so:FUNCTION with its Signature, or a
	// solution's FILE.py; "" with Op, a registered operator.
	Kernel, Op, Signature string
	Against               string // a name of PyTorch's, FILE.py::FUNCTION, a problem's file, or a task's folder
	Imports               []string
	Python                string // that has PyTorch and what the kernel imports; "" for the one that is found

	Inputs  string   // such as "x: f32[B,S], i: i64[B] < V"
	Fix     []string // NAME=VALUE
	Cases   int
	Budget  time.Duration
	Timeout time.Duration // of one call
	Seed    uint64

	DTypes, Layouts, Sizes []string
	Shapes                 string // given, near or any, in terms of the examples'
	NoEmpty, NoNonFinite   bool
	Grad, NoGrad, GradGrad bool

	Precision  string // "full", "tf32" or "fast"
	Accumulate string // "float32" or "half"

	Deterministic bool
	NoFallback    bool
	AllowLimited  bool
	NoSandbox     bool
	Time          bool // how long calls take too

	// YAML decodes a task.yml; without it tasks are refused. It is no part of this
	// package, which the Go modules of users and of bundles import.
	YAML func(text []byte, into any) error
	// Find finds a Python as worker.FindPython, which nil stands for, does.
	Find func(name string) (path, version string, err error)
}

// Defaults are the options that plumb kernel has without flags.
func Defaults() Options {
	return Options{Cases: 60, Budget: usualBudget, Timeout: 30 * time.Second}
}

// Filled returns the options with the defaults in the place of zeros.
func (o Options) Filled() Options {
	d := Defaults()
	o.Cases, o.Budget, o.Timeout = cmp.Or(o.Cases, d.Cases), cmp.Or(o.Budget, d.Budget), cmp.Or(o.Timeout, d.Timeout)
	return o
}

// Passes reports whether a kernel of the options passes with a report.
func (o *Options) Passes(r *Report) bool {
	return r.Verdict == Right || r.Verdict == Limited && o.AllowLimited
}

// Mistake is an error of who asks: a name that is not there, what cannot be read.
type Mistake struct{ error }

// Unwrap returns what is wrong.
func (m *Mistake) Unwrap() error { return m.error }

// Config reads the options. The error says which of them is a mistake.
func (o *Options) Config() (*Config, error) {
	if o.Against == "" {
		return nil, errors.New("--against is missing: name the function that the kernel should equal, such as torch.softmax or ref.py::swiglu")
	}
	cfg := &Config{Against: o.Against, Cases: o.Cases, Budget: o.Budget, Timeout: o.Timeout, YAML: o.YAML, NoFallback: o.NoFallback, Deterministic: o.Deterministic, NoSandbox: o.NoSandbox, Time: o.Time, Seed: o.Seed}
	var err error
	if cfg.Precision, cfg.HalfSums, err = o.arithmetic(); err != nil {
		return nil, err
	}
	if cfg.Kernel, err = o.kernel(); err != nil {
		return nil, err
	}
	if cfg.Reference, err = o.reference(cfg.Kernel.Form); err != nil {
		return nil, err
	}
	if cfg.Reference != nil && cfg.Reference.Form == "task" {
		cfg.Kernel.Form = "task"
	}
	find := o.Find
	if find == nil {
		find = worker.FindPython
	}
	if cfg.Python, _, err = find(o.Python); err != nil {
		return nil, err
	}
	inputs := o.Inputs
	if inputs == "" && cfg.Reference != nil && o.Signature != "" {
		inputs = InputsOfC(o.Signature)
	}
	if inputs != "" {
		var dtypes []tensor.DType
		if cfg.Inputs, dtypes, err = ParseSignature(inputs); err != nil {
			return nil, fmt.Errorf("--inputs: %w", err)
		}
		cfg.DTypes = dtypes
	}
	return cfg, o.promises(cfg)
}

// arithmetic is what the kernel says of its precision.
func (o *Options) arithmetic() (Precision, bool, error) {
	p := Precision(cmp.Or(o.Precision, string(Full)))
	if !slices.Contains([]Precision{Full, TF32, Fast}, p) {
		return p, false, fmt.Errorf("--precision %s: there are full, tf32 and fast", p)
	}
	if o.Accumulate != "" && o.Accumulate != "float32" && o.Accumulate != "half" {
		return p, false, fmt.Errorf("--accumulate %s: there are float32 and half", o.Accumulate)
	}
	return p, o.Accumulate == "half", nil
}

// kernel is the function that is judged.
func (o *Options) kernel() (Source, error) {
	src := Source{Imports: o.Imports, Signature: o.Signature}
	switch {
	case o.Op != "" && o.Kernel != "":
		return src, errors.New("--op names the kernel already")
	case o.Op != "":
		src.Form, src.Name = "operator", o.Op
		return src, nil
	case o.Kernel == "":
		return src, errors.New("name the kernel: FILE.py::FUNCTION, FILE.py, FILE.so:FUNCTION, or --op mylib::name")
	}
	var err error
	if file, name, ok := strings.Cut(o.Kernel, ".so:"); ok && o.Signature != "" {
		src.Form, src.Name = "library", name
		src.File, err = existing(file + ".so")
		return src, err
	} else if ok {
		return src, errors.New("a function in C needs its --signature, such as 'f(const float *input, float *out, int64_t n = input.numel())'")
	}
	file, name, named := strings.Cut(o.Kernel, "::")
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
func (o *Options) reference(form string) (*Source, error) {
	file, name, named := strings.Cut(o.Against, "::")
	if info, err := os.Stat(o.Against); err == nil && info.IsDir() {
		return o.task(form)
	}
	if !strings.HasSuffix(file, ".py") {
		if form == "problem" {
			return nil, fmt.Errorf("a file without ::FUNCTION is a solution of a problem: --against names its file, or the kernel is FILE.py::FUNCTION")
		}
		return nil, nil
	}
	src := &Source{Form: "problem", Name: name}
	if o.Op == "" { // else they bring the kernel, whose code runs in no other process
		src.Imports = o.Imports
	}
	if named {
		src.Form = "function"
	}
	if src.Form == "problem" && form != "problem" {
		return nil, fmt.Errorf("--against %s: which function of it? FILE.py::FUNCTION", o.Against)
	}
	var err error
	src.File, err = existing(file)
	return src, err
}

// task is a folder in GPU MODE's form as the reference.
func (o *Options) task(form string) (*Source, error) {
	if form != "problem" {
		return nil, fmt.Errorf("--against %s is the folder of a task: the kernel is the file of a submission, without ::FUNCTION", o.Against)
	}
	dir, err := filepath.Abs(o.Against)
	return &Source{Form: "task", File: dir, Imports: o.Imports}, err
}

func (o *Options) promises(cfg *Config) error {
	var promised []tensor.DType
	for _, name := range o.DTypes {
		dt, err := tensor.ParseDType(name)
		if err != nil {
			return fmt.Errorf("--dtypes: %w", err)
		}
		promised = append(promised, dt)
	}
	if promised != nil {
		cfg.DTypes = promised
	}
	var err error
	if cfg.Shapes, err = ParseShapes(o.Shapes); err != nil {
		return fmt.Errorf("--shapes: %w", err)
	}
	for _, name := range o.Layouts {
		l, err := ParseLayout(name)
		if err != nil {
			return fmt.Errorf("--layouts: %w", err)
		}
		cfg.Layouts = append(cfg.Layouts, l)
	}
	for _, text := range o.Sizes {
		name, lo, hi, err := span(text)
		if err != nil {
			return fmt.Errorf("--sizes %s: %w", text, err)
		}
		if cfg.Ranges == nil {
			cfg.Ranges = map[string][2]int{}
		}
		cfg.Ranges[name] = [2]int{lo, hi}
	}
	for _, text := range o.Fix {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("--fix %s: want NAME=VALUE", text)
		}
		if cfg.Fixed == nil {
			cfg.Fixed = map[string]any{}
		}
		cfg.Fixed[name] = Plain(value)
	}
	cfg.NoEmpty, cfg.NoNonFinite = o.NoEmpty, o.NoNonFinite
	if o.GradGrad && o.NoGrad {
		return errors.New("--gradgrad asks for gradients, --no-grad for none")
	}
	if demanded := o.Grad || o.GradGrad; demanded || o.NoGrad {
		cfg.Grad, cfg.GradGrad = &demanded, o.GradGrad
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
