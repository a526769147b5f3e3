package opcase

import (
	"strings"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// rules are the ways to break a legal call. Each returns false where the call
// has nothing to break in its way. What comes out may still be legal: then
// both sides have to compute the same.
var rules = []func(*call) bool{
	(*call).drop, (*call).surplus, (*call).unknown, (*call).retype, (*call).outOfRange,
	(*call).resize, (*call).deepen, (*call).flatten, (*call).recast, (*call).empty,
}

// Rules returns how many ways there are to break a call.
func Rules() int { return len(rules) }

// Illegal draws a legal call and breaks one rule of it, the first from the
// one of the index on that applies. Nothing is differentiated.
func (d Drawer) Illegal(src *choice.Source, dt tensor.DType, rule int) (*program.Program, error) {
	c, err := d.sample(src, dt, d.anyName)
	if err != nil {
		return nil, err
	}
	for i := range rules {
		if rules[(rule+i)%len(rules)](c) {
			break
		}
	}
	for i := range c.Inputs {
		c.Inputs[i].RequiresGrad = false
	}
	written := c.written()
	if _, ref := first(c.pos).(program.Ref); ref && op.InPlace(c.target) {
		c.changing(written)
	} else {
		c.Calls = []program.Call{written}
	}
	return c.Program, c.Validate()
}

// fixed returns how many leading arguments stay: without its tensor a call is
// none of PyTorch's.
func (c *call) fixed() int {
	if _, ok := first(c.pos).(program.Ref); ok {
		return 1
	}
	return 0
}

// pick draws one of the arguments that accept holds for; nil for none.
func (c *call) pick(accept func(any) bool) *any {
	var found []*any
	for i := c.fixed(); i < len(c.pos); i++ {
		if accept(c.pos[i]) {
			found = append(found, &c.pos[i])
		}
	}
	for i := range c.kws {
		if accept(c.kws[i].Value) {
			found = append(found, &c.kws[i].Value)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[c.src.Index(len(found))]
}

// syntax reports a target that Python calls for an expression, with as many
// arguments as that has. A method of this kind answers NotImplemented to others.
func (c *call) syntax() bool {
	return strings.HasPrefix(c.target, "operator.") || strings.Contains(c.target, ".__")
}

func (c *call) drop() bool {
	if len(c.pos) <= c.fixed() || c.syntax() || c.def.Called(c.target).Spread(strings.HasPrefix(c.target, "Tensor.")) == len(c.pos)-1 {
		return false // none of any number of arguments is no mistake
	}
	c.pos = c.pos[:len(c.pos)-1]
	return true
}

// surplus adds arguments, unless the last one takes any number of them.
func (c *call) surplus() bool {
	params := c.def.Sigs()[0].Params
	if c.syntax() {
		return false
	}
	if strings.HasPrefix(c.target, "Tensor.") && len(params) > 1 && params[1].Type.List {
		return false
	}
	for range len(params) {
		c.pos = append(c.pos, int64(1))
	}
	return true
}

func (c *call) unknown() bool {
	if c.syntax() {
		return false
	}
	c.kws = append(c.kws, program.Kwarg{Name: "surprise", Value: int64(1)})
	return true
}

// strangers are values of types that an argument may not have. Strings are
// none of them: PyTorch takes them for names of dimensions.
var strangers = []any{1.5, int64(2), true, program.List{"a"}, tensor.F32}

func (c *call) retype() bool {
	at := c.pick(func(any) bool { return true })
	if at == nil || c.syntax() {
		return false
	}
	n := len(strangers)
	if isInts(*at) {
		n -= 2
	}
	*at = strangers[c.src.Index(n)]
	return true
}

// extremes are integers that hardly any dimension, size or index may have.
var extremes = []int64{-1, 0, 7, -7, 13, -13}

func (c *call) outOfRange() bool {
	at := c.pick(isInts)
	if at == nil {
		return false
	}
	n := extremes[c.src.Index(len(extremes))]
	switch v := (*at).(type) {
	case program.Tuple:
		*at = replaced(v, c.src.Index(len(v)), n)
	case program.List:
		*at = program.List(replaced(program.Tuple(v), c.src.Index(len(v)), n))
	default:
		*at = n
	}
	return true
}

// isInts reports an integer or a list that begins with one.
func isInts(v any) bool {
	switch v := v.(type) {
	case int64:
		return true
	case program.Tuple:
		return len(v) > 0 && isInts(v[0])
	case program.List:
		return len(v) > 0 && isInts(v[0])
	}
	return false
}

func replaced(t program.Tuple, i int, v any) program.Tuple {
	u := append(program.Tuple{}, t...)
	u[i] = v
	return u
}

// reshape gives one input another shape.
func (c *call) reshape(f func(shape []int) []int) bool {
	if len(c.Inputs) == 0 {
		return false
	}
	in := &c.Inputs[c.src.Index(len(c.Inputs))]
	shape := f(append([]int{}, in.Shape...))
	if shape == nil {
		return false
	}
	refit(in, shape)
	return true
}

// refit gives an input another shape, its elements repeated as needed.
func refit(in *program.Input, shape []int) {
	old := in.Fill.Data
	data := tensor.New(in.DType, shape...)
	for i := range data.Len() {
		if old.Len() > 0 {
			data.Set(i, old.At(i%old.Len()))
		}
	}
	in.Shape, in.Fill.Data = shape, data
}

func (c *call) resize() bool {
	return c.reshape(func(shape []int) []int {
		if len(shape) == 0 {
			return nil
		}
		shape[c.src.Index(len(shape))]++
		return shape
	})
}

func (c *call) deepen() bool {
	return c.reshape(func(shape []int) []int { return append([]int{1 + c.src.Index(2)}, shape...) })
}

func (c *call) flatten() bool {
	return c.reshape(func(shape []int) []int {
		if len(shape) == 0 {
			return nil
		}
		return shape[1:]
	})
}

func (c *call) empty() bool {
	return c.reshape(func(shape []int) []int {
		if len(shape) == 0 {
			return nil
		}
		shape[c.src.Index(len(shape))] = 0
		return shape
	})
}

// otherDTypes are those that an input may be given in place of its own.
var otherDTypes = []tensor.DType{tensor.Bool, tensor.U8, tensor.I32, tensor.I64, tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.C64}

func (c *call) recast() bool {
	if len(c.Inputs) == 0 {
		return false
	}
	in := &c.Inputs[c.src.Index(len(c.Inputs))]
	d := otherDTypes[c.src.Index(len(otherDTypes))]
	if d == in.DType {
		return false
	}
	in.Fill.Data, in.DType = in.Fill.Data.Convert(d), d
	return true
}
