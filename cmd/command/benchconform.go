package command

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/worker"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

//go:embed bench/conform.py
var benchConformScript []byte

// conformBench measures plumb conform beside a plain Python script.
type conformBench struct {
	python string
	fnames []string
	sample int
	seed   uint64
	limit  int // bytes of the inputs of a case
	jobs   int
	json   bool
}

// conformRow is what one way of recording or judging took.
type conformRow struct {
	Way    string  `json:"way"`
	Cases  int     `json:"cases"`
	CPU    float64 `json:"cpu_seconds"`
	Bytes  int64   `json:"bytes,omitempty"`
	Peak   int64   `json:"peak_bytes,omitempty"`        // of memory, all processes; shared pages counted once
	Torch  float64 `json:"torch_cpu_seconds,omitempty"` // of CPU, in PyTorch's forward and backward
	PerCPU float64 `json:"cases_per_cpu_second"`
}

func newBenchConform() *cobra.Command {
	var b conformBench
	cmd := &cobra.Command{
		Use:     "conform [CONFIG]",
		Example: `  plumb bench conform --sample 50`,
		Short:   "Recording and judging a conformance config, beside a plain Python script",
		Long: `Conform records the cases of a config with plumb conform gen, judges native by
them with plumb conform run, and has a plain Python script do what gen does:
draw with numpy in float64 and cast, PyTorch forward and backward, one pickle
per case of inputs, outputs and gradients. CPU seconds are those of all
processes of a command, user and system, from its start to its end, importing
torch included: once for the script and once per worker for gen. How much of it
the script spends in PyTorch's forward and backward is shown, since gen has to
spend that too. Peak memory is summed over all processes, shared pages counted
once.
Functions without a name of their own in PyTorch are left out of all three.

--sample N takes N cases spread evenly over the sizes. Without CONFIG it measures
the development config, where there is one, else the config that Plumb ships.`,
		Args: takes(0, 1, "one CONFIG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := b.config(args)
			if err != nil {
				return err
			}
			return b.run(cmd.Context(), config, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	pythonFlag(fl, &b.python)
	fl.StringSliceVar(&b.fnames, "fname", nil, "these functions only; may be repeated")
	fl.Var(wholeNumber(&b.sample, 0), "sample", "take this many cases, spread over all sizes; 0 for all")
	fl.Var(fixedSeed(&b.seed, 1), "seed", "the seed of the sample")
	b.limit = math.MaxInt
	fl.Var(memorySize(&b.limit, ""), "limit", "leave out cases with more bytes of inputs than this")
	b.jobs = 2
	jobsFlag(fl, &b.jobs, "cases that gen and run work on at the same time")
	fl.BoolVar(&b.json, "json", false, "print one object per line")
	return cmd
}

func (b *conformBench) run(ctx context.Context, config string, out, errs io.Writer) error {
	c, err := readConfig(config, errs)
	if err != nil {
		return err
	}
	pick, err := byFunction(c, b.fnames)
	if err != nil {
		return usage(err)
	}
	python, _, err := worker.FindPython(b.python)
	if err != nil {
		return harness(err)
	}
	dir, err := os.MkdirTemp("", "plumb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cases, err := b.pick(c, pick)
	if err != nil {
		return err
	}
	if err := writePlainCases(cases, dir); err != nil {
		return err
	}
	rows, err := b.measure(ctx, config, python, dir)
	if err != nil {
		return &exitError{exitFault, err}
	}
	return b.print(out, rows)
}

// devConfig is where a checkout has the development config.
const devConfig = "../shared/data/conformance_dev.py"

func (b *conformBench) config(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	for _, path := range []string{devConfig, "baselines/conformance/config.py"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", usage(errors.New("bench conform: name a CONFIG; outside of a checkout there is no default"))
}

// sized is a case with the bytes of its inputs.
type sized struct {
	*config.Case
	bytes int
}

// pick selects the cases to measure, in the order of the config: those that the
// script can run and Plumb has a program for.
func (b *conformBench) pick(c *config.Config, function func(string) bool) ([]sized, error) {
	var all []sized
	for one := range c.Cases() {
		if !function(one.Function) || one.Interface == "CustomizedTest" || strings.HasPrefix(one.Interface, "torchvision") {
			continue
		}
		if p, err := diopi.Program(one, 1); err == nil {
			if n := inputSize(p); n <= b.limit {
				all = append(all, sized{one, n})
			}
		}
	}
	if len(all) == 0 {
		return nil, usage(errors.New("bench conform: no case is selected"))
	}
	return spread(all, b.sample, b.seed), nil
}

func inputSize(p *program.Program) int {
	n := 0
	for i := range p.Inputs {
		n += tensor.NumElements(p.Inputs[i].Shape) * p.Inputs[i].DType.Size()
	}
	return n
}

// spread returns n cases at equal distances in the order of their size, from a
// random one on, in their own order; all for n = 0.
func spread(all []sized, n int, seed uint64) []sized {
	if n <= 0 || n >= len(all) {
		return all
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[i].bytes, all[j].bytes) })
	start := choice.New(seed).Float(0, 1)
	picked := make([]int, n)
	for i := range picked {
		picked[i] = order[int((float64(i)+start)*float64(len(all))/float64(n))]
	}
	slices.Sort(picked)
	some := make([]sized, n)
	for i, k := range picked {
		some[i] = all[k]
	}
	return some
}

// writePlainCases writes the cases for the script, and their names for gen.
func writePlainCases(cases []sized, dir string) error {
	var lines, names []byte
	for _, one := range cases {
		lines = append(one.AppendJSON(lines), '\n')
		names = append(append(names, one.Name...), '\n')
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "cases.jsonl"), lines, 0o644), os.WriteFile(filepath.Join(dir, "names"), names, 0o644))
}

// measure runs the script, gen and run, one after the other.
func (b *conformBench) measure(ctx context.Context, config, python, dir string) ([]conformRow, error) {
	script, base := filepath.Join(dir, "conform.py"), filepath.Join(dir, "base")
	if err := os.WriteFile(script, benchConformScript, 0o644); err != nil {
		return nil, err
	}
	plain, err := b.script(ctx, python, script, filepath.Join(dir, "cases.jsonl"), dir)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	jobs := strconv.Itoa(b.jobs)
	gen, err := timed(ctx, self, "conform", "gen", config, "--out", base, "--jobs", jobs, "--python", python, "--only", filepath.Join(dir, "names"))
	if err != nil {
		return nil, err
	}
	opened, err := baseline.Open(base)
	if err != nil {
		return nil, err
	}
	for i := range opened.Manifest.Cases {
		if e := &opened.Manifest.Cases[i]; e.Missing == "" && len(e.Refused) == 0 {
			gen.Cases++
		}
	}
	gen.Way, gen.Bytes = "gen", opened.Manifest.Bytes()
	run, err := timed(ctx, self, "conform", "run", "--baseline", base, "--jobs", jobs)
	if err != nil {
		return nil, err
	}
	run.Way, run.Cases = "run", gen.Cases
	return []conformRow{plain, gen, run}, nil
}

func (b *conformBench) script(ctx context.Context, python, script, cases, dir string) (conformRow, error) {
	cmd := exec.CommandContext(ctx, python, script, cases, dir)
	cmd.Stderr = io.Discard
	text, err := cmd.Output()
	if err != nil {
		return conformRow{}, fmt.Errorf("%s: %w", script, err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var r struct {
		Cases       int
		Bytes, Peak int64
		Torch       float64
	}
	if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
		return conformRow{}, fmt.Errorf("%s: %w", script, err)
	}
	return conformRow{Way: "script", Cases: r.Cases, CPU: cpuOf(cmd.ProcessState), Bytes: r.Bytes, Peak: r.Peak, Torch: r.Torch}, nil
}

// timed runs a command of ours to its end, whatever it found, and measures it
// with all its processes.
func timed(ctx context.Context, name string, args ...string) (conformRow, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var text bytes.Buffer
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		return conformRow{}, err
	}
	ended := make(chan struct{})
	peak := make(chan int64)
	go func() { peak <- watchMemory(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	close(ended)
	row := conformRow{Peak: <-peak}
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitFindings) {
		return row, fmt.Errorf("plumb %s: %w\n%s", strings.Join(args[:2], " "), err, &text)
	}
	row.CPU = cpuOf(cmd.ProcessState)
	return row, nil
}

// cpuOf is the processor time of an ended process and of those that it waited
// for, in seconds.
func cpuOf(s *os.ProcessState) float64 { return (s.UserTime() + s.SystemTime()).Seconds() }

// watchMemory returns the largest sum of the proportional set sizes of a process
// and its descendants, sampled until it ends; 0 where the system does not tell.
func watchMemory(pid int, ended <-chan struct{}) int64 {
	most := int64(0)
	for {
		start := time.Now()
		most = max(most, memoryOf(pid))
		select {
		case <-ended:
			return most
		case <-time.After(max(100*time.Millisecond, 20*time.Since(start))):
		}
	}
}

func memoryOf(pid int) int64 {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	sum := int64(0)
	if text, err := os.ReadFile(filepath.Join(proc, "smaps_rollup")); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				n, _ := strconv.ParseInt(f[1], 10, 64)
				sum += n << 10
			}
		}
	}
	threads, _ := filepath.Glob(filepath.Join(proc, "task", "*", "children"))
	for _, t := range threads {
		text, _ := os.ReadFile(t)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				sum += memoryOf(n)
			}
		}
	}
	return sum
}

func (b *conformBench) print(w io.Writer, rows []conformRow) error {
	for i := range rows {
		rows[i].PerCPU = float64(rows[i].Cases) / rows[i].CPU
	}
	if b.json {
		enc := json.NewEncoder(w)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	plain := rows[0]
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tcases\tCPU s\tcases/CPU s\tratio\tMB\tof the script's\tpeak MiB\t")
	for _, r := range rows {
		size, share := "", ""
		if r.Bytes > 0 {
			size, share = fmt.Sprintf("%.1f", float64(r.Bytes)/1e6), fmt.Sprintf("%.1f%%", 100*float64(r.Bytes)/float64(max(plain.Bytes, 1)))
		}
		fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.2f\t%s\t%s\t%d\t\n", r.Way, r.Cases, r.CPU, r.PerCPU, r.PerCPU/plain.PerCPU, size, share, r.Peak>>20)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "of the script's CPU seconds PyTorch itself took %.1f: who asks it cannot be more than %.1f times as fast\n", plain.Torch, plain.CPU/max(plain.Torch, 1e-9))
	return err
}
