package plumb

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"plumb/api"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Typed returns a tensor for the functions of package api, which then record
// into the case:
//
//	y, err := api.Conv2D(x.Typed(), w.Typed(), api.Conv2DOptions{Stride: []int{2}})
//
// The error is Plumb's own refusal. The call stays in the case all the same:
// Must ends the draw there, and the reference has to refuse it as well. The
// shape and dtype of a result are those that Plumb infers.
func (v *Value) Typed() *api.Tensor {
	if v.known() != aTensor {
		v.p.fail(fmt.Errorf("%s is no tensor", v.ref))
	}
	return v.p.Session().Recorded(program.NewSymbol(v.ref, v.metas[0]))
}

// Dynamic returns the value of a typed tensor of the case.
func (p *T) Dynamic(t *api.Tensor) *Value {
	if t == nil {
		p.fail(errors.New("a nil *api.Tensor is no value"))
	}
	s, ok := t.Value().(*program.Symbol)
	if !ok || p.values[s.Ref] == nil {
		p.fail(errors.New("a tensor of another session cannot be used: make it of a value by Typed, or by Session"))
	}
	return p.values[s.Ref]
}

// Must returns v. Where a typed call was refused it ends the draw, whose last
// call is then the refused one.
func Must[V any](v V, err error) V {
	NoError(err)
	return v
}

// NoError is Must for a typed call of several results.
func NoError(err error) {
	var refused *op.Error
	switch {
	case err == nil:
	case errors.As(err, &refused):
		panic(stop{})
	default:
		panic(stop{fmt.Errorf("%s%w", position(), err)})
	}
}

// recorder takes the calls of typed functions into a case.
type recorder struct{ p *T }

// Literal makes an input of a tensor.
func (r recorder) Literal(t *tensor.Tensor) op.Value {
	v := r.p.Literal(t)
	return program.NewSymbol(v.ref, v.metas[0])
}

// Observe returns the reference's value.
func (r recorder) Observe(v op.Value) (*tensor.Tensor, bool) {
	x := r.p.observe(v.(*program.Symbol).Ref)
	if x.Tensor != nil {
		return x.Tensor, x.RequiresGrad
	}
	switch n := x.Plain.(type) {
	case bool:
		return tensor.Scalar(tensor.Bool, op.ScalarOf(n).Complex()), false
	case int64:
		return tensor.Scalar(tensor.I64, complex(float64(n), 0)), false
	case float64:
		return tensor.Scalar(tensor.F64, complex(n, 0)), false
	case complex128:
		return tensor.Scalar(tensor.C128, n), false
	}
	r.p.fail(fmt.Errorf("%s is no tensor", v.(*program.Symbol).Ref))
	return nil, false
}

// Record notes a call by one of the operator's public names.
func (r recorder) Record(name string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	c, err := r.p.named(name, args, kwargs)
	if err != nil {
		return nil, err
	}
	v := r.p.record(c)
	var refused *op.Error
	if errors.As(v.refusal, &refused) {
		return nil, refused
	}
	results := []*Value{v}
	if v.known() == aTuple {
		results = v.Unpack()
	}
	out := make([]op.Value, len(results))
	for i, x := range results {
		var m op.Meta
		if x.known() == aTensor || len(x.metas) == 1 {
			m = x.metas[0]
		}
		out[i] = program.NewSymbol(x.ref, m)
	}
	return out, nil
}

// named writes a call of an operator, given by id or by public name, as PyTorch
// has it: required arguments by position, the others by keyword. Where a public
// name means another operator without the arguments that are left out, these
// are written too.
func (p *T) named(name string, args []any, kwargs []op.Kwarg) (program.Call, error) {
	d := p.table.Def(name)
	if d == nil {
		return p.plain(name, args, kwargs), nil
	}
	given, err := arguments(d, args, kwargs)
	if err != nil {
		return program.Call{}, err
	}
	for _, all := range []map[string]any{given, withDefaults(d, given)} {
		for _, n := range preferred(d, given) {
			c, ok := written(d, n, all)
			if !ok {
				continue
			}
			if bound, err := p.bind(&c); err != nil || bound.Def == d {
				return c, nil
			}
		}
	}
	return p.plain(program.OwnPrefix+name, args, kwargs), nil
}

// arguments returns the arguments of a call by the names of their parameters,
// in the first signature that takes them, else in the main one.
func arguments(d *op.Def, args []any, kwargs []op.Kwarg) (map[string]any, error) {
	sig := d.Sigs()[0]
	for _, s := range d.Sigs() {
		if _, err := s.Bind(args, kwargs, false); err == nil {
			sig = s
			break
		}
	}
	if len(args) > len(sig.Params) {
		return nil, op.TypeError("%s takes %d arguments but %d were given", sig.Name, len(sig.Params), len(args))
	}
	given := map[string]any{}
	for i, a := range args {
		given[sig.Params[i].Name] = program.FromOp(a)
	}
	for _, kw := range kwargs {
		given[kw.Name] = program.FromOp(kw.Value)
	}
	return given, nil
}

// withDefaults adds the defaults of the arguments that are left out.
func withDefaults(d *op.Def, given map[string]any) map[string]any {
	all := map[string]any{}
	for _, p := range d.Sigs()[0].Params {
		if v, ok := given[p.Name]; ok {
			all[p.Name] = v
		} else if p.HasDefault {
			all[p.Name] = program.FromOp(p.Default)
		}
	}
	return all
}

// plain writes a call with its arguments as they are.
func (p *T) plain(name string, args []any, kwargs []op.Kwarg) program.Call {
	c := program.Call{Target: name}
	for _, a := range args {
		c.Args = append(c.Args, program.FromOp(a))
	}
	for _, kw := range kwargs {
		c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: program.FromOp(kw.Value)})
	}
	return c
}

// preferred returns the operator's names in the order in which they are tried:
// functions before methods and Python operators, which come first when the
// first argument is a number.
func preferred(d *op.Def, given map[string]any) []string {
	order := []string{"torch.", "Tensor.", "operator."}
	if _, tensor := given[d.Sigs()[0].Params[0].Name].(program.Ref); !tensor {
		order = []string{"operator.", "torch."}
	}
	var names []string
	for _, prefix := range order {
		for _, n := range d.Names {
			if strings.HasPrefix(n, prefix) && !op.InPlace(n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// written writes a call by one public name; false when that cannot take the
// arguments.
func written(d *op.Def, name string, given map[string]any) (program.Call, bool) {
	own, main := d.Called(name), d.Sigs()[0]
	positional := own.Unnamed || strings.HasPrefix(name, "operator.")
	var args []any
	var kwargs []program.Kwarg
	placed, gap := 0, false
	for i, param := range own.Params {
		v, ok := given[main.Params[i].Name]
		if !ok {
			gap = true
			continue
		}
		placed++
		switch {
		case !gap && !param.KwOnly && (positional || !param.HasDefault):
			args = append(args, v)
		case positional:
			return program.Call{}, false
		default:
			gap = true
			kwargs = append(kwargs, program.Kwarg{Name: param.Name, Value: v})
		}
	}
	if strings.HasPrefix(name, "Tensor.") && (len(args) == 0 || !isRef(args[0])) {
		return program.Call{}, false
	}
	return program.Written("", name, slices.Clip(args), kwargs), placed == len(given)
}

func isRef(v any) bool { _, ok := v.(program.Ref); return ok }
