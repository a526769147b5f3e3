// Package opcase draws programs from operators' literals alone: legal calls
// from Sample, under every public name, by position and by keyword, in every
// memory layout, and illegal ones that break one rule of a legal call. One
// test body serves the whole table.
package opcase

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Drawer draws calls of one operator.
type Drawer struct {
	Table *op.Table
	Def   *op.Def
	// InPlace draws calls by the names of in-place forms only, where there are any.
	InPlace bool
}

// call is a call before it is written down.
type call struct {
	*program.Program
	src    *choice.Source
	def    *op.Def
	table  *op.Table
	target string
	pos    []any // program arguments
	kws    []program.Kwarg
	params []string // the parameter of each of pos, then of kws
}

// DTypes returns the dtypes in which Sample's calls are legal, of those given.
func (d Drawer) DTypes(among ...tensor.DType) []tensor.DType {
	var legal []tensor.DType
	for _, dt := range among {
		if d.legal(dt) {
			legal = append(legal, dt)
		}
	}
	return legal
}

// probes is how many calls are tried before a dtype counts as illegal.
const probes = 4

// tries is how many calls are drawn before a test gives up: some arguments are
// legal in few dtypes.
const tries = 32

func (d Drawer) legal(dt tensor.DType) (ok bool) {
	if d.Def.Sample == nil {
		return false
	}
	for key := range uint64(probes) {
		bound, err := d.Bind(choice.New(choice.Derive(0, key)), dt)
		if err != nil {
			continue
		}
		if _, err = bound.Execute(); err == nil && holdsElements(bound.Args.AllValues()) {
			return true
		}
	}
	return false
}

// holdsElements reports whether a call has something to compute: where it has not, it may
// be legal in dtypes that it has no kernel for.
func holdsElements(inputs []op.Value) bool {
	return len(inputs) == 0 || slices.ContainsFunc(inputs, func(v op.Value) bool { return tensor.NumElements(v.Shape()) > 0 })
}

// Bind draws the arguments of a legal call and binds them.
func (d Drawer) Bind(src *choice.Source, dt tensor.DType) (*op.Call, error) {
	var pos []any
	var kws []op.Kwarg
	for _, a := range d.Def.Sample(&op.Sampler{Source: src, DType: dt}) {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	return d.Table.ResolveID(d.Def.ID(), pos, kws)
}

// Legal draws a call that the operator takes, and asks for its gradients. A
// layout that the call does not allow (a view of permuted memory), or a size of 0,
// is drawn again as a contiguous one, or another.
func (d Drawer) Legal(src *choice.Source, dt tensor.DType) (*program.Program, error) {
	var err error
	for try := range tries {
		var c *call
		name := d.anyName
		if try >= 2 {
			name = pureName
		}
		if c, err = d.sample(src, dt, name); err != nil {
			continue
		}
		if try == 0 {
			c.layouts()
		}
		if !c.specials(dt) {
			c.points(dt)
		}
		if try < 2 {
			c.keywords()
		}
		if try == 0 && c.src.Int(0, 16) == 0 && len(c.Inputs) > 0 {
			_ = c.zeroSize(dt, c.src.Bool()) // without a dimension it stays as it is
		}
		if err = d.record(c); err == nil {
			return c.Program, c.Validate()
		}
	}
	return nil, err
}

// anyName draws one of an operator's public names, of an in-place form where
// the drawer asks for these.
func (d Drawer) anyName(src *choice.Source, names []string) string {
	if forms := slices.DeleteFunc(slices.Clone(names), isPure); d.InPlace && len(forms) > 0 {
		names = forms
	}
	return names[src.Index(len(names))]
}

// pureName draws a name that changes no tensor, if there is one.
func pureName(src *choice.Source, names []string) string {
	names = pureOnes(names)
	return names[src.Index(len(names))]
}

// firstName is the first name that changes no tensor, if there is one.
func firstName(_ *choice.Source, names []string) string { return pureOnes(names)[0] }

func pureOnes(names []string) []string {
	if pure := slices.DeleteFunc(slices.Clone(names), op.InPlace); len(pure) > 0 {
		return pure
	}
	return names
}

func isPure(name string) bool { return !op.InPlace(name) }

// sample turns the literal's sample into inputs and arguments of one of the
// public names.
func (d Drawer) sample(src *choice.Source, dt tensor.DType, name func(*choice.Source, []string) string) (*call, error) {
	c := &call{Program: &program.Program{Seed: src.Key()}, src: src, def: d.Def, table: d.Table}
	args := d.Def.Sample(&op.Sampler{Source: src, DType: dt, Fresh: true})
	params := d.Def.Sigs()[0].Params
	for i, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			c.kws = append(c.kws, program.Kwarg{Name: kw.Name, Value: c.argument(kw.Value, kw.Name)})
			c.params = append(c.params, kw.Name)
			continue
		}
		if i >= len(params) {
			return nil, fmt.Errorf("operator %s: Sample gives %d arguments, the signature has %d parameters", d.Def.ID(), len(args), len(params))
		}
		c.pos = append(c.pos, c.argument(a, params[i].Name))
		c.params = append(c.params, params[i].Name)
	}
	names := c.usable()
	if len(names) == 0 {
		return nil, fmt.Errorf("operator %s has no public name", d.Def.ID())
	}
	c.target = name(src, names)
	c.rename()
	return c, nil
}

