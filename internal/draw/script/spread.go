package script

import (
	"fmt"

	"go.starlark.net/starlark"

	"plumb/op"
	"plumb/program"
)

// spread is how ranks share a value, as far as a test file tells.
type spread struct {
	placement placement
	sbp       starlark.Tuple // nil: it follows from what an operator gives
}

// spreadOf is how the ranks share the result of a call: the methods of keepers
// give it as their tensor lies, of other calls only the placement is known.
func (d *draw) spreadOf(c *program.Call) *spread {
	if at := d.attributeSpread(c); at != nil {
		return at
	}
	from := d.spreadIn(c.Args)
	for _, kw := range c.Kwargs {
		if from == nil {
			from = d.spreadIn([]any{kw.Value})
		}
	}
	if from == nil || from.sbp == nil || d.keeps(c) {
		return from
	}
	return &spread{placement: from.placement}
}

// attributeSpread is how what a module holds lies: as what was assigned to it, else
// as the module does; nil of other calls.
func (d *draw) attributeSpread(c *program.Call) *spread {
	if c.Target != "getattr" || len(c.Args) != 2 {
		return nil
	}
	ref, _ := c.Args[0].(program.Ref)
	name, _ := c.Args[1].(string)
	if s := d.symbols[ref]; s != nil && s.kind == kindModule {
		return d.slotSpread(ref, name, s.spread)
	}
	return nil
}

