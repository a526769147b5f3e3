package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"plumb/conform"
	"plumb/conform/baseline"
)

//go:embed bench/conform.py
var benchConformScript []byte

// conformBench measures plumb conform beside a plain Python script.
type conformBench struct {
	python string
	fnames []string
	jobs   int
	json   bool
}

// conformRow is what one way of recording or judging took.
type conformRow struct {
	Way    string  `json:"way"`
	Cases  int     `json:"cases"`
	CPU    float64 `json:"cpu_seconds"`
	Bytes  int64   `json:"bytes,omitempty"`
	Peak   int64   `json:"peak_bytes,omitempty"` // of memory, all processes; shared pages counted once
	PerCPU float64 `json:"cases_per_cpu_second"`
}

func newBenchConform() *cobra.Command {
	var b conformBench
	cmd := &cobra.Command{
		Use:   "conform CONFIG",
		Short: "Recording and judging a conformance config, beside a plain Python script",
		Long: `Conform records the cases of a config with plumb conform gen, judges native by
them with plumb conform run, and has a plain Python script do what gen does:
draw with numpy in float64 and cast, PyTorch forward and backward, one pickle
per case of inputs, outputs and gradients. Cases per CPU-second count all
processes, without their start; so do bytes and the peak of memory. Functions
without a name of their own in PyTorch are left out of all three.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&b.python, "python", "", "the Python that has torch")
	fl.StringSliceVar(&b.fnames, "fname", nil, "these functions only; may be repeated")
	fl.IntVarP(&b.jobs, "jobs", "j", 2, "workers of gen and run")
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
	names, err := writePlainCases(c, pick, filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		return err
	}
	rows, err := b.measure(ctx, config, python, dir, names)
	if err != nil {
		return &exitError{exitFault, err}
	}
	return b.print(out, rows)
}

// writePlainCases writes the cases that the script can run, and returns the
// names of their functions.
func writePlainCases(c *conform.Config, pick func(string) bool, path string) ([]string, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	var names []string
	var line []byte
	for one := range c.Cases() {
		if !pick(one.Function) || one.Interface == "CustomizedTest" || strings.HasPrefix(one.Interface, "torchvision") {
			continue
		}
		names = append(names, one.Function)
		line = append(one.AppendJSON(line[:0]), '\n')
		if _, err := w.Write(line); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), errors.Join(w.Flush(), f.Close())
}

// measure runs the script, gen and run, one after the other.
func (b *conformBench) measure(ctx context.Context, config, python, dir string, names []string) ([]conformRow, error) {
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
	jobs, functions := strconv.Itoa(b.jobs), strings.Join(names, ",")
	gen, err := timed(ctx, self, "conform", "gen", config, "--out", base, "--jobs", jobs, "--python", python, "--fname", functions)
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
		CPU         float64
	}
	if err := json.Unmarshal(lines[len(lines)-1], &r); err != nil {
		return conformRow{}, fmt.Errorf("%s: %w", script, err)
	}
	return conformRow{Way: "script", Cases: r.Cases, CPU: r.CPU, Bytes: r.Bytes, Peak: r.Peak}, nil
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
	row.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return row, nil
}

// watchMemory returns the largest sum of the proportional set sizes of a process
// and its descendants, sampled until it ends; 0 where the system does not tell.
func watchMemory(pid int, ended <-chan struct{}) int64 {
	most := int64(0)
	for {
		most = max(most, memoryOf(pid))
		select {
		case <-ended:
			return most
		case <-time.After(100 * time.Millisecond):
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
	return tw.Flush()
}
