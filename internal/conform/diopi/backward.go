package diopi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"plumb/internal/conform/config"
	"plumb/program"
	"plumb/tensor"
)

// BackwardSuffix makes of a function's name that of the function that computes
// its gradients, as in batch_norm_backward.
const BackwardSuffix = "_backward"

// Backward returns the case of the function that computes the gradients of p,
// the [Program] of the case: one call by the keywords of the case, with
// grad_outputs, the list of cotangents, and what saved_args names of the outputs.
// It returns the gradients of the inputs that want one, of as many inputs as
// their names, in order. The cotangents are those of what p differentiates;
// tensors are the value of a call of p and the outputs of the case, by the
// reference.
func Backward(c *config.Case, seed uint64, p *program.Program, value func(program.Ref) *tensor.Tensor, outputs []*tensor.Tensor) (*program.Program, []string, error) {
	b, err := newBuild(c, seed, false)
	if err != nil {
		return nil, nil, err
	}
	of := b.constants()
	if err := b.cotangents(p, value); err != nil {
		return nil, nil, err
	}
	saved, _ := c.Item.Get("saved_args").(*config.Dict)
	for name, at := range savedArgs(saved) {
		if at < 0 || at >= len(outputs) || outputs[at] == nil {
			return nil, nil, b.fail("saved_args names output %d of %d", at, len(outputs))
		}
		b.set(name, b.literal(name, outputs[at]))
	}
	b.name([]any{b.call(c.Interface+"."+c.Function+BackwardSuffix, b.args)})
	q, err := b.done()
	return q, of, err
}

// AsOne returns the case of a function of DIOPI's interface, of which p is the
// composition, as one call by the keywords of the case, and what its results are: see
// backend.Function; what the config makes sparse is so. Further keywords are outputs, the dtypes and shapes of the outputs
// of p, None for one that it has not, grad_outputs, the cotangents of what p
// differentiates, and grad_inputs, the names of the inputs whose gradients are wanted.
// value is the value of a call of p, by the reference.
func AsOne(c *config.Case, seed uint64, p *program.Program, value func(program.Ref) *tensor.Tensor) (*program.Program, []string, error) {
	b, err := newBuild(c, seed, true)
	if err != nil {
		return nil, nil, err
	}
	outputs, returns := program.List{}, []string{}
	for i := range p.Calls {
		name := p.Calls[i].Result
		at, ok := Position(name)
		y := value(program.Ref(name))
		if !ok || y == nil {
			continue
		}
		for len(outputs) <= at {
			outputs, returns = append(outputs, nil), append(returns, "")
		}
		outputs[at], returns[at] = program.Tuple{y.DType(), sizes(y.Shape()...)}, name
	}
	b.set("outputs", outputs)
	of := b.constants()
	if len(p.Backward) > 0 {
		if err := b.cotangents(p, value); err != nil {
			return nil, nil, err
		}
		returns = append(returns, of...)
		names := program.List{}
		for _, name := range of {
			names = append(names, name)
		}
		b.set("grad_inputs", names)
	}
	b.name([]any{b.call(cmp.Or(c.Interface, "CustomizedTest")+"."+c.Function, b.args)})
	q, err := b.done()
	return q, returns, err
}

// constants makes inputs that want a gradient want none, and returns their names.
func (b *build) constants() (of []string) {
	for i := range b.p.Inputs {
		if in := &b.p.Inputs[i]; in.RequiresGrad {
			of = append(of, in.Name)
			in.RequiresGrad = false
		}
	}
	return of
}

// cotangents adds those of what p differentiates as a list.
func (b *build) cotangents(p *program.Program, value func(program.Ref) *tensor.Tensor) error {
	grads := program.List{}
	for i, back := range p.Backward {
		y := value(back.Value)
		if y == nil {
			return b.fail("what it differentiates has no tensor %s", back.Value)
		}
		grads = append(grads, b.literal("grad_outputs"+strconv.Itoa(i), cotangent(&back.Cotangent, y)))
	}
	b.set("grad_outputs", grads)
	return nil
}

// literal adds a tensor as an input, under a name like the one given.
func (b *build) literal(name string, t *tensor.Tensor) program.Ref {
	name = b.p.Unused(name)
	b.p.Inputs = append(b.p.Inputs, program.Input{
		Name: name, DType: t.DType(), Shape: slices.Clone(t.Shape()), Fill: program.Fill{Dist: program.Literal, Data: t.Contiguous()},
	})
	return program.Ref(name)
}

// savedArgs are the outputs that a backward function takes, by keyword.
func savedArgs(d *config.Dict) map[string]int {
	out := map[string]int{}
	if d == nil {
		return out
	}
	for _, k := range d.Keys() {
		if i, ok := d.Get(k).(config.Int); ok {
			out[k] = int(i)
		}
	}
	return out
}

// cotangent is a cotangent of a value.
func cotangent(f *program.Fill, of *tensor.Tensor) *tensor.Tensor {
	t := tensor.New(of.DType(), of.Shape()...)
	if of.DType().IsComplex() {
		for i, parts := 0, f.Cotangent(2*of.Len()); i < of.Len(); i++ {
			t.Set(i, complex(parts[2*i], parts[2*i+1]))
		}
		return t
	}
	for i, v := range f.Cotangent(of.Len()) {
		t.Set(i, complex(v, 0))
	}
	return t
}

// Outputs are the outputs of a case from the values of its program's calls: what
// the calls that name returns have, one behind the other.
func Outputs(p *program.Program, value func(call int) []*tensor.Tensor) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for i := range p.Calls {
		at, ok := Position(p.Calls[i].Result)
		if !ok {
			continue
		}
		ts := value(i)
		if p.Calls[i].Result == Result {
			return ts, nil
		}
		if len(ts) != 1 {
			return nil, fmt.Errorf("%s is no tensor", p.Calls[i].Result)
		}
		for len(out) <= at {
			out = append(out, nil)
		}
		out[at] = ts[0]
	}
	return out, nil
}
