package onekernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// examples makes the signature of what get_inputs of the reference's file returns:
// a function's, or a problem's.
func (s *Session) examples(ctx context.Context) error {
	if s.cfg.Reference != nil && s.cfg.Reference.Form == "problem" {
		s.maker.problem = &problem{session: s, given: s.refTold.Sizes}
		return nil
	}
	if len(s.refTold.Examples) == 0 {
		return &Mistake{errors.New("nothing says what the functions take: give --inputs 'x: f32[B,N]', or get_inputs() in the reference's file")}
	}
	sig, err := generalised(s.refTold.Examples)
	if err != nil {
		return err
	}
	s.maker.signature = sig.fixed
	return nil
}

// generalised makes symbols of the sizes of examples: equal sizes are one.
func generalised(examples []exampleInput) (*Signature, error) {
	sig := &Signature{}
	symbols := map[int]string{}
	for i, e := range examples {
		name := fmt.Sprintf("x%d", i)
		if e.DType == "" {
			sig.Args = append(sig.Args, Arg{Name: name, Choices: []any{wire(e.Value)}})
			continue
		}
		in, err := e.input(name)
		if err != nil {
			return nil, err
		}
		for d, n := range e.Shape {
			if n < 2 {
				continue
			}
			if symbols[n] == "" {
				symbols[n] = string(rune('A' + len(symbols)))
			}
			in.Dims[d] = Size{Scale: 1, Symbols: []string{symbols[n]}}
		}
		sig.add(*in)
	}
	return sig, nil
}

func (sig *Signature) add(in Input) {
	sig.Args = append(sig.Args, Arg{Name: in.Name, Inputs: []int{len(sig.Inputs)}})
	sig.Inputs = append(sig.Inputs, in)
}

// input is an input like an example, of its sizes.
func (e *exampleInput) input(name string) (*Input, error) {
	dt, err := tensor.ParseDType(e.DType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	in := &Input{Name: name, DType: dt, Dims: make([]Size, len(e.Shape))}
	for i, n := range e.Shape {
		in.Dims[i] = number(n)
	}
	if dt.IsFloat() {
		in.DType = tensor.Invalid
	} else if e.Lo != nil {
		in.Lo, in.Hi, in.Bounded = *e.Lo, *e.Hi+1, true
	}
	return in, nil
}

// wire is a plain value of JSON as a program has it.
func wire(v any) any {
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return int64(f)
	}
	return v
}

// problem draws the cases of a file in KernelBench's form: its module-level sizes are
// given other values, from which its own code makes the inputs and the model.
type problem struct {
	session *Session
	given   map[string]int
}

// modelOf is what the reference tells of a model.
type modelOf struct {
	Init     json.RawMessage `json:"init"`
	Examples []exampleInput  `json:"examples"`
	State    []stateEntry    `json:"state"`
}

// size draws sizes near the given ones, of which the first case has small ones and
// none more elements than there is room for.
func (p *problem) size(c *Case, src *choice.Source, s step, i, try int, m *maker) error {
	names := slices.Sorted(maps.Keys(p.given))
	focus := -1
	if len(names) > 0 {
		focus = (i + try) % len(names)
	}
	for k, name := range names {
		given := p.given[name]
		n := given
		switch {
		case try >= attempts-2:
		case given > 16: // a size: small, of the same kind
			n = []int{given / 4, 8, 16, given / 2, 32, 24}[src.Index(6)]
		}
		if k == focus && i > 0 && try < attempts/2 {
			n = []int{given, given + 1, max(given-1, 1), 1, 2, max(given/2, 1), s.size}[src.Index(7)]
		}
		c.Sizes[name] = m.within(src, name, max(n, 1))
	}
	m.differentiate(c)
	return m.rewrite(c)
}

// rewrite makes a case's program anew after its sizes or values changed.
func (m *maker) rewrite(c *Case) error {
	if m.problem == nil {
		return m.write(c)
	}
	sig, err := m.problem.signature(context.Background(), c)
	if err != nil {
		return err
	}
	c.sig = sig
	return m.write(c)
}

// signature asks the reference for the model of a case's sizes.
func (p *problem) signature(ctx context.Context, c *Case) (*Signature, error) {
	told, err := p.model(ctx, c)
	if err != nil {
		return nil, err
	}
	sig := &Signature{}
	for i, e := range told.Examples {
		name := fmt.Sprintf("x%d", i)
		if e.DType == "" {
			sig.Args = append(sig.Args, Arg{Name: name, Choices: []any{wire(e.Value)}})
			continue
		}
		in, err := e.input(name)
		if err != nil {
			return nil, err
		}
		sig.add(*in)
	}
	for i, e := range told.State {
		in, err := e.input(fmt.Sprintf("p%d", i))
		if err != nil {
			return nil, err
		}
		e.fill(in)
		sig.add(*in)
		sig.Args[len(sig.Args)-1].State = true
	}
	return sig, nil
}

// fill says what a parameter or buffer holds: a buffer what the model gives it, a
// parameter numbers of the same range.
func (e *stateEntry) fill(in *Input) {
	in.NoGrad = !e.Parameter || !e.RequiresGrad
	dt, err := tensor.ParseDType(e.DType)
	if err != nil {
		return
	}
	if e.Values != nil {
		in.DType, in.Literal = dt, tensor.New(dt, e.Shape...)
		for i, v := range e.Values {
			in.Literal.Set(i, complex(v, 0))
		}
		return
	}
	if e.Lo != nil && dt.IsFloat() {
		in.Lo, in.Hi, in.Bounded = *e.Lo, *e.Hi, true
		if in.Lo == in.Hi { // ones or zeros, as of a norm
			in.Lo, in.Hi = in.Lo-0.5, in.Hi+0.5
		}
	}
}

func (p *problem) model(ctx context.Context, c *Case) (*modelOf, error) {
	var told modelOf
	err := p.session.reference.ask(ctx, map[string]any{"shape": map[string]any{"sizes": c.Sizes}}, &told)
	return &told, err
}

// shape has both processes make the model of a case.
func (p *problem) shape(ctx context.Context, c *Case) error {
	told, err := p.model(ctx, c)
	if err != nil {
		return err
	}
	var none struct{}
	request := map[string]any{"init": told.Init, "inputs": len(told.Examples), "seed": c.Key >> 32, "state": told.State}
	err = p.session.kernel.ask(ctx, map[string]any{"shape": request}, &none)
	if err != nil && p.session.sandbox.relax("its constructor: "+err.Error()) { // it may build in its constructor
		p.session.kernel.Restart()
		if err := p.session.again(ctx); err != nil {
			return err
		}
		err = p.session.kernel.ask(ctx, map[string]any{"shape": request}, &none)
	}
	if err != nil {
		return &errNothing{"ModelNew: " + err.Error()}
	}
	return nil
}