// rename names the arguments as they are under the target, without those that
// it does not take.
func (c *call) rename() {
	own := c.def.Called(c.target)
	if n := len(own.Params); n < len(c.pos) {
		c.pos, c.params = c.pos[:n], slices.Delete(c.params, n, len(c.pos))
	}
	for i, p := range c.params {
		if at := c.def.Sigs()[0].Index(op.AnyArg(p)); at >= 0 {
			c.params[i] = own.Params[at].Name
		}
	}
	for i := range c.kws {
		c.kws[i].Name = c.params[len(c.pos)+i]
	}
}

// usable returns the names under which the drawn arguments can be written: a
// method needs a tensor to be called on, a Python operator takes no keywords. An
// operator without a public name has its id.
func (c *call) usable() []string {
	if len(c.def.Names) == 0 {
		return []string{program.OwnPrefix + c.def.ID()}
	}
	var names []string
	for _, n := range c.def.Names {
		_, ref := first(c.pos).(program.Ref)
		switch {
		case (strings.HasPrefix(n, "Tensor.") || op.InPlace(n)) && !ref:
		case strings.HasPrefix(n, "operator.") && len(c.kws) > 0:
		default:
			names = append(names, n)
		}
	}
	return names
}

func first(vs []any) any {
	if len(vs) == 0 {
		return nil
	}
	return vs[0]
}

// argument makes an input of every tensor.
func (c *call) argument(v any, param string) any {
	switch v := v.(type) {
	case *tensor.Tensor:
		name := fmt.Sprintf("x%d", len(c.Inputs))
		c.Inputs = append(c.Inputs, program.Input{
			Name: name, DType: v.DType(), Shape: v.Shape(),
			Fill:         program.Fill{Dist: program.Literal, Data: v.Contiguous()},
			RequiresGrad: v.DType().IsDifferentiable() && !c.def.Traits.Has(op.NoGrad) && !c.def.IsFixed(param),
		})
		return program.Ref(name)
	case []any:
		l := program.List{}
		for _, e := range v {
			l = append(l, c.argument(e, param))
		}
		return l
	}
	return program.FromOp(v)
}

// layouts gives inputs other strides, their elements staying what they are.
func (c *call) layouts() {
	for i := range c.Inputs {
		in := &c.Inputs[i]
		switch n := len(in.Shape); {
		case n == 0 || c.src.Weighted(layoutWeights) == 0:
		case n >= 4 && n <= 5 && c.src.Bool():
			in.Strides = tensor.ChannelsLast.Strides(in.Shape)
		case c.src.Bool():
			in.Strides = permuted(in.Shape, c.src)
		default:
			in.Strides = tensor.SpacedStrides(in.Shape, 2)
		}
	}
}

// layoutWeights are those of a contiguous tensor and of any other layout.
var layoutWeights = []float64{1, 1}

