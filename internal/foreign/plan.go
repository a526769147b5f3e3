package foreign

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"plumb/op"
	"plumb/tensor"
)

// Plan is an op.Plan for those who give the addresses of elements.
type Plan struct {
	lib     *Library
	request *request
	plan    *op.Plan         // of a call whose tensors are operands; nil where results are made anew
	inputs  []*tensor.Tensor // layouts, one for each operand
	bytes   []int            // that each reads
	results []*tensor.Tensor // layouts, those of copies for views; none where they are not known
	sizes   []int
	mutates []int
	idle    sync.Pool // of *bound
}

// Memory is where the elements of a tensor begin.
type Memory = unsafe.Pointer

// prepare makes the plan of a request.
func (l *Library) prepare(r *request) (*Plan, error) {
	p := &Plan{lib: l, request: r}
	for _, o := range r.operands {
		t := tensor.Layout(o.meta.DType, o.meta.Shape, o.meta.Strides)
		p.inputs = append(p.inputs, t)
		p.bytes = append(p.bytes, bytesOf(t))
	}
	call, err := l.resolve(r, r.args, r.kwargs)
	if errors.Is(err, op.ErrNoElements) {
		return p, nil // bound once the elements are there
	}
	if err != nil {
		return nil, err
	}
	if call.InPlace {
		return nil, &op.Error{Class: "NotImplementedError", Op: call.Def.ID(), Msg: "in place is not supported: the argument 'inplace' has to be False"}
	}
	plan, err := call.Plan()
	if err != nil {
		return nil, err
	}
	p.mutates = mutated(call)
	if plan == nil {
		return p, nil
	}
	p.results = plan.Results
	for _, t := range p.results {
		p.sizes = append(p.sizes, bytesOf(t))
	}
	if call.Def.View == nil {
		p.plan = plan
	}
	return p, nil
}

func bytesOf(t *tensor.Tensor) int {
	return tensor.Extent(t.Shape(), t.Strides()) * t.DType().Size()
}

// mutated returns the operands that the call changes.
func mutated(call *op.Call) []int {
	var at []int
	for _, name := range call.Def.Mutates {
		if o, ok := call.Args.Any(name).(*Operand); ok {
			at = append(at, o.at)
		}
	}
	return at
}

// bound is what one run of a plan needs, kept for the next.
type bound struct {
	run     op.Run
	inputs  []*tensor.Tensor
	results []*tensor.Tensor
}

// bind returns what a run needs, which no other run has.
func (p *Plan) bind() *bound {
	if b, ok := p.idle.Get().(*bound); ok {
		return b
	}
	b := &bound{}
	for _, t := range p.inputs {
		b.inputs = append(b.inputs, tensor.Layout(t.DType(), t.Shape(), t.Strides()))
	}
	for _, t := range p.results {
		b.results = append(b.results, tensor.Layout(t.DType(), t.Shape(), t.Strides()))
	}
	b.run.Args = p.plan.Call.Args.MapValues(func(v op.Value) op.Value { return b.inputs[v.(*Operand).at] })
	return b
}

func memory(at Memory, bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at), bytes)
}

// checked refuses memory that the layouts cannot be those of.
func checked(of []Memory, want []int, layouts []*tensor.Tensor, what string) error {
	if len(of) != len(want) {
		return fmt.Errorf("%d %s for a call of %d", len(of), what, len(want))
	}
	for i, n := range want {
		switch {
		case n > 0 && of[i] == nil:
			return fmt.Errorf("%s: number %d has no memory", what, i)
		case n > 0 && uintptr(of[i])%uintptr(min(layouts[i].DType().Size(), 8)) != 0:
			return &op.Error{Class: "Unaligned", Msg: fmt.Sprintf("%s: number %d is not aligned for its elements", what, i)}
		}
	}
	return nil
}

// Run computes into the memory of results, which are as the plan says they will be.
func (p *Plan) Run(inputs, results []Memory) (err error) {
	defer caught(p.request.name, &err)
	if p.plan == nil {
		return fmt.Errorf("%s: what it results in follows from elements, so that it makes its results itself", p.request.name)
	}
	if err := checked(inputs, p.bytes, p.inputs, "inputs"); err != nil {
		return err
	}
	if err := checked(results, p.sizes, p.results, "results"); err != nil {
		return err
	}
	b := p.bind()
	for i, t := range b.inputs {
		t.Rebind(memory(inputs[i], p.bytes[i]))
	}
	b.run.Out = append(b.run.Out[:0], b.results...)
	for i, t := range b.results {
		t.Rebind(memory(results[i], p.sizes[i]))
	}
	if err := p.compute(&b.run); err != nil {
		return err
	}
	p.idle.Put(b)
	return nil
}

func (p *Plan) compute(run *op.Run) error {
	if p.plan.Kernel == nil {
		return p.compose(run)
	}
	if call := p.plan.Call; call.Def.Traits.Has(op.Random) {
		run.Key = p.lib.key(call)
	}
	return p.plan.Run(run)
}

// compose copies the results of parts to where they are wanted.
func (p *Plan) compose(run *op.Run) error {
	call := *p.plan.Call
	call.Args = run.Args
	out, err := p.lib.execute(&call)
	if err != nil {
		return err
	}
	for i, t := range out {
		if t.DType() != run.Out[i].DType() || !slices.Equal(t.Shape(), run.Out[i].Shape()) {
			return fmt.Errorf("%s: result %d is %s, inferred %s", call.Def.ID(), i, t, run.Out[i])
		}
		run.Out[i].CopyFrom(t)
	}
	return nil
}

// RunNew computes results in memory of its own, or, of views, in that of inputs:
// shared[i] is the input that result i views, -1 for none.
func (p *Plan) RunNew(inputs []Memory) (out []*tensor.Tensor, shared []int, err error) {
	defer caught(p.request.name, &err)
	if err := checked(inputs, p.bytes, p.inputs, "inputs"); err != nil {
		return nil, nil, err
	}
	r := p.request
	given := make([]*tensor.Tensor, len(inputs))
	for i, at := range inputs {
		given[i] = p.inputs[i].Over(memory(at, p.bytes[i]))
	}
	kwargs := slices.Clone(r.kwargs)
	for i := range kwargs {
		kwargs[i].Value = withTensors(kwargs[i].Value, given)
	}
	args, _ := withTensors(r.args, given).([]any)
	call, err := p.lib.resolve(r, args, kwargs)
	if err != nil {
		return nil, nil, err
	}
	if out, err = p.lib.execute(call); err != nil {
		return nil, nil, err
	}
	for _, t := range out {
		shared = append(shared, slices.IndexFunc(given, t.SharesStorage))
	}
	return out, shared, nil
}

// withTensors replaces the operands in an argument.
func withTensors(v any, given []*tensor.Tensor) any {
	switch v := v.(type) {
	case *Operand:
		return given[v.at]
	case op.Index:
		return op.Index(withTensors([]any(v), given).([]any))
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = withTensors(e, given)
		}
		return list
	}
	return v
}

// caught makes an error of a panic: the caller's process goes on.
func caught(name string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s is broken: %v", name, r)
	}
}

// Name returns the name that the operator was called by.
func (p *Plan) Name() string { return p.request.name }
