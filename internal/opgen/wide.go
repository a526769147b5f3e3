package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/op"
	"plumb/tensor"
)

// wideRanges are tried in this order: the first in which an operator has a
// result and gradients that are numbers is its range.
var wideRanges = []span{{-100, 100}, {-30, 30}, {-1, 100}, {0, 100}, {-1, 1}, {1, 100}, {0, 1}, {0, 10}}

// wideElements is how many elements the tensors of a function of numbers have:
// some for each octave.
const wideElements = 56

// sizeless are traits of what computes nothing from the sizes of elements, or has no results to record.
const sizeless = op.Random | op.View | op.Dynamic | op.ShapeOnly | op.FollowsOrder | op.Classifies

// wide writes an entry whose elements are of all sizes that the operator takes,
// where its calls have generated elements. A device may be right near 0 alone.
func (w *configWriter) wide(d opcase.Drawer, target string, dts []tensor.DType) {
	if len(dts) == 0 || d.Def.Traits&sizeless != 0 || isUnsettled(d.Def.ID(), "wide") {
		return
	}
	if t := d.Def.Tol; t.OwnMagnitude && t.Class == op.Exact { // it copies
		return
	}
	for _, of := range d.Def.Domains {
		if of.FromSample() {
			return
		}
	}
	dts = slices.DeleteFunc(slices.Clone(dts), func(dt tensor.DType) bool { return dt == tensor.F16 }) // PyTorch 1.13 has few kernels for it
	r, tensors := largest(d, target, dts[0])
	if tensors == 0 {
		return
	}
	if !d.Def.ScalarFunction() || tensors > 1 {
		dts = dts[:1]
	}
	e := entry{Drawer: d, name: w.unused(strings.ReplaceAll(d.Def.ID(), ".", "_") + "_wide"), target: target, dtypes: dts, rows: []row{r}}
	for _, e.plain = range []bool{false, true} {
		for _, s := range wideRanges {
			e.scales = &s
			text, ok := e.text()
			if !ok || !strings.Contains(text, "scales=True") {
				return
			}
			if w.settled(text) {
				w.named[e.name] = true
				w.WriteString(text)
				return
			}
		}
	}
}

// largest is the sampled call with the most elements, not too many, and how many
// tensors of the dtype it takes.
func largest(d opcase.Drawer, target string, dt tensor.DType) (best row, tensors int) {
	most := 0
	for key := range uint64(8) {
		r, ok := sampled(d, target, dt, choice.Derive(2, key))
		elements, of := 0, 0
		for _, v := range r.args {
			if t, isTensor := v.(*tensor.Tensor); isTensor && t.DType() == dt {
				elements, of = elements+t.Len(), of+1
			}
		}
		if ok && elements > most && elements <= wideElements {
			best, most, tensors = r, elements, of
		}
	}
	return best, tensors
}

// settled says whether native computes each case of an entry, and its gradients, without a NaN.
func (w *configWriter) settled(entry string) bool {
	c, err := config.Load("plumb.py", []byte(opening+entry+"}\n"))
	if err != nil {
		panic(err) // what it wrote is wrong
	}
	for one := range c.Cases() {
		p, err := diopi.Program(one, 0)
		if err != nil {
			return false
		}
		out, err := w.native.Run(context.Background(), backend.NewJob(p))
		if err != nil || out.Status != backend.OK {
			return false
		}
		if slices.ContainsFunc(out.Values, valueHasNaN) || slices.ContainsFunc(out.Slots, func(s backend.Slot) bool { return s.Tensor != nil && hasNaN(s.Tensor) }) {
			return false
		}
	}
	return true
}

func valueHasNaN(v backend.Value) bool {
	return v.Tensor != nil && hasNaN(v.Tensor) || slices.ContainsFunc(v.Tuple, valueHasNaN)
}

// flat reports whether the tensors of a call have one shape: of a function of
// numbers any other will do.
func (r row) flat() bool {
	var shape []int
	for _, n := range r.names {
		t, ok := r.args[n].(*tensor.Tensor)
		if !ok {
			continue
		}
		if shape == nil {
			shape = t.Shape()
		}
		if !slices.Equal(shape, t.Shape()) {
			return false
		}
	}
	return true
}

// scaled is the generator of an argument of a wide entry.
func (e *entry) scaled(name string) string {
	s := *e.scales
	for p, of := range e.Def.Domains {
		if p.Name() == name && of == op.UnitRange {
			s = span{0, 1}
		}
	}
	return fmt.Sprintf("dict(fn='Genfunc.uniform', low=%s, high=%s, scales=True)", number(s.lo), number(s.hi))
}
