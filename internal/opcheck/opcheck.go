// Package opcheck checks an operator by what its literal promises, without a
// reference: each field of op.Def that promises something is held to it on calls
// that Sample draws, and on others that follow from these. What cannot be checked
// is reported beside what is wrong.
//
// A panic in a function of the literal is a finding of that field, with the call
// with which it came.
package opcheck

import (
	"fmt"
	"math/cmplx"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/op"
	"plumb/tensor"
)

// Finding is a promise of a literal that does not hold.
type Finding struct {
	Aspect string // what was checked: one of Aspects
	Field  string // of op.Def, that promises it
	Text   string // what is promised, and what is
	Input  string // the call with which it shows; "" where there is none
}

// String is "Field: text", and the call on the next line.
func (f Finding) String() string {
	text := f.Field + ": " + f.Text
	if f.Input != "" {
		text += "\n    with " + f.Input
	}
	return text
}

// Gap is a promise that could not be checked.
type Gap struct{ Field, Why string }

// String is "Field: why".
func (g Gap) String() string { return g.Field + ": " + g.Why }

// Report is what the checks of one operator came to.
type Report struct {
	ID        string
	DTypes    []tensor.DType // in which Sample's calls are legal
	Findings  []Finding
	Unchecked []Gap
	Checked   map[string]int // comparisons by aspect
}

// Of returns the findings of an aspect.
func (r *Report) Of(aspect string) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Aspect != aspect })
}

// Options says how much is drawn.
type Options struct {
	Seed  uint64
	Calls int // that are drawn per dtype; 0 means 16
}

// Aspects are the names of the checks, in their order.
var Aspects = []string{"literal", "sample", "inference", "kernels", "layouts", "sizes", "exact", "traits", "rejects", "in-place", "gradient", "sharding", "graphs", "law"}

// checker is the check of one operator.
type checker struct {
	*Report
	table  *op.Table
	def    *op.Def // of table: its functions tell where a panic came from
	drawer opcase.Drawer
	calls  []*drawn
	aspect string
	seed   uint64
	chosen []atomic.Bool // the kernels that ran
	place  func(op.Args, op.Place) op.Place
	mu     sync.Mutex // of Findings, while calls run at the same time
}

// drawn is a call that Sample gave, and what it computes.
type drawn struct {
	*op.Call
	dtype tensor.DType
	key   int
	out   []*tensor.Tensor
}

// Run checks an operator of the table.
func Run(table *op.Table, id string, o Options) *Report {
	r := &Report{ID: id, Checked: map[string]int{}}
	c := &checker{Report: r, seed: o.Seed}
	if o.Calls == 0 {
		o.Calls = 16
	}
	var err error
	if c.table, err = c.guarded(table, id); err != nil {
		r.Findings = append(r.Findings, Finding{Aspect: "literal", Field: "Sig", Text: err.Error()})
		return r
	}
	c.def = c.table.Def(id)
	c.drawer = opcase.Drawer{Table: c.table, Def: c.def}
	c.do("literal", c.literal)
	if c.def.Sample == nil {
		c.gap("Sample", "there is none, so that no call can be drawn: nothing else was checked")
		return r
	}
	c.do("sample", func() { c.draw(o.Calls) })
	if len(c.calls) == 0 {
		return r
	}
	for _, a := range []struct {
		name string
		run  func()
	}{
		{"sample", c.sample}, {"inference", c.inference}, {"kernels", c.kernels}, {"layouts", c.layouts}, {"sizes", c.sizes},
		{"exact", c.exact}, {"traits", c.traits}, {"rejects", c.rejects}, {"in-place", c.inPlace},
		{"gradient", c.gradient}, {"sharding", c.sharding}, {"graphs", c.graphs}, {"law", c.law},
	} {
		c.do(a.name, a.run)
	}
	c.do("kernels", c.idle)
	return r
}

// find reports a promise that does not hold: the first of each field and aspect,
// since what follows is mostly the same.
func (c *checker) find(field string, call *op.Call, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found(field) {
		return
	}
	f := Finding{Aspect: c.aspect, Field: field, Text: fmt.Sprintf(format, args...)}
	if call != nil {
		f.Input = Describe(call)
	}
	c.Findings = append(c.Findings, f)
}

// found reports whether the field has a finding of the aspect already.
func (c *checker) found(field string) bool {
	return slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Field == field && f.Aspect == c.aspect })
}

func (c *checker) gap(field, why string) {
	if g := (Gap{field, why}); !slices.Contains(c.Unchecked, g) {
		c.Unchecked = append(c.Unchecked, g)
	}
}

func (c *checker) count() { c.Checked[c.aspect]++ }

// do runs a check. What panics is the field's whose function it was.
func (c *checker) do(aspect string, check func()) {
	c.aspect = aspect
	c.try(nil, check)
}

// try runs a part of a check, a panic in which is a finding.
func (c *checker) try(call *op.Call, part func()) {
	defer func() {
		if p := recover(); p != nil {
			f := faultOf(p)
			c.find(f.field, call, "panics: %v (%s)", f.value, f.place)
		}
	}()
	part()
}

// fault is a panic in a function of a literal.
type fault struct {
	field string
	value any
	place string // file and line
}

// Error says what panicked, for those who recover it.
func (f *fault) Error() string { return fmt.Sprintf("%s panics: %v (%s)", f.field, f.value, f.place) }

// in marks a panic as one of the field's function.
func in(field string) {
	p := recover()
	switch p.(type) {
	case nil:
	default:
		if op.IsBuilding(p) {
			panic(p) // an error that ends a rule, no mistake
		}
		f := faultOf(p)
		if f.field == unknown {
			f.field = field
		}
		panic(f)
	}
}

