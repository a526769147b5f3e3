package gradcheck

import (
	"fmt"
	"slices"

	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Call is one drawn call of an operator.
type Call struct {
	table  *op.Table
	def    *op.Def
	pos    []any // tensors are *eager.Var
	kws    []op.Kwarg
	leaves []argument
	seed   uint64 // of what the operator draws itself

	arrange  func(*tensor.Tensor) (*tensor.Tensor, bool)
	arranged bool
}

// argument is a tensor argument that is differentiated by.
type argument struct {
	name string
	*eager.Var
}

// Draw draws call number i of an operator in a dtype. Fixed and mutated arguments, and
// those of other dtypes, are not differentiated by. The error is the
// operator's rejection.
func Draw(table *op.Table, d *op.Def, dt tensor.DType, seed uint64, i int) (*Call, error) {
	return draw(table, d, dt, seed, i, nil)
}

func draw(table *op.Table, d *op.Def, dt tensor.DType, seed uint64, i int, arrange func(*tensor.Tensor) (*tensor.Tensor, bool)) (*Call, error) {
	if d.Sample == nil {
		return nil, fmt.Errorf("operator %s is differentiable and has no Sample", d.ID())
	}
	key := choice.Derive(choice.DeriveName(seed, d.ID()), uint64(i))
	c := &Call{table: table, def: d, seed: key, arrange: arrange}
	params := d.Sigs()[0].Params
	for i, a := range d.Sample(&op.Sampler{Source: choice.New(key), DType: dt}) {
		if kw, ok := a.(op.Kwarg); ok {
			c.kws = append(c.kws, op.Kw(kw.Name, c.wrap(kw.Value, kw.Name)))
		} else {
			c.pos = append(c.pos, c.wrap(a, params[i].Name))
		}
	}
	_, err := c.apply(c.session())
	return c, err
}

// wrap makes variables of tensors.
func (c *Call) wrap(a any, param string) any {
	switch a := a.(type) {
	case *tensor.Tensor:
		differentiable := (a.DType() == tensor.F64 || a.DType() == tensor.C128) && !c.def.IsFixed(param) && !slices.Contains(c.def.Mutates, op.TensorArg(param))
		if differentiable && c.arrange != nil {
			changed := false
			a, changed = c.arrange(a)
			c.arranged = c.arranged || changed
		}
		v := eager.Leaf(a, differentiable)
		if differentiable {
			c.leaves = append(c.leaves, argument{param, v})
		}
		return v
	case []any:
		list := make([]any, len(a))
		for i := range a {
			list[i] = c.wrap(a[i], fmt.Sprintf("%s[%d]", param, i))
		}
		return list
	}
	return a
}

// session returns a session in which random operators repeat their draws.
func (c *Call) session() *eager.Session {
	s := eager.New(c.table)
	s.Seed(c.seed)
	return s
}

func (c *Call) apply(s *eager.Session) ([]op.Value, error) {
	return s.Apply(c.def.ID(), c.pos, c.kws)
}

// Program writes the call as a program that asks for its gradients. The
// operator is called by the name; "" stands for its first public name, or its
// id when it has none.
func (c *Call) Program(name string) *program.Program {
	if name == "" {
		name = program.OwnPrefix + c.def.ID()
		if len(c.def.Names) > 0 {
			name = c.def.Names[0]
		}
	}
	w := &writer{Program: &program.Program{Name: "gradcheck::" + c.def.ID(), Seed: c.seed}}
	call := program.Call{Result: "y", Target: name}
	for _, a := range c.pos {
		call.Args = append(call.Args, w.argument(a))
	}
	own, sig := c.def.Called(name), c.def.Sigs()[0]
	for _, kw := range c.kws {
		called := kw.Name
		if i := sig.Index(op.AnyArg(kw.Name)); i >= 0 {
			called = own.Params[i].Name
		}
		call.Kwargs = append(call.Kwargs, program.Kwarg{Name: called, Value: w.argument(kw.Value)})
	}
	w.Calls = append(w.Calls, call)
	w.backward(sig, c.seed)
	return w.Program
}

// Inputs returns the tensors of the program's inputs, in order.
func (c *Call) Inputs() []*tensor.Tensor {
	var out []*tensor.Tensor
	var add func(a any)
	add = func(a any) {
		switch a := a.(type) {
		case *eager.Var:
			out = append(out, a.Tensor)
		case []any:
			for _, e := range a {
				add(e)
			}
		}
	}
	for _, a := range c.pos {
		add(a)
	}
	for _, kw := range c.kws {
		add(kw.Value)
	}
	return out
}

type writer struct{ *program.Program }

func (w *writer) argument(a any) any {
	switch a := a.(type) {
	case *eager.Var:
		in := program.Input{
			Name: fmt.Sprintf("x%d", len(w.Inputs)), DType: a.DType(), Shape: a.Shape(), RequiresGrad: a.RequiresGrad(),
			Fill: program.Fill{Dist: program.Literal, Data: a.Contiguous()},
		}
		w.Inputs = append(w.Inputs, in)
		return program.Ref(in.Name)
	case []any:
		list := make(program.List, len(a))
		for i := range a {
			list[i] = w.argument(a[i])
		}
		return list
	case []int:
		list := make(program.List, len(a))
		for i := range a {
			list[i] = int64(a[i])
		}
		return list
	}
	return program.FromOp(a)
}

// backward asks for the gradients of every result.
func (w *writer) backward(sig *op.Sig, key uint64) {
	cotangent := program.Fill{Dist: program.Uniform, Lo: 0, Hi: 1, Key: key}
	if len(sig.Results) == 1 {
		w.Backward = []program.Backward{{Value: "y", Cotangent: cotangent, Auto: true}}
		return
	}
	for i := range sig.Results {
		name := fmt.Sprintf("e%d", i)
		w.Calls = append(w.Calls, program.Call{Result: name, Target: "operator.getitem", Args: []any{program.Ref("y"), int64(i)}})
		w.Backward = append(w.Backward, program.Backward{Value: program.Ref(name), Cotangent: cotangent, Auto: true})
	}
}
