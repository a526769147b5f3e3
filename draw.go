package plumb

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"plumb/api"
	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/internal/where"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// integerWeights gives an eighth of the cases small integers for elements, as
// test files have it: sums of their products are exact in any order.
var integerWeights = []float64{7, 1}

// draw runs f once and returns the program that it records.
func (c *config) draw(name string, float tensor.DType, src *choice.Source, o campaign.Observer, f func(*T)) (*program.Program, error) {
	p := &T{
		gen: gen.NewCase(src), table: c.table, observer: o,
		prog:   &program.Program{Name: name, Seed: src.Key(), RTol: c.rtol, ATol: c.atol},
		values: map[program.Ref]*Value{}, seen: map[program.Ref]backend.Value{},
	}
	p.gen.Float = float
	if float.IsFloat() {
		p.prog.DType = float
	}
	p.gen.Integers = src.Weighted(integerWeights) == 1
	if err := p.run(f); err != nil {
		return nil, err
	}
	if len(p.prog.Calls) == 0 {
		return nil, fmt.Errorf("%s: the function records no call", name)
	}
	if c.second && len(p.prog.Backward) > 0 {
		p.prog.Second = p.cotangent()
	}
	return p.prog, nil
}

// stop ends a draw; a nil err leaves what was recorded as its program.
type stop struct{ err error }

// run calls f on a goroutine of its own, which f may end by t.FailNow.
func (p *T) run(f func(*T)) error {
	ended := make(chan error, 1)
	go func() {
		err := errors.New("the function ended its goroutine, as t.FailNow and t.Skip do")
		defer func() { ended <- err }()
		defer func() {
			switch r := recover().(type) {
			case nil:
			case stop:
				err = r.err
			default:
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		f(p)
		err = nil
	}()
	return <-ended
}

// fail ends the draw with a mistake in the test, at the line of its call.
func (p *T) fail(err error) {
	panic(stop{fmt.Errorf("%s%w", position(), err)})
}

// position is the line of the test that is running, as "file:line: ".
func position() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "plumb.") && !strings.HasPrefix(f.Function, "plumb/api.") && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d: ", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}

// observe asks the reference for a value, of a tensor as it is by now.
func (p *T) observe(ref program.Ref) backend.Value {
	if v, ok := p.seen[ref]; ok {
		return v
	}
	so := *p.prog
	so.Inputs, so.Calls, so.Backward = slices.Clip(so.Inputs), slices.Clip(so.Calls), nil
	v, err := p.observer.Observe(&so, ref)
	if err != nil {
		panic(stop{err})
	}
	p.seen[ref] = v
	return v
}

// add appends an input and returns its value.
func (p *T) add(in program.Input) *Value {
	in.Name = fmt.Sprintf("x%d", len(p.prog.Inputs)+1)
	p.prog.Inputs = append(p.prog.Inputs, in)
	v := &Value{p: p, ref: program.Ref(in.Name), kind: aTensor, input: len(p.prog.Inputs), metas: []op.Meta{{DType: in.DType, Shape: in.Shape, Strides: in.Strides}}}
	p.values[v.ref] = v
	return v
}

// maxCalls bounds the calls of one program.
const maxCalls = 10000

// record appends a call, with what can be inferred of its result.
func (p *T) record(c program.Call) *Value {
	if len(p.prog.Calls) == maxCalls {
		p.fail(fmt.Errorf("the test makes more than %d calls", maxCalls))
	}
	base := "v"
	if program.IsModule(c.Target) {
		base = "m"
	}
	c.Result, c.Place = fmt.Sprintf("%s%d", base, len(p.prog.Calls)+1), where.Outside("plumb", "plumb/api", "plumb/op")
	v := &Value{p: p, ref: program.Ref(c.Result)}
	v.infer(&c)
	p.prog.Calls = append(p.prog.Calls, c)
	p.changed = p.changed || p.prog.MayChange(len(p.prog.Calls)-1)
	p.values[v.ref] = v
	clear(p.seen)
	return v
}

// infer notes what the table tells of a call's result without computing it; a
// call that it refuses or does not know tells nothing.
func (v *Value) infer(c *program.Call) {
	if program.IsModule(c.Target) {
		v.kind = aModule
		return
	}
	bound, err := v.p.bind(c)
	if err != nil {
		v.refusal = err
		return
	}
	if bound.Def.Traits.Has(op.Dynamic) {
		return
	}
	metas, err := bound.Pure().Infer()
	if err != nil {
		v.refusal = err
		return
	}
	v.metas = metas
	switch sig := bound.Def.Sigs()[0]; {
	case sig.Plain:
		v.kind = aNumber
	case sig.Many || len(metas) > 1:
		v.kind = aTuple
	default:
		v.kind = aTensor
	}
}

// errUnknown says that the table cannot bind a call, as a value is not inferred.
var errUnknown = errors.New("not inferred")

func (p *T) bind(c *program.Call) (*op.Call, error) {
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) {
		v := p.values[r]
		if v == nil || v.kind != aTensor {
			return nil, errUnknown
		}
		return program.NewSymbol(r, v.metas[0]), nil
	})
	if err != nil {
		return nil, err
	}
	return program.Resolve(p.table, c.Target, args, kwargs)
}

// Session returns the session of package api that records into the case: its
// methods are the typed functions without a tensor argument.
func (p *T) Session() *api.Session {
	if p.session == nil {
		p.session = api.NewRecording(recorder{p})
	}
	return p.session
}
