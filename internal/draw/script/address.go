package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/program"
)

// address is x.data_ptr(), or that of its storage: a place in the memory of a subject, which
// tests compare. Whether two are one, the reference tells.
type address struct {
	s       *symbol
	storage bool
	at      int // the calls before it
}

func (a *address) String() string       { return "data_ptr" }
func (a *address) Type() string         { return "int" }
func (a *address) Freeze()              {}
func (a *address) Truth() starlark.Bool { return true }
func (a *address) Hash() (uint32, error) {
	return 0, fmt.Errorf("unhashable: data_ptr() in a test file")
}

// onePlace asks the reference whether two tensors begin at one place: an element there, as a
// tensor of its own, is set to the same memory.
func (d *draw) onePlace(a, b *address) (bool, error) {
	for _, c := range d.prog.Calls[min(a.at, b.at):] {
		if c.Target == "setattr" && c.Args[1] == "data" || slices.Contains([]string{"Tensor.set_", "Tensor.resize_"}, c.Target) {
			return false, lack("data_ptr() before a tensor is given other memory is not supported in test files")
		}
	}
	p := *d.prog
	p.Calls = slices.Clip(p.Calls)
	var elements []any
	for _, x := range []*address{a, b} {
		c := program.Call{Result: p.Unused("asked"), Target: "torch.as_strided", Args: []any{x.s.ref, program.Tuple{1}, program.Tuple{1}}}
		if x.storage {
			c.Kwargs = []program.Kwarg{{Name: "storage_offset", Value: 0}}
		}
		elements = append(elements, program.Ref(c.Result))
		p.Calls = append(p.Calls, c)
	}
	v, err := d.askIn(p, program.Call{Target: "Tensor.is_set_to", Args: elements})
	same, _ := v.Plain.(bool)
	return same, err
}

// Binary refuses to compute with what is another number on each side.
func (a *address) Binary(syntax.Token, starlark.Value, starlark.Side) (starlark.Value, error) {
	return nil, lack("computing with data_ptr() is not supported in test files")
}

// addressed answers x.data_ptr(), x.storage() and x.untyped_storage().
func (s *symbol) addressed(name string) starlark.Value {
	where := &address{s: s, at: len(s.d.prog.Calls)}
	if name == "data_ptr" {
		return where
	}
	where.storage = true
	pointer := builtin("data_ptr", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return where, nil })
	return &library{name: name, names: starlark.StringDict{"data_ptr": pointer}, lacks: true}
}
