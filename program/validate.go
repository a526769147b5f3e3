package program

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plumb/tensor"
)

// MaxInputBytes bounds the storage of one input.
const MaxInputBytes = 16 << 30

// Validate returns an error when the program is not valid: a name is used before
// it is defined or defined twice, an input's description contradicts itself,
// or a method does not fit its receiver.
func (p *Program) Validate() error {
	module := map[Ref]bool{}
	define := func(name string, isModule bool) error {
		if _, dup := module[Ref(name)]; dup || !isName(name) {
			return fmt.Errorf("%q is not a new name", name)
		}
		module[Ref(name)] = isModule
		return nil
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if err := define(in.Name, false); err != nil {
			return err
		}
		if err := in.check(); err != nil {
			return fmt.Errorf("input %s: %w", in.Name, err)
		}
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		for _, s := range c.Scopes {
			if !IsScope(s.Target) {
				return fmt.Errorf("%s: %s is no context", c.Result, s.Target)
			}
		}
		if err := c.check(module); err != nil {
			return fmt.Errorf("%s: %w", c.Result, err)
		}
		if err := define(c.Result, IsModule(c.Target)); err != nil {
			return err
		}
	}
	for _, w := range p.Backward {
		if !w.Cotangent.streams() {
			return fmt.Errorf("backward of %s: a cotangent cannot be %s", w.Value, w.Cotangent.Dist)
		}
		if _, ok := module[w.Value]; !ok {
			return fmt.Errorf("backward of %s, which is not defined", w.Value)
		}
	}
	if !p.Second.streams() {
		return fmt.Errorf("a second cotangent cannot be %s", p.Second.Dist)
	}
	return nil
}

func (in *Input) check() error {
	if err := tensor.CheckShape(in.DType, in.Shape); err != nil {
		return err
	}
	size := tensor.NumElements(in.Shape)
	if in.Strides != nil {
		if len(in.Strides) != len(in.Shape) {
			return fmt.Errorf("%d strides for %d dimensions", len(in.Strides), len(in.Shape))
		}
		for i, s := range in.Strides {
			if s < 0 || s > tensor.MaxElements || in.Shape[i] > 1 && s > MaxInputBytes/in.Shape[i] {
				return fmt.Errorf("stride %d is out of range", s)
			}
		}
		size = tensor.Extent(in.Shape, in.Strides)
	}
	if size > MaxInputBytes/in.DType.Size() {
		return fmt.Errorf("%s%s is larger than %d bytes", in.DType, tensor.ShapeString(in.Shape), MaxInputBytes)
	}
	if in.RequiresGrad && !in.DType.IsDifferentiable() {
		return fmt.Errorf("%s cannot require a gradient", in.DType)
	}
	if err := in.Fill.check(); err != nil {
		return err
	}
	if err := in.Fill.fits(in.Shape); err != nil {
		return err
	}
	if d := in.Fill.Data; in.Fill.Dist == Literal && (d == nil || d.DType() != in.DType || !slices.Equal(d.Shape(), in.Shape)) {
		return fmt.Errorf("literal data does not fit %s%s", in.DType, tensor.ShapeString(in.Shape))
	}
	return nil
}

// check holds a distribution to what it can be combined with.
func (f *Fill) check() error {
	switch {
	case f.Scales && (f.Dist != Uniform || !(f.Lo < f.Hi)):
		return fmt.Errorf("scales are for uniform elements of a range")
	case f.edged() && f.Dist != Uniform && f.Dist != Integer:
		return fmt.Errorf("%s has neither kinks nor edge values", f.Dist)
	case f.edged() && (f.Real || f.Density != 0):
		return fmt.Errorf("kinks and edge values go with neither real nor density")
	case !(f.Density >= 0 && f.Density <= 1):
		return fmt.Errorf("density %v is not between 0 and 1", f.Density)
	}
	return nil
}

// streams reports whether f can describe a cotangent.
func (f *Fill) streams() bool {
	return f.Dist == "" || (f.Dist == Uniform || f.Dist == Integer) && !f.Real && f.Density == 0
}

// maxColumns bounds the matrix that a gram is the product of.
const maxColumns = 1 << 20

// fits returns an error when elements of a shape cannot be had.
func (f *Fill) fits(shape []int) error {
	if n := len(shape); f.Dist == Gram && (n < 2 || shape[n-1] != shape[n-2]) {
		return fmt.Errorf("gram needs square matrices, not %s", tensor.ShapeString(shape))
	}
	if f.Dist == Gram && !(f.Hi >= 0 && f.Hi <= maxColumns && f.Hi == math.Trunc(f.Hi)) {
		return fmt.Errorf("gram of %v columns", f.Hi)
	}
	return nil
}

func (c *Call) check(module map[Ref]bool) (err error) {
	used := func(r Ref) {
		if _, ok := module[r]; !ok && err == nil {
			err = fmt.Errorf("%s is not defined", r)
		}
	}
	c.EachRef(used)
	kind, _, _ := strings.Cut(c.Target, ".")
	if err != nil || kind != "Tensor" && kind != "Module" {
		return err
	}
	if len(c.Args) == 0 {
		return fmt.Errorf("%s has no receiver", c.Target)
	}
	r, ok := c.Args[0].(Ref)
	if !ok {
		return fmt.Errorf("the receiver of %s is not a named value", c.Target)
	}
	if c.Target != "Module.__call__" && module[r] != (kind == "Module") {
		return fmt.Errorf("%s does not fit its receiver %s", c.Target, r)
	}
	return nil
}

func isName(s string) bool {
	return s != "" && isLetter(s[0]) && span(s, func(c byte) bool { return isLetter(c) || isDigit(c) }) == len(s)
}
