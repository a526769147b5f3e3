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

// Plan is a call that is checked, inferred and bound to a kernel for tensors of known
// layouts, so that running it again takes the addresses of their elements alone.
type Plan struct {
	lib     *Library
	request *request
	call    *op.Call // whose tensors are operands; nil where elements tell what it is
	kernel  *op.Kernel
	inputs  []*tensor.Tensor // layouts, one for each operand
	bytes   []int            // that each reads
	results []*tensor.Tensor // layouts, those of copies for views; none where they are not known
	sizes   []int
	mutates []int
	states  op.States
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
	metas, known, err := inferred(call)
	if err != nil {
		return nil, err
	}
	p.mutates = mutated(call)
	if !known {
		return p, nil
	}
	for _, m := range metas {
		if err := tensor.CheckShape(m.DType, m.Shape); err != nil {
			return nil, op.RuntimeError("%s: %v", call.Def.ID(), err)
		}
		t := tensor.Layout(m.DType, m.Shape, m.Strides)
		p.results = append(p.results, t)
		p.sizes = append(p.sizes, bytesOf(t))
	}
	if call.Def.View != nil {
		return p, nil
	}
	p.call = call
	if call.Def.Compose == nil {
		laidOut := call.Args.MapValues(func(v op.Value) op.Value { return p.inputs[v.(*Operand).at] })
		if p.kernel, err = call.Def.Kernel(laidOut); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func bytesOf(t *tensor.Tensor) int {
	return tensor.Extent(t.Shape(), t.Strides()) * t.DType().Size()
}

// inferred returns what a call results in; false where its elements alone tell.
func inferred(call *op.Call) (metas []op.Meta, known bool, err error) {
	if call.Def.Compose == nil && call.Def.Infer == nil || call.Def.Traits.Has(op.Dynamic) {
		return nil, false, nil
	}
	metas, err = call.Infer()
	var rejection *op.Error
	if err != nil && !errors.As(err, &rejection) {
		return nil, false, nil
	}
	return metas, true, err
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
	b.run.Args = p.call.Args.MapValues(func(v op.Value) op.Value { return b.inputs[v.(*Operand).at] })
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
	if p.call == nil {
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
	if p.kernel == nil {
		return p.compose(run)
	}
	if p.call.Def.Traits.Has(op.Random) {
		run.Key = p.lib.key(p.call)
	}
	if err := p.kernel.Prepare(run, &p.states); err != nil {
		return err
	}
	return p.kernel.Run(run)
}

// compose copies the results of parts to where they are wanted.
func (p *Plan) compose(run *op.Run) error {
	call := *p.call
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
