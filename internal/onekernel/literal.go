package onekernel

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/spell"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Literal draws signatures from an operator's definition: a sample of it, whose
// equal sizes are one symbol.
type Literal struct {
	Table  *op.Table
	Def    *op.Def
	Target string
	// Takes are the reference's parameters that the kernel has; those that it has
	// not keep their default, or what Fixed says.
	Takes []string
	Fixed map[string]any
	// Needs are those of Takes that the kernel has no default for: a tensor is never None there.
	Needs map[string]bool
}

// Choose returns the operator that a public name means for a kernel: of several
// the first that is drawn and whose every required tensor the kernel takes.
func Choose(table *op.Table, target string) (*op.Def, error) {
	for _, d := range table.Lookup(target) {
		if d.Sample != nil {
			return d, nil
		}
	}
	var names []string
	for _, d := range table.Defs() {
		names = append(names, d.Names...)
	}
	return nil, fmt.Errorf("%s is no operator of the table%s; plumb ops list prints them, and --inputs says what any function takes", target, spell.Guess(target, names))
}

// Params returns the names of the parameters under the target, and of them those
// of tensors, and how many have to be given.
func (l *Literal) Params() (names, tensors []string, required int) {
	for _, p := range l.Def.Called(l.Target).Params {
		names = append(names, p.Name)
		if p.Type.Kind == op.KTensor {
			tensors = append(tensors, p.Name)
		}
		if !p.HasDefault {
			required++
		}
	}
	return names, tensors, required
}

// lastDims is the parameter for the sizes that a norm works along, the last of its input.
const lastDims = "normalized_shape"

// samples is how many samples are drawn, of which the one with the most different
// sizes says most about which sizes belong together; every second draw takes any.
const samples = 6

