package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/campaign/coverage"
	"plumb/internal/campaign/drive"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/gradcheck"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// newOpsCover is plumb ops cover.
func newOpsCover() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "cover",
		Short: "What agrees with the reference, by operator, direction, dtype and layout",
		Long: `Cover is about a matrix of operators, forward or backward, dtypes and memory
layouts: each cell says whether Plumb agrees with the reference, both refuse, or
nothing could be compared. Plumb ships the matrix for PyTorch; run measures one.`,
	}, newCoverShow(), newCoverRun())
}

func newCoverShow() *cobra.Command {
	var from string
	var reasons, asJSON bool
	cmd := &cobra.Command{
		Use:   "show [NAME…]",
		Short: "Print the matrix that Plumb ships, or one that plumb ops cover run wrote",
		Example: `  plumb ops cover show softmax
  plumb ops cover show --from cover.json softmax --reasons`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return showCoverage(cmd.OutOrStdout(), from, names, reasons, asJSON)
		},
	}
	fl := cmd.Flags()
	fl.Var(inFile(&from), "from", "a file that plumb ops cover run wrote")
	fl.BoolVar(&reasons, "reasons", false, "say why, for every cell that is not aligned")
	jsonFlag(fl, &asJSON, "print the matrix as one object")
	bars(cmd, "json", "reasons")
	return cmd
}

// showCoverage prints the matrix of the operators that are wanted.
func showCoverage(w io.Writer, path string, names []string, reasons, asJSON bool) error {
	defs, err := selectOps(names)
	if err != nil {
		return usage(err)
	}
	m, err := readCoverage(path, defs)
	if err != nil {
		return usage(err)
	}
	if len(m.Ops) == 0 && len(names) > 0 {
		return usage(fmt.Errorf("%s has none of these operators; this compares them: plumb ops cover run %s --out FILE", cmp.Or(path, "the shipped coverage"), names[0]))
	}
	if asJSON {
		return m.Write(w)
	}
	m.Text(w, reasons)
	return nil
}

func newCoverRun() *cobra.Command {
	s := newSession()
	c := &covering{session: s, cells: map[string][]cell{}, perCell: 2}
	cmd := &cobra.Command{
		Use:   "run PATTERN… --out FILE",
		Short: "Measure the matrix for the operators whose name matches a pattern",
		Long: `Run draws a few cases of every dtype and layout, legal or not, for the operators
whose name matches one of the patterns, compares them, checks gradients of
gradients against difference quotients, and writes the matrix to a file.`,
		Example: `  plumb ops cover run 'leaky*' --out cover.json
  plumb ops cover show --from cover.json`,
		Args: atLeastOne("a pattern of operators' names, such as 'conv*' or '*'"),
		RunE: func(cmd *cobra.Command, patterns []string) error {
			s.attach(cmd)
			return c.run(cmd.Context(), patterns)
		},
	}
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		fl.VarP(wholeNumber(&c.perCell, 1), "number", "n", "cases of each dtype and layout")
		fl.Var(anySeed(&s.cases.given), "seed", "the seed of all cases (default: a new one, printed at the end)")
	})
	s.subjects.register(cmd)
	s.judging.register(cmd)
	s.reports.register(cmd)
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		fl.VarP(outFile(&c.out), "out", "o", "the file of the matrix; compressed where it ends in .zst")
	})
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// covering measures a matrix.
type covering struct {
	*session
	out     string
	perCell int // cases
	matrix  *coverage.Matrix
	defs    []*op.Def
	cells   map[string][]cell // by test, of its cases
}

// cell is where a case belongs.
type cell struct {
	op     *coverage.Op
	def    *op.Def
	dtype  tensor.DType
	layout opcase.Layout
}

func (c *covering) run(ctx context.Context, patterns []string) error {
	c.cases.settle(nil)
	if err := c.open(ctx, false); err != nil {
		return err
	}
	defer c.cases.sigs.Close()
	tests, err := c.tests(patterns)
	if err != nil {
		return usage(err)
	}
	c.observers = append(c.observers, c)
	end := c.session.run(ctx, "plumb ops cover run", tests)
	var e *exitError
	if errors.As(end, &e) && e.code != exitFindings {
		return end
	}
	if err := c.finish(ctx); err != nil {
		return &exitError{exitFault, err}
	}
	return end
}

