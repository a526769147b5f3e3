package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/global"
	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
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

// spread is how ranks share a value, as far as a test file tells.
type spread struct {
	placement placement
	sbp       starlark.Tuple // nil: it follows from what an operator gives
}

// spreadOf is how the ranks share the result of a call: the methods of keepers
// give it as their tensor lies, of other calls only the placement is known.
func (d *draw) spreadOf(c *program.Call) *spread {
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
	"to_global": true, "to_local": true, "to_consistent": true, "local_to_global": true, "global_to_global": true, "is_global": true, "is_local": true, "is_consistent": true,
}

// follows is how a result lies that an operator gave: by the signature that costs
// least to reach from how its arguments lie.
func (s *symbol) follows() (starlark.Tuple, error) {
	c := s.d.callOf(s.ref)
	unknown := lack("the sbp of %s follows from %s; to_global says one", s.ref, c.Target)
	at := 0
	if i, ok := c.Args[len(c.Args)-1].(int64); ok && c.Target == "operator.getitem" {
		ref, _ := c.Args[0].(program.Ref)
		of := s.d.symbols[ref]
		if of == nil {
			return nil, unknown
		}
		kind, err := of.known()
		if err != nil {
			return nil, err
		}
		if kind == kindTuple {
			if c, at = s.d.callOf(ref), int(i); c == nil {
				return nil, unknown
			}
		}
	}
	lies := map[op.Value]global.SBP{}
	args, kwargs, err := c.OpArgs(func(ref program.Ref) (any, error) {
		of := s.d.symbols[ref]
		if of == nil || of.spread == nil {
			return nil, unknown
		}
		signature, err := of.signature()
		if err != nil {
			return nil, err
		}
		t, err := of.tensor()
		if err != nil || t == nil {
			return nil, unknown
		}
		v := op.Layout(op.Meta{DType: t.DType(), Shape: t.Shape(), Strides: t.Strides()})
		text, err := s.d.sbpText(signature)
		if err != nil {
			return nil, err
		}
		lies[v], err = global.ParseSBP(text)
		return v, err
	})
	if err != nil {
		return nil, err
	}
	call, err := program.Resolve(ops.Table(), c.Target, args, kwargs)
	if err != nil {
		return nil, unknown
	}
	p, err := global.ParsePlacement(s.spread.placement.Device + s.spread.placement.Nested())
	if err != nil {
		return nil, err
	}
	all, err := (&global.Runtime{Placement: p}).Follows(call, func(v op.Value) global.SBP { return lies[v] })
	if err != nil || at < 0 || at >= len(all) {
		return nil, unknown
	}
	var out starlark.Tuple
	for _, e := range all[at] {
		switch axis, split := e.Axis(); {
		case split:
			out = append(out, sbp{Kind: 'S', Axis: axis})
		case e == op.P:
			out = append(out, sbp{Kind: 'P'})
		default:
			out = append(out, sbp{Kind: 'B'})
		}
	}
	return out, nil
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

// toLocal records what rank 0 holds of a tensor.
func (d *draw) toLocal(s *symbol, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var copies starlark.Value
	if err := starlark.UnpackArgs("to_local", args, kwargs, "copy?", &copies); err != nil {
		return nil, err
	}
	if s.spread == nil {
		return nil, local("Expected global tensor for to_local but got local tensor!")
	}
	if _, err := s.signature(); err != nil {
		return nil, err
	}
	switch at := s.spread; {
	case slices.ContainsFunc(at.sbp, func(v starlark.Value) bool { return v.(sbp).Kind == 'P' }):
		return nil, lack("to_local of %s: which summand a rank holds is not said", s.ref)
	case at.placement.Ranks != nil && !slices.Contains(at.placement.Ranks, 0):
		return nil, lack("to_local of %s on rank 0, which is not in %s", s.ref, at.placement)
	}
	at := s.spread
	text, err := d.sbpText(at.sbp)
	if err != nil {
		return nil, err
	}
	c := program.Call{Target: program.ToLocal, Args: []any{s.ref}, Kwargs: []program.Kwarg{{Name: "placement", Value: at.placement.Device + at.placement.Nested()}, {Name: "sbp", Value: text}, {Name: "rank", Value: int64(0)}}}
	out, err := d.moved(s, c)
	if err == nil {
		out.spread = nil
	}
	return out, err
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
	return d.toGlobalOf(s, "to_global", args, kwargs)
}

func (d *draw) toGlobalOf(s *symbol, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
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
	if s.kind == kindModule {
		_, err := d.record(c)
		s.spread, s.entries = &at, nil
		return s, err
	}
	out, err := d.moved(s, c)
	if err == nil {
		out.spread = &at
	}
	return out, err
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
		if s, ok := e.value.(*symbol); ok {
			s.spreadBy(d, kwargs)
		}
	}
	return m, err
}

// spreadBy notes that a parameter of a module of the file is brought to ranks.
func (s *symbol) spreadBy(d *draw, kwargs []starlark.Tuple) {
	at := spread{}
	if s.spread != nil {
		at = *s.spread
	}
	for _, kw := range kwargs {
		if p, ok := kw[1].(placement); ok {
			at.placement = p
		} else if all := sbpTuple(kw[1]); all != nil {
			at.sbp = all
		}
	}
	s.spread = &at
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
func (d *draw) makeOnRanks(kwargs, moved []starlark.Tuple, call func(kwargs []starlark.Tuple) (starlark.Value, error)) (starlark.Value, error) {
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
	placed, err := d.toGlobal(s, nil, moved)
	if err != nil || !leaf {
		return placed, err
	}
	return d.call("Tensor.requires_grad_", placed.(*symbol), nil, nil)
}

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
		"get_rank": rankFact("get_rank", 0), "get_local_rank": rankFact("get_local_rank", 0),
		"get_world_size": rankFact("get_world_size", gen.Nodes*gen.RanksPerNode), "get_node_size": rankFact("get_node_size", gen.Nodes),
		"is_multi_client":      declare("is_multi_client", nil, func(*starlark.Thread, arguments) (starlark.Value, error) { return starlark.True, nil }),
		"all_device_placement": declare("all_device_placement", []string{"type"}, allRanks),
	}},
}

// rankFact is a function of oneflow.env: a test file is run as rank 0 runs it.
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

var (
	_ starlark.HasAttrs = placement{}
	_ starlark.Callable = sbp{}
)
