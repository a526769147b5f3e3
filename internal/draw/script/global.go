package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
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
func (p placement) AttrNames() []string   { return []string{"type", "device_type", "hierarchy", "ranks"} }

// CompareSameType compares placements as == does, also those that are keys.
func (p placement) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	same := p.String() == y.(placement).String()
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("placements have no order")
}

func (p placement) Attr(name string) (starlark.Value, error) {
	switch name {
	case "type", "device_type":
		return starlark.String(p.Device), nil
	case "hierarchy":
		return intTuple(p.Hierarchy), nil
	case "ranks":
		return &array{p.rankArray()}, nil
	}
	return nil, nil
}

// rankArray has the ranks in the shape of the hierarchy.
func (p placement) rankArray() *tensor.Tensor {
	t := tensor.New(tensor.I64, p.Hierarchy...)
	for i := range t.Len() {
		rank := int64(i)
		if p.Ranks != nil {
			rank = int64(p.Ranks[i])
		}
		t.SetInt(i, rank)
	}
	return t
}

func (s sbp) String() string        { return gen.SBP(s).String() }
func (s sbp) Type() string          { return "sbp" }
func (s sbp) Freeze()               {}
func (s sbp) Truth() starlark.Bool  { return true }
func (s sbp) Hash() (uint32, error) { return hashString(s.String()) }

// Name and CallInternal let oneflow.sbp.broadcast() be what oneflow.sbp.broadcast is.
func (s sbp) Name() string { return s.String() }

// CallInternal returns the sbp.
func (s sbp) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return s, starlark.UnpackArgs(s.Name(), args, kwargs)
}

// onRanks takes the arguments placement, sbp and grad_sbp from a call that makes
// a tensor; moved are the first two.
func onRanks(kwargs []starlark.Tuple) (rest, moved []starlark.Tuple) {
	for _, kw := range kwargs {
		switch name, _ := starlark.AsString(kw[0]); {
		case name == "placement" || name == "sbp":
			moved = append(moved, kw)
		case name != "grad_sbp":
			rest = append(rest, kw)
		}
	}
	return rest, moved
}

// makeOnRanks records a call that makes a tensor on ranks. Where it is to be a leaf,
// the tensor on the ranks is.
func (d *draw) makeOnRanks(target string, kwargs, moved []starlark.Tuple, call func(kwargs []starlark.Tuple) (starlark.Value, error)) (starlark.Value, error) {
	if slices.ContainsFunc(moved, asSum) && slices.ContainsFunc(ops.Table().Lookup(target), func(d *op.Def) bool { return d.Traits.Has(op.Random) }) {
		return nil, local("random source op only support broadcast or split")
	}
	leaf := false
	var rest []starlark.Tuple
	for _, kw := range kwargs {
		if kw[0] != starlark.Value(starlark.String("requires_grad")) {
			rest = append(rest, kw)
			continue
		}
		v, err := d.drawnValue(kw[1])
		if err != nil {
			return nil, err
		}
		leaf = bool(v.Truth())
	}
	made, err := call(rest)
	s, ok := made.(*symbol)
	if !ok || err != nil {
		return made, err
	}
	placed, err := d.toGlobalOf(s, "to_global", nil, moved, false)
	if err != nil || !leaf {
		return placed, err
	}
	return d.call("Tensor.requires_grad_", placed.(*symbol), nil, nil)
}

// asSum reports whether an argument is an sbp with summands.
func asSum(kw starlark.Tuple) bool { return slices.ContainsFunc(sbpTuple(kw[1]), isSum) }

// drawnValue is a value, or what a generator of it gives.
func (d *draw) drawnValue(v starlark.Value) (starlark.Value, error) {
	if g, ok := v.(*generator); ok {
		return g.draw(d.thread, (*gen.Node).Value)
	}
	return v, nil
}

// placementText writes a placement as programs have it.
func (d *draw) placementText(v starlark.Value) (string, error) {
	v, err := d.drawnValue(v)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case placement:
		return v.Device + v.Nested(), nil
	case starlark.String:
		return string(v), nil
	}
	return "", fmt.Errorf("to_global: argument 'placement' is a placement, not a %s", v.Type())
}