// tests fill in the matrix: one per operator that matches and dtype, of a few
// cases in every layout.
func (c *covering) tests(patterns []string) ([]campaign.Test, error) {
	m := &coverage.Matrix{Reference: c.subjects.set.Is(c.subjects.reference), Date: time.Now().UTC().Format(time.DateOnly), Seed: c.cases.seed, Cases: c.perCell}
	for _, dt := range opDTypes {
		m.DTypes = append(m.DTypes, dt.String())
	}
	for _, l := range opcase.Layouts {
		m.Layouts = append(m.Layouts, string(l))
	}
	c.matrix = m
	matches, err := matching(ops.Table(), patterns)
	if err != nil {
		return nil, err
	}
	var out []campaign.Test
	for _, one := range matches {
		d := one.def
		if len(d.Names) == 0 || d.Sample == nil {
			continue
		}
		c.defs = append(c.defs, d)
		o := m.Add(d.ID())
		for _, dt := range opDTypes {
			if t := c.test(d, o, dt, c.cases.seed); t.N > 0 {
				out = append(out, t)
			}
		}
	}
	if len(out) == 0 {
		return nil, noOperator(patterns)
	}
	return out, nil
}

// test draws the cases of one operator and dtype.
func (c *covering) test(d *op.Def, o *coverage.Op, dt tensor.DType, seed uint64) campaign.Test {
	name := fmt.Sprintf("cover::%s[%s]", d.ID(), dt)
	key := choice.DeriveName(seed, name)
	drawer := opcase.Drawer{Table: ops.Table(), Def: d}
	var programs []*program.Program
	for i, l := range opcase.Layouts {
		for j := range c.matrix.Cases {
			p, err := drawer.Arranged(choice.New(choice.Derive(key, uint64(i*c.matrix.Cases+j))), dt, l)
			if err != nil {
				for _, dir := range []coverage.Direction{coverage.Forward, coverage.Backward} {
					c.matrix.Set(o, dir, dt.String(), string(l), coverage.Impossible, err.Error())
				}
				continue
			}
			p.Name = name
			programs = append(programs, p)
			c.cells[name] = append(c.cells[name], cell{o, d, dt, l})
		}
	}
	test := fixed(name, programs)
	test.Graph = false // unless it is asked for
	return test
}

// end has nothing to do: cells are filled in case by case.
func (c *covering) end(*verdict.End) {}

// record fills in the cells of a case of the first candidate.
func (c *covering) record(rec *verdict.Record) {
	if rec.Candidate != c.subjects.candidates[0] {
		return
	}
	at := c.cells[rec.Test][rec.Index]
	v := rec.Verdict
	reason := firstSentence(v.Reason)
	set := func(dir coverage.Direction, s coverage.State, reason string) {
		if why := notDifferentiable(at.def, at.dtype); dir == coverage.Backward && why != "" {
			s, reason = coverage.None, why
		}
		c.matrix.Set(at.op, dir, at.dtype.String(), string(at.layout), s, reason)
	}
	both := func(s coverage.State) {
		set(coverage.Forward, s, reason)
		set(coverage.Backward, s, reason)
	}
	state := coverage.Misaligned
	switch v.Word {
	case verdict.Aligned:
		set(coverage.Forward, coverage.Aligned, "")
		s, why := at.backward(rec)
		set(coverage.Backward, s, why)
		return
	case verdict.Rejected:
		reason = "both refuse: " + firstSentence(rec.Reference.Class+": "+rec.Reference.Message)
		state = coverage.Refused
	case verdict.Unsupported:
		state = coverage.Beyond
	case verdict.Known:
		state = coverage.Known
	}
	if inBackward(rec) {
		set(coverage.Forward, coverage.Aligned, "")
		set(coverage.Backward, state, reason)
		return
	}
	both(state)
}

// inBackward reports whether a case that is not aligned is so in its gradients.
func inBackward(rec *verdict.Record) bool {
	v := rec.Verdict
	if v.Word == verdict.Rejected {
		return rec.Reference.Call == len(rec.Program.Calls)
	}
	if v.Where != nil {
		return v.Where.Part == backend.PartGrad
	}
	raised := func(o *backend.Outcome) bool {
		return o != nil && o.Status == backend.Raised && o.Call == len(rec.Program.Calls)
	}
	return raised(rec.Reference) || raised(rec.Outcome)
}

// backward says what an aligned case tells of the gradient.
func (at cell) backward(rec *verdict.Record) (coverage.State, string) {
	for _, s := range rec.Reference.Slots {
		if s.Part == backend.PartGrad && s.Tensor != nil {
			return coverage.Aligned, ""
		}
	}
	return coverage.None, "no gradient arrives at an argument of this call"
}

func notDifferentiable(d *op.Def, dt tensor.DType) string {
	if !dt.IsDifferentiable() {
		return "integers and booleans are not differentiable"
	}
	return gradcheck.None(d)
}

// firstSentence returns the first line of a message, cut where it is long.
func firstSentence(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 160 {
		line = string(runes[:160]) + "…"
	}
	return line
}

// finish fills in the second order and writes the file.
func (c *covering) finish(ctx context.Context) error {
	check := func(d *op.Def) []secondOrder { return secondOrders(d, c.cases.seed) }
	i := 0
	err := drive.Each(ctx, c.subjects.jobs, c.defs, check, func(cells []secondOrder) {
		for _, s := range cells {
			c.matrix.Set(c.matrix.Ops[i], coverage.Second, s.dtype.String(), string(s.layout), s.state, s.reason)
		}
		i++
	})
	if err != nil {
		return err
	}
	return whole(c.out, func(w io.Writer) error { return c.matrix.WriteFile(c.out, w) })
}

