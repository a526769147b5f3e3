package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
)

// placement and sbp are values of global mode: tests may pass them around.
type (
	placement struct{ gen.Placement }
	sbp       gen.SBP
)

func (p placement) Type() string          { return "placement" }
func (p placement) Freeze()               {}
func (p placement) Truth() starlark.Bool  { return true }
func (p placement) Hash() (uint32, error) { return hashString(p.String()) }
func (p placement) AttrNames() []string   { return []string{"type", "hierarchy"} }

func (p placement) Attr(name string) (starlark.Value, error) {
	switch name {
	case "type":
		return starlark.String(p.Device), nil
	case "hierarchy":
		return intTuple(p.Hierarchy), nil
	case "ranks":
		return nil, needsGlobal("placement.ranks")
	}
	return nil, nil
}

func (s sbp) String() string        { return gen.SBP(s).String() }
func (s sbp) Type() string          { return "sbp" }
func (s sbp) Freeze()               {}
func (s sbp) Truth() starlark.Bool  { return true }
func (s sbp) Hash() (uint32, error) { return hashString(s.String()) }

// globalMethods are the methods of tensors and modules that only global mode has.
var globalMethods = []string{"to_global", "to_local", "local_to_global", "global_to_global", "is_global"}

// globalKwargs are the keyword arguments that make a call a global one.
var globalKwargs = []string{"placement", "sbp", "grad_sbp"}

// global returns an error when a call is one of global mode.
func global(target string, kwargs []starlark.Tuple) error {
	if i := strings.IndexByte(target, '.'); i >= 0 && slices.Contains(globalMethods, target[i+1:]) && !strings.HasPrefix(target, "torch.") {
		return needsGlobal("." + target[i+1:])
	}
	for _, kw := range kwargs {
		if name := string(kw[0].(starlark.String)); slices.Contains(globalKwargs, name) {
			return needsGlobal(target + " with argument '" + name + "'")
		}
	}
	return nil
}

// makeGPUDevice gives "cuda", or what stands for it.
func makeGPUDevice(t *starlark.Thread, _ arguments) (starlark.Value, error) {
	name := "cuda"
	if d, ok := t.Local(drawKey).(*draw); ok {
		var err error
		if name, err = d.placed(name); err != nil {
			return nil, err
		}
	}
	return &generator{node: gen.Constant(name)}, nil
}

func isCUDA(device string) bool { return strings.HasPrefix(device, "cuda") }

// placesOf lists the placements on the devices that a name speaks of; those
// of the run among cpu and cuda, or the one that the name demands.
func placesOf(t *starlark.Thread, cpu, cuda bool) []starlark.Value {
	devices := []string{"cpu"}
	if d, ok := t.Local(drawKey).(*draw); ok && len(d.env.Devices) > 0 {
		devices = d.env.Devices
	}
	var kinds []string
	for _, kind := range []string{"cpu", "cuda"} {
		wanted := kind == "cpu" && cpu || kind == "cuda" && cuda
		has := slices.ContainsFunc(devices, func(d string) bool { return strings.HasPrefix(d, kind) })
		if wanted && (has || cpu != cuda) {
			kinds = append(kinds, kind)
		}
	}
	var out []starlark.Value
	for _, p := range gen.AllPlacements(kinds...) {
		out = append(out, placement{p})
	}
	return out
}

func placements(name string, cpu, cuda bool) *starlark.Builtin {
	return declare(name, nil, func(t *starlark.Thread, _ arguments) (starlark.Value, error) {
		return starlark.NewList(placesOf(t, cpu, cuda)), nil
	})
}

func randomPlacement(name string, cpu, cuda bool) *starlark.Builtin {
	return declare(name, nil, func(t *starlark.Thread, _ arguments) (starlark.Value, error) {
		return oneOfValues(placesOf(t, cpu, cuda))
	})
}

func oneOfValues(vs []starlark.Value) (starlark.Value, error) {
	alternatives := make([]any, len(vs))
	for i, v := range vs {
		alternatives[i] = v
	}
	n, err := gen.OneOf(nil, alternatives...)
	if err != nil {
		return nil, err
	}
	return &generator{node: n}, nil
}

var sbpParams = []string{"placement", "dim", "max_dim", "except_split", "except_broadcast", "except_partial_sum", "valid_split_axis"}

func makeAllSBP(t *starlark.Thread, a arguments) (starlark.Value, error) {
	all, err := a.signatures(t)
	return starlark.NewList(all), err
}

func makeRandomSBP(t *starlark.Thread, a arguments) (starlark.Value, error) {
	all, err := a.signatures(t)
	if err != nil {
		return nil, err
	}
	return oneOfValues(all)
}

// signatures lists the sbp signatures that the arguments leave, each a tuple.
func (a arguments) signatures(t *starlark.Thread) ([]starlark.Value, error) {
	spec := gen.SBPSpec{Dim: 1}
	var err error
	if spec.Dim, err = a.whole(t, "dim", 1); err != nil {
		return nil, err
	}
	if spec.MaxDim, err = a.whole(t, "max_dim", 0); err != nil {
		return nil, err
	}
	if p, err := a.place(t); err != nil {
		return nil, err
	} else if p != nil {
		spec.Dim = len(p.Hierarchy)
	}
	if err := a.switches(map[string]*bool{"except_split": &spec.ExceptSplit, "except_broadcast": &spec.ExceptBroadcast, "except_partial_sum": &spec.ExceptPartialSum}); err != nil {
		return nil, err
	}
	if spec.ValidSplitAxis, err = a.axes(); err != nil {
		return nil, err
	}
	all, err := gen.AllSBP(spec)
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(all))
	for i, signature := range all {
		tuple := make(starlark.Tuple, len(signature))
		for k, s := range signature {
			tuple[k] = sbp(s)
		}
		out[i] = tuple
	}
	return out, nil
}

// whole returns a parameter that is a small int or a generator of one.
func (a arguments) whole(t *starlark.Thread, param string, otherwise int) (int, error) {
	v := a.get(param)
	if g, ok := v.(*generator); ok {
		d, err := drawOf(t, a.fn)
		if err != nil {
			return 0, err
		}
		return d.integer(g)
	}
	if v == nil {
		return otherwise, nil
	}
	n, err := starlark.AsInt32(v)
	if err != nil || n < 0 || n > 64 {
		return 0, a.wrong(param, "an int from 0 to 64")
	}
	return n, nil
}

// place returns the parameter placement; nil when it is not given.
func (a arguments) place(t *starlark.Thread) (*placement, error) {
	v := a.get("placement")
	if g, ok := v.(*generator); ok {
		drawn, err := g.draw(t, (*gen.Node).Value)
		if err != nil {
			return nil, err
		}
		v = drawn
	}
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case placement:
		return &v, nil
	}
	return nil, a.wrong("placement", "a placement")
}

func (a arguments) axes() ([]int, error) {
	switch v := a.get("valid_split_axis").(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case starlark.Int:
		n, err := starlark.AsInt32(v)
		return []int{n}, err
	case starlark.Iterable:
		axes := []int{}
		for e := range starlark.Elements(v) {
			n, err := starlark.AsInt32(e)
			if err != nil {
				return nil, fmt.Errorf("%s: argument 'valid_split_axis': %w", a.fn, err)
			}
			axes = append(axes, n)
		}
		return axes, nil
	}
	return nil, a.wrong("valid_split_axis", "an int or a list of ints")
}

var _ starlark.HasAttrs = placement{}
