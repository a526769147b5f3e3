package graph

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plumb/op"
)

// Pass is one way of rewriting code into code of the same results, bit for bit.
type Pass struct {
	Name string
	Doc  string
	// Run returns how many changes it made.
	Run func(c *Code) (int, error)
}

// Reuse is the name under which Options leave out the reuse of memory, which
// is planned after the last pass.
const Reuse = "reuse"

// Passes returns the passes in the order in which Compile applies them.
func Passes() []Pass {
	return []Pass{
		{"dead", "leaves out what no output depends on", dead},
		{"fold", "computes what depends on constants alone", fold},
		{"casts", "leaves out conversions that a later one undoes or repeats", casts},
		{"algebra", "applies traits: idempotent operators, involutions, identity elements", algebra},
		{"common", "computes equal calls once", common},
		{"recompute", "computes the parts that Checkpoint marked again before their gradient", recompute},
		{"dead2", "leaves out what the passes before made useless", dead},
		{"fuse", "runs elementwise calls of one shape in one loop over blocks", fuse},
		{"epilogue", "runs elementwise calls on the parts of a product or convolution that are final", epilogue},
		{"order", "runs what frees memory as soon as it can run", order},
	}
}

// Options say how Compile works. The zero Options apply every pass.
type Options struct {
	// Without names the passes that are left out, Reuse among them; All leaves
	// out every one.
	Without []string
	// DebugPasses is how much Log is told of the passes: 1 what each did and its
	// time, 2 also the code before the first and after the last, 3 the code after
	// each pass that changed it, with the places where nodes were traced.
	DebugPasses int
	Log         io.Writer
	// Passes take the place of those of Passes, where given.
	Passes []Pass
	// Block is how many elements a fused loop takes at a time; 0 for a default.
	Block int
	// Donate numbers inputs that the caller gives up with each run, so that
	// results may take their memory: parameters that a step replaces. They
	// must share memory with no other input.
	Donate []int
	// Watch is called whenever a node was run, before what it read last and the
	// blocks of a fused loop are released: it may measure what lives.
	Watch func()
	// Keep is how many signatures a Graph is kept compiled for, those that were
	// used last; 0 for a default.
	Keep int

	// Device has the results, nil for the host; inputs and constants are moved there. Its
	// calls run one by one on Stream, each result in memory of its own.
	Device *op.Device
	Stream int

	tamper func(*plan, *Code)
}

// All stands for every pass and for Reuse in Options.Without.
const All = "all"

// WithoutPasses returns options of the same device that leave out every pass.
func (o *Options) WithoutPasses() Options {
	return Options{Without: []string{All}, Device: o.Device, Stream: o.Stream}
}

// hostPasses work on the host's memory.
var hostPasses = []string{"fuse", "epilogue", Reuse}

func (o *Options) takes(pass string) bool {
	return (o.Device == nil || !slices.Contains(hostPasses, pass)) && !slices.Contains(o.Without, pass) && !slices.Contains(o.Without, All)
}

// Stage is what one pass did.
type Stage struct {
	Pass          string
	Changes       int
	Before, After int // nodes that compute
	Time          time.Duration
}

// String returns one line.
func (s Stage) String() string {
	return fmt.Sprintf("%-10s %3d changes, %3d → %3d nodes, %s", s.Pass, s.Changes, s.Before, s.After, s.Time.Round(time.Microsecond))
}

// Compile applies the passes to a copy of the code and plans its memory. The
// error names the pass that failed.
func Compile(code *Code, o Options) (*Compiled, error) {
	c := code.copy()
	c.donated = o.Donate
	passes := o.Passes
	if passes == nil {
		passes = Passes()
	}
	o.show(2, "before the passes", c)
	var stages []Stage
	for _, p := range passes {
		if !o.takes(p.Name) {
			continue
		}
		s, err := c.apply(p)
		if err != nil {
			return nil, c.broken(p, err)
		}
		o.logf(1, "%s: %s\n", c.Name, s)
		if s.Changes > 0 {
			o.show(3, "after "+p.Name, c)
		}
		stages = append(stages, s)
	}
	o.show(2, "after the passes", c)
	plan := planned(c, o.takes(Reuse), o.tamper)
	o.logf(1, "%s: memory %s\n", c.Name, plan.memory)
	block := o.Block
	if block == 0 {
		block = defaultBlock
	}
	return &Compiled{Code: c, device: o.Device, stream: o.Stream, Stages: stages, plan: plan, block: block, watch: o.Watch}, nil
}

// broken says of a pass that it failed, at the node where that is known.
func (c *Code) broken(p Pass, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Err: err}
	}
	e.Graph, e.Pass = c.Name, p.Name
	return e
}

// apply runs a pass and checks what it left.
func (c *Code) apply(p Pass) (Stage, error) {
	s := Stage{Pass: p.Name, Before: c.count()}
	outputs, start := slices.Clone(c.Outputs), time.Now()
	var err error
	s.Changes, err = p.Run(c)
	s.Time, s.After = time.Since(start), c.count()
	if err == nil {
		err = c.check(outputs)
	}
	return s, err
}

// check returns an error unless every value is made before it is read, and the
// outputs are like those before.
func (c *Code) check(outputs []*Value) error {
	made := map[*Value]bool{}
	for _, n := range c.Nodes {
		for _, v := range n.Args() {
			if !made[v] {
				return n.failed(fmt.Errorf("it reads a value, %%%d, that is not made before", v.id))
			}
		}
		for _, v := range n.Out {
			made[v] = true
		}
	}
	for i, v := range c.Outputs {
		switch {
		case !made[v]:
			return v.node.failed(fmt.Errorf("output %d is not made", i))
		case !alike(v, outputs[i]):
			return v.node.failed(fmt.Errorf("output %d was %s and is %s", i, describe(outputs[i]), describe(v)))
		}
	}
	return nil
}

func (o *Options) logf(level int, format string, args ...any) {
	if o.DebugPasses >= level && o.Log != nil {
		fmt.Fprintf(o.Log, format, args...)
	}
}

func (o *Options) show(level int, when string, c *Code) {
	if o.DebugPasses >= level && o.Log != nil {
		fmt.Fprintf(o.Log, "%s %s:\n%s", c.Name, when, indent(c.text(o.DebugPasses >= 3)))
	}
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}

// Blame returns the name of the first pass, Reuse among them, with which
// compiled code no longer gives what is wanted: right tells. It is "" where
// all of them do, and "run" where the code fails without any pass.
func Blame(code *Code, o Options, right func(*Compiled) bool) string {
	passes := o.Passes
	if passes == nil {
		passes = Passes()
	}
	wrong := func(o Options) bool {
		c, err := Compile(code, o)
		return err != nil || !right(c)
	}
	for n := range len(passes) + 1 {
		some := o
		some.Passes = passes[:n]
		some.Without = append(slices.Clone(o.Without), Reuse)
		if !wrong(some) {
			continue
		}
		if n == 0 {
			return "run"
		}
		return passes[n-1].Name
	}
	if wrong(o) {
		return Reuse
	}
	return ""
}
