package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/ops"
)

// defaultReference is believed where no --reference is given.
const defaultReference = "torch"

// subjects are the backends of a command: one is believed, the others are judged.
type subjects struct {
	reference  string // "" for the default
	candidates []string
	python     string
	imports    []string
	ranks      []string
	gathered   gathered // by plumb explain
	device     string
	sandbox    bool
	jobs       int

	soft func(flag string) bool // whether it has its value from plumb.toml; nil for none

	set open.Set
}

// newSubjects returns the defaults.
func newSubjects() subjects {
	return subjects{candidates: []string{"native"}, device: "cpu", jobs: runtime.NumCPU()}
}

func (s *subjects) register(cmd *cobra.Command) {
	group(cmd, whichSubjects, func(fl *pflag.FlagSet) {
		fl.StringVar(&s.reference, "reference", "", "the backend that is taken to be right (default torch): torch, native, recorded:FILE, …; see plumb help backends")
		fl.StringSliceVar(&s.candidates, "candidate", s.candidates, "the backends that are judged; may be repeated")
		fl.StringSliceVar(&s.ranks, "ranks", nil, "judge native over ranks too, such as 2,3,4,2x2 (a hierarchy): how inputs lie on them, and by which of its legal signatures a call is run, is drawn; graph-2x2 runs the graph of each case")
		pythonFlag(fl, &s.python)
		fl.StringSliceVar(&s.imports, "import", nil, "a Python module that torch subjects import first, such as torch_npu for torch@npu; may be repeated")
		sandboxFlag(fl, &s.sandbox)
		jobsFlag(fl, &s.jobs, "cases that run at the same time, as many as CPUs and memory allow")
	})
}

func sandboxFlag(fl *pflag.FlagSet, at *bool) {
	fl.BoolVar(at, "sandbox", false, "for subjects that nobody trusts: each that is a process has no network, and one folder to write to, which is its own; refused where the machine cannot do that (it takes Linux with Landlock)")
}

// specs are the names of the backends.
func (s *subjects) specs() []string {
	return append(slices.Clone(s.candidates), cmp.Or(s.reference, defaultReference))
}

// open begins a campaign: it resolves the backends. With fallback, the shipped
// baseline takes the place of a default reference that is not on this machine.
func (s *subjects) open(ctx context.Context, bounds *settings, fallback bool, log io.Writer) (*campaign.Config, error) {
	s.leave()
	s.set.Table, s.set.Python, s.set.Imports, s.set.Timeout = ops.Table(), s.python, s.imports, bounds.timeout
	s.set.Sandbox, s.set.Beside = s.sandbox, thisProcess.servesNative()
	given := s.reference != ""
	if !given {
		s.reference = defaultReference
	}
	if err := idlePython(s.python, s.specs()...); err != nil {
		return nil, err
	}
	if len(s.imports) > 0 && !slices.ContainsFunc(s.specs(), isTorch) {
		return nil, usage(fmt.Errorf("--import %s has no effect: neither the reference nor a candidate is torch", strings.Join(s.imports, ",")))
	}
	if err := s.overRanks(); err != nil {
		return nil, err
	}
	for i, spec := range s.candidates {
		if slices.Contains(s.candidates[:i], spec) {
			return nil, usage(fmt.Errorf("--candidate %s is given twice", spec))
		}
	}
	s.set.Growth = fitJobs(&s.jobs, log, s.specs()...)
	if bounds.growth > 0 {
		s.set.Growth = int64(bounds.growth)
	}
	cfg := &campaign.Config{Jobs: s.jobs, Batch: 32}
	var err error
	cfg.Reference, err = s.set.Opener(ctx, s.reference)
	var missing *backend.Fault
	if errors.As(err, &missing) && fallback && !given && s.python == "" {
		s.reference = "recorded"
		fmt.Fprintf(log, "plumb: %v: the recorded baseline is the reference; for fresh random cases: %s\n", missing.Err, missing.Fix)
		cfg.Reference, err = s.set.Opener(ctx, s.reference)
	}
	if err != nil {
		return nil, harness(err)
	}
	cfg.ReferenceName = s.reference
	for _, spec := range s.candidates {
		opener, err := s.set.Opener(ctx, spec)
		if err != nil {
			return nil, harness(err)
		}
		cfg.Candidates = append(cfg.Candidates, campaign.Candidate{Name: spec, Open: opener})
	}
	return cfg, s.checkDevice(cfg)
}

// leave lets go of what plumb.toml says of subjects that this command does not have.
func (s *subjects) leave() {
	if s.soft == nil {
		return
	}
	torch := slices.ContainsFunc(s.specs(), isTorch)
	if !torch && s.soft("python") {
		s.python = ""
	}
	if !torch && s.soft("import") {
		s.imports = nil
	}
	if s.soft("ranks") && !slices.Contains(s.candidates, "native") {
		s.ranks = nil
	}
}

// overRanks makes candidates of native over ranks.
func (s *subjects) overRanks() error {
	if len(s.ranks) > 0 && !slices.Contains(s.candidates, "native") {
		return usage(fmt.Errorf("--ranks has no effect: native, which runs over ranks, is no candidate"))
	}
	for _, ranks := range s.ranks {
		mode := native.Global + "-" + ranks
		if !native.HasMode(mode) {
			return usage(fmt.Errorf("--ranks %s: not a number of ranks up to 64, nor a hierarchy such as 2x2", ranks))
		}
		s.candidates = append(s.candidates, "native:"+mode)
	}
	return nil
}

func isTorch(spec string) bool { return open.ParseSpec(spec).IsTorch() }

// checkDevice refuses a device that one of the backends lacks.
func (s *subjects) checkDevice(cfg *campaign.Config) error {
	if s.device == "cpu" {
		return nil
	}
	all := append(slices.Clone(cfg.Candidates), campaign.Candidate{Name: s.reference, Open: cfg.Reference})
	return eachInfo(all, func(name string, info backend.Info) error {
		if slices.Contains(info.Devices, s.device) {
			return nil
		}
		return usage(fmt.Errorf("--device %s: %s has no such device here; it has %s", s.device, name, strings.Join(info.Devices, ", ")))
	})
}

// haveGraphModes refuses --check-graph where a candidate has no graph mode
// beside the mode in which it runs.
func (s *subjects) haveGraphModes(cfg *campaign.Config) error {
	return eachInfo(cfg.Candidates, func(name string, info backend.Info) error {
		if err := open.NeedGraphModes("--check-graph", name, info); err != nil {
			return usage(err)
		}
		return nil
	})
}

// eachInfo calls f with what each backend says of itself, until f returns an error.
func eachInfo(all []campaign.Candidate, f func(name string, info backend.Info) error) error {
	for _, c := range all {
		b, err := c.Open()
		if err != nil {
			return harness(err)
		}
		err = f(c.Name, b.Info())
		if err = errors.Join(err, b.Close()); err != nil {
			return err
		}
	}
	return nil
}

// signatures returns what tells the parameters of the reference's functions.
func (s *subjects) signatures(cfg *campaign.Config) *signatures {
	switch {
	case isTorch(s.reference):
		return &signatures{open: cfg.Reference}
	case open.IsRecorded(s.reference):
		return &signatures{info: cfg.Reference}
	}
	return &signatures{}
}
