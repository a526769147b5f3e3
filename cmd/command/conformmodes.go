package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"plumb/conform"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
)

// conformModes change which cases a conformance run has, how the candidate
// computes them, and what is told about them.
type conformModes struct {
	without    []string
	nhwc       bool
	minDim     int
	fourBytes  bool
	models     modelFlags
	deviceFile string
	compat     string
	debug      string // 0, 1 or 2
	forward    bool
	backward   bool

	modes  config.Modes
	kit    *conform.Kit
	loaded []*config.Model
}

func (m *conformModes) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	m.addChoice(cmd)
	needs(cmd, "model-file", "model", "verbose", "html", "summary", "markdown")
	fl.BoolVar(&m.fourBytes, "four-bytes", false, "make index arguments int32 instead of int64: "+strings.Join(config.Int32Functions(), " ")+"; and take int32 results of "+strings.Join(config.Int32Results(), " "))
	fl.BoolVar(&m.forward, "forward", false, "judge the forward pass only, without gradients")
	fl.BoolVar(&m.backward, "backward", false, "judge gradients only: the cases of functions such as batch_norm_backward")
	bars(cmd, "forward", "backward")
	fl.Var(oneOf(&m.compat, "diopi"), "compat", `with "diopi", also say whether DIOPI's own, looser comparison would pass`)
	m.debug = "0"
	fl.Var(oneOf(&m.debug, "0", "1", "2"), "failure-debug-level", "what to print about each failure: 0 nothing more, 1 the case and the sums of its tensors, 2 the tensors too")
}

// addChoice adds the flags that choose cases.
func (m *conformModes) addChoice(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&m.without, "filter-dtype", nil, "leave out cases with an argument of these dtypes, such as float64,int64")
	fl.BoolVar(&m.nhwc, "nhwc", false, "give image arguments a channels-last layout: "+strings.Join(config.ChannelsLastFunctions(), " "))
	fl.Var(wholeNumber(&m.minDim, 1), "nhwc-min-dim", "with --nhwc, leave out images of fewer dimensions (default 3)")
	m.models.add(fl)
	fl.Var(inFile(&m.deviceFile), "device-config", "a file that says for a device which cases to skip and which tolerances to use")
	needs(cmd, "nhwc-min-dim", "nhwc")
	needs(cmd, "model-configs", "model")
	bars(cmd, "model-configs", "model-file")
	fl.SetNormalizeFunc(asDIOPI)
}

// load reads what the flags name.
func (m *conformModes) load(base *baseline.Baseline, errs io.Writer) (err error) {
	if err := m.choose(errs); err != nil {
		return err
	}
	return m.open(base, errs)
}

// choose reads what the flags of addChoice name.
func (m *conformModes) choose(errs io.Writer) (err error) {
	m.modes = config.Modes{ChannelsLast: m.nhwc, MinDim: m.minDim, FourBytes: m.fourBytes}
	for _, d := range m.without {
		m.modes.Without = append(m.modes.Without, config.DType(strings.TrimSuffix(d, "_")))
		if d == "bool" {
			m.modes.Without[len(m.modes.Without)-1] = "bool_"
		}
	}
	if m.loaded, m.modes.Model, err = m.models.load(); err != nil {
		return err
	}
	if m.deviceFile != "" {
		return m.device(errs)
	}
	return nil
}

func (m *conformModes) device(errs io.Writer) error {
	src, err := readRegular(m.deviceFile)
	if err != nil {
		return usage(err)
	}
	if m.modes.Device, err = config.LoadDevice(m.deviceFile, src); err != nil {
		return usage(err)
	}
	for _, w := range m.modes.Device.Warnings {
		fmt.Fprintln(errs, "warning:", w)
	}
	return nil
}

// open opens the kit. Without a mode a run can do without the recorded config.
func (m *conformModes) open(base *baseline.Baseline, errs io.Writer) (err error) {
	if m.kit, err = conform.NewKit(base, m.modes); err != nil {
		if m.changes() {
			return usage(err)
		}
		fmt.Fprintf(errs, "plumb: %v; the cases are judged, and not counted by dtype\n", err)
	}
	m.kit.Forward, m.kit.Lenient, m.kit.Debug = m.forward, m.compat != "", int(m.debug[0]-'0')
	return nil
}

// changes says whether the recorded config is needed.
func (m *conformModes) changes() bool {
	return m.nhwc || m.fourBytes || len(m.without) > 0 || m.deviceFile != "" || m.models.name != "" || m.compat != "" || m.debug != "0"
}

// dtype is the dtype by which a case is counted: that of its first tensor.
func (m *conformModes) dtype(e *baseline.Entry) string {
	if c := m.kit.Case(e); c != nil {
		return cmp.Or(c.DType(), "none")
	}
	return "none"
}

// dtypes are those of the arguments of a case.
func (m *conformModes) dtypes(e *baseline.Entry) []string {
	if c := m.kit.Case(e); c != nil {
		return c.DTypes()
	}
	return nil
}

// calls are the functions of each model.
func (m *conformModes) calls() map[string][]string {
	out := map[string][]string{}
	for _, one := range m.loaded {
		if m.models.name == "" || strings.EqualFold(m.models.name, one.Name) {
			out[one.Name] = one.Functions
		}
	}
	return out
}

// warnUnused tells of rules of the device config that met no case.
func (m *conformModes) warnUnused(errs io.Writer) {
	if m.modes.Device == nil {
		return
	}
	for _, w := range m.modes.Device.Unused() {
		fmt.Fprintln(errs, "warning:", w)
	}
}