// permuted returns the strides of a dense tensor whose dimensions lie in
// memory in a drawn order.
func permuted(shape []int, src *choice.Source) []int {
	left := make([]int, len(shape))
	for i := range left {
		left[i] = i
	}
	var order []int
	for len(left) > 0 {
		k := src.Index(len(left))
		order = append(order, left[k])
		left = slices.Delete(left, k, k+1)
	}
	slices.Reverse(order)
	return tensor.PermutedStrides(shape, order)
}

// Reversed returns the strides of a dense tensor whose dimensions lie in memory
// in reversed order.
func Reversed(shape []int) []int {
	order := make([]int, len(shape))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	return tensor.PermutedStrides(shape, order)
}

// Spaced returns the strides of every second element of a contiguous tensor.
func Spaced(shape []int) []int { return tensor.SpacedStrides(shape, 2) }

// keywords passes the arguments from a drawn place on by keyword.
func (c *call) keywords() {
	if strings.HasPrefix(c.target, "operator.") || strings.HasSuffix(c.target, "item__") || !c.src.Bool() {
		return
	}
	lo := 1
	if _, ref := first(c.pos).(program.Ref); ref && !strings.HasPrefix(c.target, "Tensor.") && !op.InPlace(c.target) {
		lo = 0 // a number that comes first is called self or exponent, by the overload
	}
	sig := c.def.Called(c.target)
	lo = max(lo, sig.Spread(strings.HasPrefix(c.target, "Tensor."))+1)
	if len(c.pos) <= lo || sig.Unnamed {
		return
	}
	from := int(c.src.Int(int64(lo), int64(len(c.pos)+1)))
	var moved []program.Kwarg
	for i := from; i < len(c.pos); i++ {
		moved = append(moved, program.Kwarg{Name: c.params[i], Value: c.pos[i]})
	}
	c.pos, c.kws = c.pos[:from], append(moved, c.kws...)
}

// written is the call as a program has it.
func (c *call) written() program.Call { return program.Written(c.def, "y", c.target, c.pos, c.kws) }

// record writes the call down and asks for the gradients of its results.
func (d Drawer) record(c *call) error {
	written := c.written()
	if d.Def.Traits.Has(op.Dynamic) {
		return d.recordDynamic(c, written)
	}
	symbols := map[program.Ref]*program.Symbol{}
	for i := range c.Inputs {
		s := c.Inputs[i].Symbol()
		symbols[s.Ref] = s
	}
	args, kwargs, err := written.OpArgs(func(r program.Ref) (any, error) { return symbols[r], nil })
	if err != nil {
		return err
	}
	bound, err := program.Resolve(d.Table, written.Target, args, kwargs)
	if err != nil {
		return err
	}
	if bound.InPlace {
		return c.recordInPlace(written, bound)
	}
	out, err := program.NewRecorder(c.Program, d.Table, "").Record(written, bound)
	if err != nil {
		return err
	}
	for _, v := range out {
		if s, ok := v.(*program.Symbol); ok && v.DType().IsDifferentiable() && c.wantsGrad() {
			c.backward(s.Ref)
		}
	}
	return nil
}

// recordDynamic records a call whose results follow from the elements of its
// inputs. Of several results none is differentiable.
func (d Drawer) recordDynamic(c *call, written program.Call) error {
	inputs := map[program.Ref]*tensor.Tensor{}
	for i := range c.Inputs {
		inputs[program.Ref(c.Inputs[i].Name)] = c.Inputs[i].Materialize()
	}
	args, kwargs, err := written.OpArgs(func(r program.Ref) (any, error) { return inputs[r], nil })
	if err != nil {
		return err
	}
	bound, err := program.Resolve(d.Table, written.Target, args, kwargs)
	if err != nil {
		return err
	}
	if bound.InPlace {
		return c.recordInPlace(written, bound)
	}
	metas, err := bound.Infer()
	if err != nil {
		return err
	}
	c.Calls = append(c.Calls, written)
	if len(metas) == 1 && metas[0].DType.IsDifferentiable() && c.wantsGrad() {
		c.backward("y")
	}
	return nil
}

func (c *call) backward(value program.Ref) {
	c.Backward = append(c.Backward, program.Backward{
		Value: value, Cotangent: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: c.src.Key()}, Auto: true,
	})
}

func (c *call) wantsGrad() bool {
	return slices.ContainsFunc(c.Inputs, func(in program.Input) bool { return in.RequiresGrad })
}