// Draw returns the signature of a drawn call in a dtype.
func (l *Literal) Draw(src *choice.Source, dt tensor.DType) (*Signature, error) {
	drawer := opcase.Drawer{Table: l.Table, Def: l.Def}
	var best *Signature
	var last error
	few := src.Index(2) == 0 // also the calls with few sizes
	for range samples {
		call, err := drawer.Bind(src, dt)
		if err != nil {
			last = err
			continue
		}
		sig, err := l.generalise(call, dt)
		if err != nil {
			last = err
			continue
		}
		if best == nil || len(sig.Symbols()) > len(best.Symbols()) {
			best = sig
		}
		if few {
			break
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%s: %w", l.Target, last)
	}
	return best, nil
}

// generalise makes symbols of the sizes of a call.
func (l *Literal) generalise(call *op.Call, dt tensor.DType) (*Signature, error) {
	sig := &Signature{}
	symbols := map[int]string{}
	sizes := func(shape []int, fixed bool) []Size {
		dims := make([]Size, len(shape))
		for i, n := range shape {
			if n < 2 || fixed {
				dims[i] = number(n)
				continue
			}
			if symbols[n] == "" {
				symbols[n] = string(rune('A' + len(symbols)))
			}
			dims[i] = symbol(symbols[n])
		}
		return dims
	}
	sampled := slices.ContainsFunc(call.Args.Sig.Params, func(p op.Param) bool { return l.domain(p.Name).FromSample() })
	named := l.Def.Called(l.Target).Params
	for i, p := range call.Args.Sig.Params[:min(len(named), len(call.Args.Vals))] {
		name := named[i].Name
		takes := slices.Contains(l.Takes, name)
		arg := Arg{Name: name, Keyword: named[i].KwOnly || i >= l.positional(named)}
		switch v := call.Args.Vals[i].(type) {
		case op.Value:
			if !takes && p.HasDefault {
				continue
			}
			arg.Inputs = []int{l.input(sig, name, p.Name, v, dt, sizes, sampled)}
		case []op.Value:
			arg.IsList = true
			for k, e := range v {
				arg.Inputs = append(arg.Inputs, l.input(sig, fmt.Sprintf("%s%d", name, k), p.Name, e, dt, sizes, sampled))
			}
		default:
			fixed, given := l.Fixed[name]
			switch {
			case given:
				v = fixed
			case v == nil && p.Type.Kind == op.KTensor && l.Needs[name]:
				return nil, fmt.Errorf("the kernel takes no None for %s", name)
			case !takes && p.HasDefault:
				continue
			case !takes && p.Type.Kind == op.KInt && name == "dim":
				v = -1
			case !takes && name == lastDims:
				if dims, _ := v.([]int); len(dims) != 1 {
					return nil, fmt.Errorf("the kernel has no parameter for %s, and works along the last dimension", name)
				}
			case !takes:
				return nil, fmt.Errorf("the kernel has no parameter for %s, which %s needs: --fix %s=VALUE says which it computes with", name, l.Target, name)
			}
			if shape, ok := v.([]int); ok && strings.Contains(name, "shape") {
				arg.Sizes = sizes(shape, false)
			}
			arg.Choices = []any{program.FromOp(v)}
			if flag, ok := v.(bool); ok && takes && !given { // beside arguments with which no sample has it
				arg.Choices = append(arg.Choices, flag, !flag)
			}
		}
		sig.Args = append(sig.Args, arg)
	}
	if len(sig.Inputs) == 0 {
		return nil, fmt.Errorf("%s takes no tensor", l.Target)
	}
	return sig, nil
}

// positional returns how many parameters stand before the last tensor, it included.
func (l *Literal) positional(params []op.Param) int {
	last := 0
	for i, p := range params {
		if p.Type.Kind == op.KTensor {
			last = i + 1
		}
	}
	return last
}

func (l *Literal) domain(param string) op.Domain { return l.Def.Domains[op.TensorArg(param)] }

// input adds an input like a sampled tensor, and returns its place.
func (l *Literal) input(sig *Signature, name, param string, v op.Value, dt tensor.DType, sizes func([]int, bool) []Size, sampled bool) int {
	in := Input{Name: name, DType: v.DType(), Dims: sizes(v.Shape(), sampled), NoGrad: l.Def.IsFixed(param) || l.domain(param) == op.Constant}
	t, _ := v.(*tensor.Tensor)
	if in.DType == dt {
		in.DType = tensor.Invalid
	}
	switch {
	case t == nil:
	case l.domain(param).FromSample():
		in.Literal = t.Contiguous()
	case l.domain(param) == op.UnitRange:
		in.Lo, in.Hi, in.Bounded = 0, 1, true
	case !in.DType.IsComplex() && in.DType != tensor.Bool && t.Len() > 0:
		lo, hi := ends(t)
		if !in.isFloat() {
			in.Lo, in.Hi, in.Bounded = lo, hi+1, true
			in.Among = values(t)
		} else if lo >= 0 {
			in.Lo, in.Hi, in.Bounded = lo, max(hi, lo+1), true
		}
	}
	sig.Inputs = append(sig.Inputs, in)
	return len(sig.Inputs) - 1
}

// ends returns the least and the greatest element.
func ends(t *tensor.Tensor) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range t.Len() {
		v := real(t.At(i))
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// Legal reports whether the operator takes a call, as far as shapes tell.
func Legal(table *op.Table, p *program.Program) bool {
	symbols := map[program.Ref]*program.Symbol{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		symbols[s.Ref] = s
	}
	args, kwargs, err := p.Calls[0].OpArgs(func(r program.Ref) (any, error) { return symbols[r], nil })
	if err != nil {
		return false
	}
	bound, err := program.Resolve(table, p.Calls[0].Target, args, kwargs)
	if err != nil {
		return false
	}
	if bound.Def.Traits.Has(op.Dynamic) {
		return true
	}
	metas, err := bound.Infer()
	if err != nil {
		return false
	}
	room := mostOfResult
	for i := range p.Inputs {
		room = max(room, tensor.NumElements(p.Inputs[i].Symbol().Shape())) // of calls to be timed
	}
	return !slices.ContainsFunc(metas, func(m op.Meta) bool { return tensor.NumElements(m.Shape) > room })
}

// mostOfResult is how many elements a result may have that is larger than the arguments, as that
// of diag_embed is and that of outer.
const mostOfResult = 1 << 22

// few is how many values of an integer sample are taken for all that there are.
const few = 3

// values lists the values of a tensor, nil where they are more than a few.
func values(t *tensor.Tensor) []float64 {
	var all []float64
	for i := range t.Len() {
		if v := real(t.At(i)); !slices.Contains(all, v) {
			if all = append(all, v); len(all) > few {
				return nil
			}
		}
	}
	slices.Sort(all)
	return all
}