// sbpText writes an sbp, or one for each dimension of a hierarchy, as programs have it.
func (d *draw) sbpText(v starlark.Value) (string, error) {
	v, err := d.drawnValue(v)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case sbp:
		return v.short(), nil
	case starlark.String:
		return string(v), nil
	case starlark.Sequence:
		var parts []string
		for e := range starlark.Elements(v) {
			part, err := d.sbpText(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		if len(parts) == 1 {
			return parts[0], nil
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "", fmt.Errorf("to_global: argument 'sbp' is an sbp or a sequence of them, not a %s", v.Type())
}

// short is S(0), B or P.
func (s sbp) short() string {
	if s.Kind == 'S' {
		return fmt.Sprintf("S(%d)", s.Axis)
	}
	return string(rune(s.Kind))
}

// globalNames are oneflow's own names for placements and sbps.
var globalNames = map[string]starlark.Value{
	"placement": placementMaker{declare("placement", []string{"type", "ranks"}, makePlacement)},
	"sbp": &library{name: "oneflow.sbp", names: map[string]starlark.Value{
		"broadcast":   sbp{Kind: 'B'},
		"partial_sum": sbp{Kind: 'P'},
		"sbp":         &pyType{name: "sbp"},
		"split": declare("split", []string{"dim", "axis"}, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
			name := "dim"
			if a.get(name) == nil { // its older name
				name = "axis"
			}
			axis, err := a.whole(t, name, 0)
			return sbp{Kind: 'S', Axis: axis}, err
		}),
	}},
	"env": &library{name: "oneflow.env", names: map[string]starlark.Value{
		"get_rank": ownRank("get_rank"), "get_local_rank": ownRank("get_local_rank"),
		"get_world_size": rankFact("get_world_size", gen.Nodes*gen.RanksPerNode), "get_node_size": rankFact("get_node_size", gen.Nodes),
		"is_multi_client":      declare("is_multi_client", nil, func(*starlark.Thread, arguments) (starlark.Value, error) { return starlark.True, nil }),
		"all_device_placement": declare("all_device_placement", []string{"type"}, allRanks),
	}},
}

// ownRank is a function that gives 0: a test file is run as rank 0 runs it.
func ownRank(name string) *starlark.Builtin {
	return declare(name, nil, func(t *starlark.Thread, _ arguments) (starlark.Value, error) {
		if d, ok := t.Local(drawKey).(*draw); ok {
			d.ranked = true
		}
		return starlark.MakeInt(0), nil
	})
}

// rankFact is a function of oneflow.env that gives a number.
func rankFact(name string, n int) *starlark.Builtin {
	return declare(name, nil, func(*starlark.Thread, arguments) (starlark.Value, error) { return starlark.MakeInt(n), nil })
}

// allRanks gives the placement of all ranks.
func allRanks(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	device, err := a.device()
	if err != nil {
		return nil, err
	}
	return placement{gen.AllPlacements(device)[0]}, nil
}

// placementMaker is oneflow.placement, which has a method all.
type placementMaker struct{ *starlark.Builtin }

// AttrNames returns all.
func (placementMaker) AttrNames() []string { return []string{"all"} }

// Attr returns what gives the placement of all ranks.
func (placementMaker) Attr(name string) (starlark.Value, error) {
	if name != "all" {
		return nil, nil
	}
	return declare("all", []string{"type"}, allRanks), nil
}

// makePlacement gives a placement of ranks, a list or nested ones.
func makePlacement(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	device, err := a.device()
	if err != nil {
		return nil, err
	}
	p := gen.Placement{Device: device}
	if err := a.hierarchy(a.get("ranks"), 0, &p); err != nil {
		return nil, err
	}
	return placement{p}, nil
}

// device is the kind of device of a placement.
func (a arguments) device() (string, error) {
	if v, ok := a.get("type").(starlark.String); ok && v != "" {
		return string(v), nil
	}
	return "", a.wrong("type", `"cpu" or "cuda"`)
}

// hierarchy reads nested lists of ranks, which have to be a box.
func (a arguments) hierarchy(v starlark.Value, depth int, p *gen.Placement) error {
	if v == nil {
		return a.wrong("ranks", "lists of ranks")
	}
	if n, err := starlark.AsInt32(v); err == nil && depth == len(p.Hierarchy) && n >= 0 {
		p.Ranks = append(p.Ranks, n)
		return nil
	}
	list, ok := v.(starlark.Sequence)
	if !ok || list.Len() == 0 || depth > 8 {
		return a.wrong("ranks", "lists of ranks")
	}
	if depth == len(p.Hierarchy) && p.Ranks == nil {
		p.Hierarchy = append(p.Hierarchy, list.Len())
	}
	if depth >= len(p.Hierarchy) || list.Len() != p.Hierarchy[depth] {
		return a.wrong("ranks", "lists of equal lengths")
	}
	for e := range starlark.Elements(list) {
		if err := a.hierarchy(e, depth+1, p); err != nil {
			return err
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

var (
	_ starlark.HasAttrs = placement{}
	_ starlark.Callable = sbp{}
)