const unknown = "operator"

func faultOf(p any) *fault {
	if f, ok := p.(*fault); ok {
		return f
	}
	return &fault{unknown, p, place(string(debug.Stack()))}
}

// place returns the file and line at which the stack panicked.
func place(stack string) string {
	lines := strings.Split(stack, "\n")
	at := -1
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") {
			at = i
		}
	}
	for _, l := range lines[at+1:] {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "/") && !strings.Contains(l, "/src/runtime/") {
			l, _, _ = strings.Cut(l, " +0x")
			return l[strings.LastIndexByte(l, '/')+1:]
		}
	}
	return "somewhere"
}

// draw draws the calls of every dtype: all of the first of the full precisions,
// fewer of the others.
func (c *checker) draw(n int) {
	c.DTypes = c.legal()
	if len(c.DTypes) == 0 {
		return
	}
	for _, dt := range c.DTypes {
		calls := n
		if dt != tensor.F32 && dt != tensor.F64 {
			calls = max(n/3, 2)
		}
		for i := range calls {
			c.try(nil, func() { c.drawOne(dt, i) })
		}
	}
}

// legal returns the dtypes in which Sample's calls are legal.
func (c *checker) legal() []tensor.DType {
	var legal []tensor.DType
	var why error
	for _, dt := range tensor.DTypes {
		if len(c.drawer.DTypes(dt)) > 0 {
			legal = append(legal, dt)
			continue
		}
		if dt == tensor.F32 {
			_, why = c.bind(dt, 0)
		}
	}
	if len(legal) == 0 {
		call, err := c.bind(tensor.F32, 0)
		if err == nil {
			if _, err = call.Infer(); err == nil && call.Def.View == nil {
				_, err = call.Def.Kernel(call.Args)
			}
		}
		if err == nil {
			err = why
		}
		c.find(refuser(call), call, "no call that Sample draws is legal in any dtype: %v", err)
	}
	return legal
}

// refuser names the field that refuses a call.
func refuser(call *op.Call) string {
	switch {
	case call == nil:
		return "Sample"
	case call.Def.Compose != nil:
		return "Compose"
	}
	if call.Def.Reject != nil && call.Def.Reject(call.Args) != nil {
		return "Reject"
	}
	if call.Def.Infer != nil && call.Def.Compose == nil {
		if _, bad := call.Infer(); bad != nil {
			return "Infer"
		}
		return "Kernels"
	}
	return "Sample"
}

func (c *checker) bind(dt tensor.DType, key int) (*op.Call, error) {
	return c.drawer.Bind(choice.New(choice.Derive(c.seed, uint64(key))), dt)
}

func (c *checker) drawOne(dt tensor.DType, key int) {
	call, err := c.bind(dt, key)
	if err != nil {
		c.find("Sample", nil, "draw %d in %s does not bind to %q: %v", key, dt, c.def.Sig, err)
		return
	}
	c.try(call, func() {
		call.Key = choice.Derive(c.seed, 7)
		if metas, err := call.Infer(); err == nil && c.def.Infer != nil && len(metas) > 0 {
			c.broadcasts(call, metas, "Infer")
		}
		out, err := c.run(call)
		switch {
		case err == nil:
			c.calls = append(c.calls, &drawn{call, dt, key, out})
		case !rejection(err):
			c.find("Kernels", call, "fails: %v", err)
		case dt == tensor.F32 || dt == tensor.F64:
			c.find("Sample", call, "draws a call that the operator refuses: %v", err)
		}
	})
}

// Describe writes a call in one line, with the elements of small tensors, and those of
// large ones that are not finite.
func Describe(call *op.Call) string {
	var parts []string
	for i, p := range call.Args.Sig.Params {
		parts = append(parts, p.Name+"="+text(call.Args.Vals[i]))
	}
	return call.Def.ID() + "(" + strings.Join(parts, ", ") + ")"
}

// maxWritten is how many elements of a tensor are written out.
const maxWritten = 12

// nonFinite writes the elements of a tensor that are not finite, in row-major order; ""
// where all are.
func nonFinite(t *tensor.Tensor) string {
	if !t.HasNonFinite() {
		return ""
	}
	var es []string
	for i := range t.Len() {
		if v := t.At(i); cmplx.IsNaN(v) || cmplx.IsInf(v) {
			if len(es) == maxWritten {
				es = append(es, "…")
				break
			}
			es = append(es, fmt.Sprintf("%d: %v", i, t.Number(i)))
		}
	}
	return "{" + strings.Join(es, ", ") + "}"
}

func text(v any) string {
	switch v := v.(type) {
	case *tensor.Tensor:
		s := v.String()
		if !v.IsContiguous() {
			s += fmt.Sprintf(" strides %v", v.Strides())
		}
		if v.Len() > maxWritten {
			return s + nonFinite(v)
		}
		var es []string
		for i := range v.Len() {
			es = append(es, fmt.Sprint(v.Number(i)))
		}
		return s + "{" + strings.Join(es, " ") + "}"
	case []op.Value:
		var es []string
		for _, e := range v {
			es = append(es, text(e))
		}
		return "[" + strings.Join(es, ", ") + "]"
	case op.Scalar:
		return fmt.Sprint(v.Any())
	case []op.Scalar:
		var es []string
		for _, e := range v {
			es = append(es, text(e))
		}
		return "[" + strings.Join(es, ", ") + "]"
	case string:
		return "'" + v + "'"
	case nil:
		return "None"
	}
	return fmt.Sprint(v)
}