// spreadIn is that of the first global value among arguments.
func (d *draw) spreadIn(args []any) *spread {
	for _, a := range args {
		var found *spread
		switch a := a.(type) {
		case program.Ref:
			if s := d.symbols[a]; s != nil {
				found = s.spread
			}
		case program.List:
			found = d.spreadIn(a)
		case program.Tuple:
			found = d.spreadIn(a)
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// keepers are calls whose results lie as their first argument does.
var keepers = map[string]bool{
	"Tensor.detach": true, "Tensor.clone": true, "Tensor.to": true, "Tensor.cpu": true, "Tensor.cuda": true, "Tensor.requires_grad_": true, "Tensor.contiguous": true,
	"Tensor.float": true, "Tensor.double": true, "Tensor.half": true, "Tensor.int": true, "Tensor.long": true, "Tensor.bool": true, "Tensor.type": true, "Tensor.type_as": true,
	"Tensor.new_zeros": true, "Tensor.new_ones": true, "Tensor.new_full": true, "Tensor.new_empty": true, "torch.nn.Parameter": true,
	"torch.zeros_like": true, "torch.ones_like": true, "torch.full_like": true, "torch.empty_like": true, "torch.rand_like": true, "torch.randn_like": true, "torch.randint_like": true,
	"Module.get_parameter": true, "Module.get_buffer": true, "getattr": true, "Tensor.abs": true, "Tensor.relu": true,
}

func (d *draw) keeps(c *program.Call) bool {
	if c.Target == "getattr" && c.Args[1] != "grad" && c.Args[1] != "data" {
		ref, _ := c.Args[0].(program.Ref)
		s := d.symbols[ref]
		return s != nil && s.kind == kindModule
	}
	return keepers[c.Target] || op.InPlace(c.Target)
}

// local says that a value is no global one, as OneFlow does.
func local(format string, args ...any) error {
	return &pythonError{&raised{"RuntimeError", starlark.Tuple{starlark.String(fmt.Sprintf(format, args...))}}}
}

// aboutRanks are the methods of OneFlow's tensors that PyTorch's lack.
var aboutRanks = map[string]bool{
	"to_global": true, "to_local": true, "to_consistent": true, "local_to_global": true, "global_to_global": true, "is_global": true, "is_local": true, "is_consistent": true, "check_meta_consistency": true,
}

// signature is x.sbp.
func (s *symbol) signature() (starlark.Tuple, error) {
	if s.spread.sbp == nil {
		signature, err := s.follows()
		if err != nil {
			return nil, err
		}
		s.spread = &spread{s.spread.placement, signature}
	}
	return s.spread.sbp, nil
}

// spreading answers what is asked of a tensor about ranks; nil for other names.
func (s *symbol) spreading(name string) (starlark.Value, error) {
	switch name {
	case "is_global", "is_consistent":
		return starlark.Bool(s.spread != nil), nil
	case "is_lazy", "is_eager":
		return starlark.Bool(name == "is_eager"), nil
	case "is_local":
		return starlark.Bool(s.spread == nil), nil
	case "placement", "sbp":
		switch {
		case s.spread == nil:
			return nil, local("Only global tensors have '%s'.", name)
		case name == "placement":
			return s.spread.placement, nil
		}
		return s.signature()
	}
	return nil, nil
}

// moved records a call about ranks, whose result is a tensor.
func (d *draw) moved(s *symbol, c program.Call) (*symbol, error) {
	if out := d.mirrored(s.side, c); out != nil {
		return out, nil
	}
	out, err := d.record(c)
	if err != nil {
		return nil, err
	}
	out.kind = kindTensor
	return d.mirror(s.side, c, out), nil
}

// toGlobal records that a tensor, or a module's state, is brought to a placement
// and an sbp.
func (d *draw) toGlobal(s *symbol, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return d.toGlobalOf(s, "to_global", args, kwargs, d.isLocal(s))
}

// toGlobalOf is toGlobal by one of its names; a tensor that is each rank's own is a
// piece or a summand of what results.
func (d *draw) toGlobalOf(s *symbol, name string, args starlark.Tuple, kwargs []starlark.Tuple, own bool) (starlark.Value, error) {
	var place, signature, gradient, ignored starlark.Value = starlark.None, starlark.None, starlark.None, starlark.None
	if err := starlark.UnpackArgs(name, args, kwargs, "placement?", &place, "sbp?", &signature, "grad_sbp?", &gradient, "check_meta?", &ignored, "copy?", &ignored); err != nil {
		return nil, err
	}
	at := spread{}
	if s.spread != nil {
		at = *s.spread
	}
	c := program.Call{Target: program.ToGlobal, Args: []any{s.ref}}
	if s.kind == kindModule {
		c.Target, gradient = program.ModuleToGlobal, starlark.None
	}
	if place != starlark.None {
		v, err := d.drawnValue(place)
		if err != nil {
			return nil, err
		}
		text, err := d.placementText(v)
		if err != nil {
			return nil, err
		}
		if p, ok := v.(placement); ok {
			at.placement = p
		}
		c.Kwargs = append(c.Kwargs, program.Kwarg{Name: "placement", Value: text})
	}
	for _, said := range []struct {
		name string
		v    starlark.Value
	}{{"sbp", signature}, {"grad_sbp", gradient}} {
		if said.v == starlark.None || said.name == "grad_sbp" && isEmpty(said.v) {
			continue
		}
		v, err := d.drawnValue(said.v)
		if err != nil {
			return nil, err
		}
		text, err := d.sbpText(v)
		if err != nil {
			return nil, err
		}
		if said.name == "sbp" {
			at.sbp = sbpTuple(v)
		}
		c.Kwargs = append(c.Kwargs, program.Kwarg{Name: said.name, Value: text})
	}
	switch {
	case s.spread == nil && s.kind != kindModule && len(c.Kwargs) < 2:
		return nil, local("Converting a local tensor to global tensor must have placement and sbp parameters.")
	case len(c.Kwargs) == 0:
		return s, nil
	}
	if at.sbp != nil {
		if err := s.misplaced(at.sbp); err != nil {
			return nil, err
		}
		if s.kind != kindModule && own && at.placement.Hierarchy != nil {
			whole, err := d.assembled(s, at.placement, at.sbp)
			if err != nil {
				return nil, err
			}
			s, c.Args[0] = whole, whole.ref
		}
	}
	if s.kind == kindModule {
		if err := d.assembleOwn(s, &at); err != nil {
			return nil, err
		}
		_, err := d.record(c)
		s.spread, s.entries = &at, nil
		return s, err
	}
	out, err := d.moved(s, c)
	if err == nil {
		out.liesAs(&at)
	}
	return out, err
}

// liesAs says how the ranks share a value, on whichever side the test has it.
func (s *symbol) liesAs(at *spread) {
	s.spread, s.d.symbols[s.ref].spread = at, at
}

// spreadModule is to_global of a module of the file: of all that it holds.
func spreadModule(d *draw, m starlark.Value, a arguments) (starlark.Value, error) {
	var kwargs []starlark.Tuple
	for i, name := range a.params {
		if a.values[i] != nil {
			v, err := d.drawnValue(a.values[i])
			if err != nil {
				return nil, err
			}
			kwargs = append(kwargs, starlark.Tuple{starlark.String(name), v})
		}
	}
	_, _, children, err := own(m)
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		if s, ok := c.value.(*symbol); ok {
			_, err = d.toGlobal(s, nil, kwargs)
		} else {
			_, err = spreadModule(d, c.value, a)
		}
		if err != nil {
			return nil, err
		}
	}
	params, buffers, _, err := own(m)
	for _, e := range append(params, buffers...) {
		if s, ok := e.value.(*symbol); ok && err == nil {
			err = s.spreadBy(d, kwargs)
		}
	}
	return m, err
}

// spreadBy records that a parameter of a module of the file is brought to ranks itself.
func (s *symbol) spreadBy(d *draw, kwargs []starlark.Tuple) error {
	moved, err := d.toGlobalOf(s, "to_global", nil, kwargs, false)
	if err != nil || moved == starlark.Value(s) {
		return err
	}
	s.placedAs(moved.(*symbol))
	return nil
}

// placedAs makes the call that placed a copy of the value place the value too.
func (s *symbol) placedAs(moved *symbol) {
	c := s.d.callOf(moved.ref)
	c.Kwargs = append(c.Kwargs, program.Kwarg{Name: program.Itself, Value: true})
	s.spread = moved.spread
}

func isEmpty(v starlark.Value) bool {
	s, ok := v.(starlark.Sequence)
	return ok && s.Len() == 0
}

// sbpTuple is x.sbp: one for each dimension of the hierarchy; nil where v has others.
func sbpTuple(v starlark.Value) starlark.Tuple {
	if one, ok := v.(sbp); ok {
		return starlark.Tuple{one}
	}
	all, ok := v.(starlark.Sequence)
	if !ok {
		return nil
	}
	var out starlark.Tuple
	for e := range starlark.Elements(all) {
		one, ok := e.(sbp)
		if !ok {
			inner := sbpTuple(e)
			if len(inner) != 1 {
				return nil
			}
			one = inner[0].(sbp)
		}
		out = append(out, one)
	}
	return out
}
