package opcase

import (
	"fmt"
	"slices"

	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// Layout is a way in which a call's tensors can lie in memory, or a size that
// layouts have to provide for.
type Layout string

// The layouts.
const (
	Contiguous   Layout = "contiguous"
	ChannelsLast Layout = "channels-last"
	Permuted     Layout = "permuted"
	Gapped       Layout = "gapped"
	ZeroDim      Layout = "0-d"
	ZeroSize     Layout = "zero-size"
)

// Layouts lists every layout.
var Layouts = []Layout{Contiguous, ChannelsLast, Permuted, Gapped, ZeroDim, ZeroSize}

// ImpossibleError says why no call of an operator has a dtype or layout.
type ImpossibleError struct{ Reason string }

// Error returns the reason.
func (e *ImpossibleError) Error() string { return e.Reason }

// arrangements is how many calls are tried for one that has a layout and that
// the operator takes.
const arrangements = 16

// Arranged draws a call, under the first public name, with an input of a dtype in a layout. Where Sample
// gives none, the shapes that it gives are changed alike, and the dtype of its
// floating tensors. The operator may refuse the call then, and nothing is
// differentiated; a call that it takes is preferred. The error is an
// *ImpossibleError when there is no such call to write.
func (d Drawer) Arranged(src *choice.Source, dt tensor.DType, l Layout) (*program.Program, error) {
	var refused *call
	var why error
	for try := range arrangements {
		c, err := d.sample(src, dt, firstName)
		if err != nil {
			return nil, err
		}
		if why = c.arrange(dt, l, try); why != nil {
			continue
		}
		if d.record(c) == nil {
			return c.Program, c.Validate()
		}
		refused = c
	}
	if refused == nil {
		return nil, why
	}
	refused.Backward = nil
	for i := range refused.Inputs {
		refused.Inputs[i].RequiresGrad = false
	}
	refused.Calls = []program.Call{refused.written()}
	return refused.Program, refused.Validate()
}

// arrange gives the call a dtype and a layout; the later the try, the more of
// what was drawn it changes.
func (c *call) arrange(dt tensor.DType, l Layout, try int) error {
	if err := c.typed(dt); err != nil {
		return err
	}
	if len(c.Inputs) == 0 {
		if l == Contiguous {
			return nil
		}
		return &ImpossibleError{"it takes no tensor"}
	}
	force := try >= arrangements/2
	switch l {
	case ZeroDim:
		return c.zeroDim(dt, force, try%2 == 0)
	case ZeroSize:
		return c.zeroSize(dt, force)
	case Contiguous:
		return nil
	}
	if force {
		c.deepenTo(map[Layout]int{ChannelsLast: 4, Permuted: 2, Gapped: 1}[l])
	}
	return c.restride(l)
}

// typed sees to it that something of the call has the dtype.
func (c *call) typed(dt tensor.DType) error {
	has := func(in program.Input) bool { return in.DType == dt }
	if slices.ContainsFunc(c.Inputs, has) || len(c.Inputs) == 0 && slices.Contains(c.arguments(), any(dt)) {
		return nil
	}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		if in.DType.IsFloat() || in.DType.IsComplex() {
			in.Fill.Data, in.DType = in.Fill.Data.Convert(dt), dt
			in.RequiresGrad = in.RequiresGrad && dt.IsDifferentiable()
		}
	}
	switch {
	case slices.ContainsFunc(c.Inputs, has):
		return nil
	case len(c.Inputs) == 0:
		return &ImpossibleError{"it takes neither a tensor nor a dtype"}
	}
	return &ImpossibleError{"none of its arguments is drawn in another dtype than its own"}
}

func (c *call) arguments() []any {
	all := slices.Clone(c.pos)
	for _, kw := range c.kws {
		all = append(all, kw.Value)
	}
	return all
}

// restride lays the inputs out in memory; at least one has to change.
func (c *call) restride(l Layout) error {
	changed := false
	for i := range c.Inputs {
		in := &c.Inputs[i]
		n := len(in.Shape)
		var strides []int
		switch {
		case l == ChannelsLast && (n == 4 || n == 5):
			strides = tensor.ChannelsLast.Strides(in.Shape)
		case l == Permuted && n >= 2:
			strides = permuted(in.Shape, c.src)
		case l == Gapped && n >= 1:
			strides = tensor.SpacedStrides(in.Shape, 2)
		}
		if strides != nil && !tensor.Contiguous.Matches(in.Shape, strides) {
			in.Strides, changed = strides, true
		}
	}
	if changed {
		return nil
	}
	return &ImpossibleError{fmt.Sprintf("no input can be %s", l)}
}

// deepenTo gives the inputs of most dimensions further ones in front, so that
// they have at least n.
func (c *call) deepenTo(n int) {
	most := 0
	for _, in := range c.Inputs {
		most = max(most, len(in.Shape))
	}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		if len(in.Shape) != most {
			continue
		}
		shape := slices.Clone(in.Shape)
		for len(shape) < n {
			shape = append([]int{2 + len(shape)%2}, shape...)
		}
		refit(in, shape)
	}
}

// zeroDim makes tensors of one element and no dimension of the inputs: of
// those of the dtype, or of all of them.
func (c *call) zeroDim(dt tensor.DType, force, all bool) error {
	drawn := slices.ContainsFunc(c.Inputs, func(in program.Input) bool { return in.DType == dt && len(in.Shape) == 0 })
	if drawn && !force {
		return nil
	}
	for i := range c.Inputs {
		if in := &c.Inputs[i]; all || in.DType == dt {
			refit(in, nil)
		}
	}
	return nil
}

// zeroSize takes a size of an input and makes it 0 wherever it occurs, or in
// that place of every input.
func (c *call) zeroSize(dt tensor.DType, everywhere bool) error {
	at := slices.IndexFunc(c.Inputs, func(in program.Input) bool { return in.DType == dt && len(in.Shape) > 0 })
	if at < 0 {
		c.deepenTo(1)
		at = 0
	}
	from := c.Inputs[at].Shape
	if len(from) == 0 {
		return &ImpossibleError{"no input has a dimension"}
	}
	dim := c.src.Index(len(from))
	size := from[dim]
	for i := range c.Inputs {
		in := &c.Inputs[i]
		shape := slices.Clone(in.Shape)
		for j := range shape {
			if everywhere && shape[j] == size || len(shape)-j == len(from)-dim && (shape[j] == size || shape[j] == 1) {
				shape[j] = 0
			}
		}
		refit(in, shape)
	}
	return nil
}