// secondOrder is a cell of the second order.
type secondOrder struct {
	dtype  tensor.DType
	layout opcase.Layout
	state  coverage.State
	reason string
}

// secondOrders checks the second order of an operator in every layout.
func secondOrders(d *op.Def, seed uint64) []secondOrder {
	var out []secondOrder
	for _, dt := range opDTypes {
		for _, l := range opcase.Layouts {
			s := secondOrder{dtype: dt, layout: l}
			s.state, s.reason = secondState(d, dt, l, seed)
			out = append(out, s)
		}
	}
	return out
}

func secondState(d *op.Def, dt tensor.DType, l opcase.Layout, seed uint64) (coverage.State, string) {
	if why := notDifferentiable(d, dt); why != "" {
		return coverage.None, why
	}
	switch {
	case dt != tensor.F64 && dt != tensor.C128:
		return coverage.Unmeasured, "the second order is checked by difference quotients, which need float64 or complex128"
	case l == opcase.ZeroSize:
		return coverage.Impossible, "a tensor without elements has no difference quotient"
	}
	o := gradcheck.Options{Seed: seed, Calls: 24, DTypes: []tensor.DType{dt}, Arrange: arrangement(l)}
	r := gradcheck.Check(ops.Table(), d, o)
	if l == opcase.ChannelsLast && r.Orders[1].Checked == 0 {
		o.Arrange = deepened(o.Arrange)
		r = gradcheck.Check(ops.Table(), d, o)
	}
	switch {
	case len(r.Findings) > 0:
		return coverage.Misaligned, firstSentence(r.Findings[0].String())
	case r.Orders[1].Checked > 0:
		return coverage.Aligned, ""
	case r.Refused != nil:
		return coverage.Refused, "such calls, or their gradients, are refused: " + firstSentence(r.Refused.Error())
	case l == opcase.Contiguous:
		return coverage.None, "the gradient is constant or has no derivative, as PyTorch's"
	}
	return coverage.Impossible, "no drawn call has such an argument whose gradient has a gradient"
}

// arrangement returns what gives a tensor a layout.
func arrangement(l opcase.Layout) func(*tensor.Tensor) (*tensor.Tensor, bool) {
	strided := func(t *tensor.Tensor, strides []int) (*tensor.Tensor, bool) {
		u := tensor.NewStrided(t.DType(), t.Shape(), strides)
		u.CopyFrom(t)
		return u, !u.IsContiguous()
	}
	switch l {
	case opcase.ChannelsLast:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
			if t.Dim() < 4 || t.Dim() > 5 {
				return t, false
			}
			return strided(t, tensor.ChannelsLast.Strides(t.Shape()))
		}
	case opcase.Permuted:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) { return strided(t, opcase.Reversed(t.Shape())) }
	case opcase.Gapped:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) { return strided(t, opcase.Spaced(t.Shape())) }
	case opcase.ZeroDim:
		return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
			if t.Len() == 0 {
				return t, false
			}
			return tensor.Scalar(t.DType(), t.At(0)), true
		}
	}
	return func(t *tensor.Tensor) (*tensor.Tensor, bool) { return t, true }
}

// deepened gives a tensor four dimensions first. Its elements are repeated,
// smaller each time: equal ones are where deviations and norms have no slope.
func deepened(arrange func(*tensor.Tensor) (*tensor.Tensor, bool)) func(*tensor.Tensor) (*tensor.Tensor, bool) {
	return func(t *tensor.Tensor) (*tensor.Tensor, bool) {
		shape := t.Shape()
		for len(shape) < 4 {
			shape = append([]int{2}, shape...)
		}
		u := tensor.New(t.DType(), shape...)
		if t.Len() == 0 {
			return t, false
		}
		for i := range u.Len() {
			u.Set(i, t.At(i%t.Len())*complex(1-float64(i/t.Len())/64, 0))
		}
		return arrange(u)
	}
}

// readCoverage reads a coverage file, the shipped one for no path, and keeps
// the operators asked for.
func readCoverage(path string, defs []*op.Def) (*coverage.Matrix, error) {
	m, err := coverageAt(path)
	if err != nil {
		return nil, err
	}
	var kept []*coverage.Op
	for _, d := range defs {
		if o := m.Op(d.ID()); o != nil {
			kept = append(kept, o)
		}
	}
	m.Ops = kept
	return m, nil
}

func coverageAt(path string) (*coverage.Matrix, error) {
	if path == "" {
		return coverage.Shipped()
	}
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := coverage.ReadFile(path, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; plumb ops cover run '*' --out FILE writes one", path, err)
	}
	return m, nil
}
