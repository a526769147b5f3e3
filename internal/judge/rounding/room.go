package rounding

import (
	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// What a formula, a backward pass or a kernel holds on the way may have steps times the
// elements that it is of, or fewElements: a GB with the errors. Of more, as where all
// elements of a row are paired, there is no bound.
const (
	steps, fewElements = 64, 1 << 25
	stepsAtOnce        = 8 // of a kernel that is made of other operators
)

func onTheWay(elements int) int { return max(steps*elements, fewElements) }

// room limits what is held from now on, by the elements that it is of, until the function
// that it returns is called.
func (s *errorSession) room(elements int) (end func()) {
	most := s.most
	if own := s.held + onTheWay(elements); most == 0 || own < most {
		s.most = own
	}
	return func() { s.most = most }
}

// restrict limits the memory of a call's kernel in a session; the error is that of results
// that are more than may be held.
func (s *errorSession) restrict(session *eager.Session, call *op.Call) error {
	inferred := op.Call{Def: call.Def, Args: call.Args.MapValues(func(v op.Value) op.Value { return tensorOf(v) })}
	metas, err := inferred.Infer()
	if err != nil {
		return nil // the call's own to say
	}
	results := 0
	for _, m := range metas {
		results += tensor.NumElements(m.Shape)
	}
	if s.most > 0 && s.held+results > s.most {
		return op.RuntimeError("the error bounds of %s take too much memory", call.Def.ID())
	}
	session.Limit(onTheWay(results+elements(call.Args.AllValues())) / stepsAtOnce * tensor.F64.Size())
	return nil
}

func elements(vs []op.Value) int {
	n := 0
	for _, v := range vs {
		n += tensor.NumElements(v.Shape())
	}
	return n
}
