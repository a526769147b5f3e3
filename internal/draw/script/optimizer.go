package script

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/program"
	"plumb/tensor"
)

// optimizer is an optimizer of torch.optim in a test. Its steps are recorded as
// the operators that they are made of, since a program has no optimizers.
type optimizer struct {
	d       *draw
	def     *optim.Def
	o       *optim.Optimizer
	symbols map[*optim.Param]*symbol
	groups  *starlark.List // param_groups: what a test changes there holds for the next step
	zero    *zero          // how a graph shards its states; nil: it does not
	sharded map[*optim.Param]*spread
	missed  map[*optim.Param]bool // had no gradient in a step
}

func (o *optimizer) String() string        { return o.o.Def.Name }
func (o *optimizer) Type() string          { return "torch.optim." + o.o.Def.Name }
func (o *optimizer) Freeze()               {}
func (o *optimizer) Truth() starlark.Bool  { return true }
func (o *optimizer) Hash() (uint32, error) { return hashString(fmt.Sprintf("%p", o)) }
func (o *optimizer) AttrNames() []string {
	return []string{"add_param_group", "param_groups", "step", "zero_grad"}
}

// withoutEffect are the options of OneFlow's optimizers that say how a step is
// made, not what it results in, and do_bias_correction, which PyTorch always does.
var withoutEffect = map[string]bool{"contiguous_params": true, "do_bias_correction": true, "fused": true}

// passesOver reports whether an option changes nothing that an optimizer results in.
func passesOver(def *optim.Def, name string) bool {
	return withoutEffect[name] && !(def == optim.LAMB() && name == "do_bias_correction")
}

// optimizing makes optimizers and schedules; nil for other calls.
func (p path) optimizing(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	name := string(p[strings.LastIndexByte(string(p), '.')+1:])
	if strings.HasPrefix(string(p), "torch.optim.lr_scheduler.") {
		return newSchedule(t, name, args, kwargs)
	}
	def := optim.Lookup(name)
	if def == nil && p == "torch.optim.LAMB" {
		def = optim.LAMB()
	}
	if def == nil || !strings.HasPrefix(string(p), "torch.optim.") {
		return nil, nil
	}
	d, err := drawOf(t, string(p))
	if err != nil {
		return nil, err
	}
	params := starlark.Value(starlark.None)
	rest := args
	if len(args) > 0 {
		params, rest = args[0], args[1:]
	}
	var named []starlark.Tuple
	for _, kw := range kwargs {
		if kw[0] == starlark.String("params") {
			params = kw[1]
		} else if name, _ := starlark.AsString(kw[0]); !passesOver(def, name) {
			named = append(named, kw)
		}
	}
	o := &optimizer{d: d, def: def, symbols: map[*optim.Param]*symbol{}, sharded: map[*optim.Param]*spread{}, missed: map[*optim.Param]bool{}}
	specs, err := o.specs(params)
	if err != nil {
		return nil, err
	}
	given, options, err := d.keywordOptions(rest, named)
	if err != nil {
		return nil, err
	}
	if o.o, err = def.NewGroups(specs, given, options...); err != nil {
		return nil, err
	}
	return o, o.publish()
}

// optionsOf are arguments in the normal form of operators.
func (d *draw) optionsOf(args starlark.Tuple) ([]any, error) {
	var out []any
	for _, v := range args {
		v, err := settled(v)
		if err != nil {
			return nil, err
		}
		a, err := d.toProgram(v)
		if err != nil {
			return nil, err
		}
		if a, err = program.ToOp(a, func(r program.Ref) (any, error) { return nil, fmt.Errorf("%s is no option", r) }); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// specs reads parameters: tensors, or dicts with some and their options.
func (o *optimizer) specs(params starlark.Value) ([]optim.GroupSpec, error) {
	if s, ok := params.(*symbol); ok && s.kind != kindTuple {
		return nil, fmt.Errorf("params argument given to the optimizer should be an iterable of Tensors or dicts, but got %s", s.Type())
	}
	vs, err := iterate(o.d.thread, params)
	if err != nil {
		return nil, err
	}
	var out []optim.GroupSpec
	var plain []starlark.Value
	for _, v := range vs {
		dict, ok := v.(*starlark.Dict)
		if !ok {
			plain = append(plain, v)
			continue
		}
		spec, err := o.group(dict)
		if err != nil {
			return nil, err
		}
		out = append(out, spec)
	}
	if len(plain) > 0 || len(out) == 0 {
		found, err := o.params(plain)
		if err != nil {
			return nil, err
		}
		out = append(out, optim.GroupSpec{Params: found})
	}
	return out, nil
}

// group reads one group of parameters.
func (o *optimizer) group(dict *starlark.Dict) (optim.GroupSpec, error) {
	var spec optim.GroupSpec
	for _, item := range dict.Items() {
		name, _ := starlark.AsString(item[0])
		switch {
		case name == "params":
			vs := []starlark.Value{item[1]}
			if s, ok := item[1].(*symbol); !ok || s.kind == kindTuple {
				var err error
				if vs, err = iterate(o.d.thread, item[1]); err != nil {
					return spec, err
				}
			}
			params, err := o.params(vs)
			if err != nil {
				return spec, err
			}
			spec.Params = params
		case passesOver(o.def, name):
		case strings.HasPrefix(name, "clip_grad_"): // OneFlow's
			return spec, lack("the option %s of an optimizer is not supported in test files", name)
		default:
			v, err := o.d.optionsOf(starlark.Tuple{item[1]})
			if err != nil {
				return spec, err
			}
			spec.Options = append(spec.Options, op.Kw(name, v[0]))
		}
	}
	return spec, nil
}

func (o *optimizer) params(vs []starlark.Value) ([]*optim.Param, error) {
	var out []*optim.Param
	for _, v := range vs {
		if a, ok := v.(*attr); ok {
			s, err := a.resolve()
			if err != nil {
				return nil, err
			}
			v = s
		}
		s, ok := v.(*symbol)
		if !ok {
			return nil, fmt.Errorf("optimizer can only optimize Tensors, but one of the params is %s", v.Type())
		}
		meta, err := s.metaOf()
		if err != nil {
			return nil, err
		}
		p := &optim.Param{Name: string(s.ref), Value: meta}
		o.symbols[p] = s
		out = append(out, p)
	}
	return out, nil
}

// metaOf is the value as operators know it before they compute.
func (s *symbol) metaOf() (*program.Symbol, error) {
	t, err := s.tensor()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%s is not a tensor", s.ref)
	}
	return program.NewSymbol(s.ref, op.Meta{DType: t.DType(), Shape: t.Shape(), Strides: t.Strides()}), nil
}

// publish makes param_groups.
func (o *optimizer) publish() error {
	var groups []starlark.Value
	for _, g := range o.o.Groups {
		dict := starlark.NewDict(4)
		var params []starlark.Value
		for _, p := range g.Params {
			params = append(params, o.symbols[p])
		}
		if err := dict.SetKey(starlark.String("params"), starlark.NewList(params)); err != nil {
			return err
		}
		for _, name := range g.Names() {
			if f, ok := g.Get(name).(float64); ok {
				if err := dict.SetKey(starlark.String(name), starlark.Float(f)); err != nil {
					return err
				}
			}
		}
		groups = append(groups, dict)
	}
	o.groups = starlark.NewList(groups)
	return nil
}

// adopt takes what the test wrote into param_groups.
func (o *optimizer) adopt() {
	for i, g := range o.o.Groups {
		for _, item := range o.groups.Index(i).(*starlark.Dict).Items() {
			name, _ := starlark.AsString(item[0])
			if f, ok := starlark.AsFloat(item[1]); ok && g.Has(name) {
				g.Set(name, f)
			}
		}
	}
}

// Attr returns a method of the optimizer.
func (o *optimizer) Attr(name string) (starlark.Value, error) {
	switch name {
	case "param_groups":
		return o.groups, nil
	case "step":
		return declare(name, []string{"closure"}, o.stepCall), nil
	case "zero_grad":
		return declare(name, []string{"set_to_none"}, func(*starlark.Thread, arguments) (starlark.Value, error) {
			return starlark.None, o.zeroGrad()
		}), nil
	case "add_param_group":
		return builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return starlark.None, o.addGroup(a)
		}), nil
	}
	return nil, lack("%s of an optimizer is not supported in test files", name)
}

func (o *optimizer) addGroup(a starlark.Tuple) error {
	if len(a) != 1 {
		return fmt.Errorf("add_param_group takes a dict")
	}
	dict, ok := a[0].(*starlark.Dict)
	if !ok {
		return fmt.Errorf("add_param_group takes a dict")
	}
	spec, err := o.group(dict)
	if err != nil {
		return err
	}
	o.adopt()
	if err := o.o.AddGroup(spec); err != nil {
		return err
	}
	return o.publish()
}

// zeroGrad leaves no gradient, as PyTorch does from 2.0 on.
func (o *optimizer) zeroGrad() error {
	for _, g := range o.o.Groups {
		for _, p := range g.Params {
			if err := o.symbols[p].SetField("grad", starlark.None); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *optimizer) stepCall(t *starlark.Thread, a arguments) (starlark.Value, error) {
	var loss starlark.Value = starlark.None
	if f := a.get("closure"); f != nil && f != starlark.None {
		var err error
		if loss, err = starlark.Call(t, f, nil, nil); err != nil {
			return nil, err
		}
	}
	return loss, o.step()
}

// step records one update of every parameter that has a gradient.
func (o *optimizer) step() error {
	o.adopt()
	return o.d.within(func() error {
		for _, g := range o.o.Groups {
			for _, p := range g.Params {
				if err := o.read(p); err != nil {
					return err
				}
				if o.missed[p] = o.missed[p] || p.Grad == nil; o.missed[p] && p.Grad != nil && o.def == optim.LAMB() {
					return lack("LAMB counts the steps in which a parameter had no gradient")
				}
				if err := o.shardGradient(p); err != nil {
					return err
				}
			}
		}
		if err := o.o.Step(op.Builder{Applier: applier{o.d, ops.Table()}}); err != nil {
			return err
		}
		for _, g := range o.o.Groups {
			for _, p := range g.Params {
				if p.Grad == nil {
					continue
				}
				updated, err := o.shardState(p, o.d.symbols[p.Value.(*program.Symbol).Ref])
				if err != nil {
					return err
				}
				if _, err := o.d.apply("Tensor.copy_", o.symbols[p], updated); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// read takes a parameter and its gradient as they are now.
func (o *optimizer) read(p *optim.Param) (err error) {
	s := o.symbols[p]
	p.Grad = nil
	if p.Value, err = s.metaOf(); err != nil {
		return err
	}
	g, err := s.d.getattr(s, "grad")
	if err != nil {
		return err
	}
	now, err := g.tensor()
	if err != nil || now == nil {
		return err
	}
	g.kind = kindTensor
	p.Grad, err = g.metaOf()
	return err
}

// applier is an op.Applier that records what is applied as calls of the program.
type applier struct {
	d     *draw
	table *op.Table
}

// Apply records an operator under its public name.
func (r applier) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := r.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	if call.Def.Compose != nil {
		return call.Parts(op.Builder{Applier: r})
	}
	metas, err := call.Infer()
	if err != nil {
		return nil, err
	}
	if len(metas) != 1 {
		return nil, fmt.Errorf("%s has several results", id)
	}
	c := program.Call{Target: publicName(call.Def)}
	for _, a := range args {
		v, err := r.argument(a)
		if err != nil {
			return nil, err
		}
		c.Args = append(c.Args, v)
	}
	for _, kw := range kwargs {
		v, err := r.argument(kw.Value)
		if err != nil {
			return nil, err
		}
		c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: v})
	}
	s, err := r.d.record(c)
	if err != nil {
		return nil, err
	}
	s.kind = kindTensor
	return []op.Value{program.NewSymbol(s.ref, metas[0])}, nil
}

// argument is an operator's argument as the program has it: a tensor that was
// computed beforehand, such as a first state of zeros, is made by a call.
func (r applier) argument(a any) (any, error) {
	t, ok := a.(*tensor.Tensor)
	if !ok {
		return program.FromOp(a), nil
	}
	shape := make(program.Tuple, t.Dim())
	for i, n := range t.Shape() {
		shape[i] = int64(n)
	}
	value := 0.0
	if t.Len() > 0 {
		value = t.Float(0)
	}
	s, err := r.d.record(program.Call{Target: "torch.full", Args: []any{shape, value}, Kwargs: []program.Kwarg{{Name: "dtype", Value: t.DType()}}})
	if err != nil {
		return nil, err
	}
	return s.ref, nil
}

// publicName is the name by which every subject knows an operator.
func publicName(d *op.Def) string {
	i := slices.IndexFunc(d.Names, func(n string) bool { return strings.HasPrefix(n, "torch.") })
	return d.Names[max(i, 0)]
}

// schedule is a schedule of torch.optim.lr_scheduler.
type schedule struct {
	name string
	o    *optimizer
	s    interface{ LastLR() []float64 }
	next func(given *float64) error // a step by what it is given, which may be nothing
}

func (s *schedule) String() string        { return s.name }
func (s *schedule) Type() string          { return "torch.optim.lr_scheduler." + s.name }
func (s *schedule) Freeze()               {}
func (s *schedule) Truth() starlark.Bool  { return true }
func (s *schedule) Hash() (uint32, error) { return hashString(fmt.Sprintf("%p", s)) }
func (s *schedule) AttrNames() []string   { return []string{"get_last_lr", "step"} }

func newSchedule(t *starlark.Thread, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, name)
	if err != nil {
		return nil, err
	}
	def := optim.LookupSchedule(name)
	if def == nil && name != "ReduceLROnPlateau" {
		return nil, lack("torch.optim.lr_scheduler.%s is not supported in test files", name)
	}
	var first starlark.Value
	var named []starlark.Tuple
	for _, kw := range kwargs {
		if kw[0] == starlark.String("optimizer") {
			first = kw[1]
		} else {
			named = append(named, kw)
		}
	}
	if first == nil && len(args) > 0 {
		first, args = args[0], args[1:]
	}
	o, ok := first.(*optimizer)
	if _, own := first.(*object); own {
		return nil, lack("%s of an optimizer of the file's own is not supported in test files", name)
	}
	if !ok {
		return nil, fmt.Errorf("%s needs an optimizer", name)
	}
	o.adopt()
	args, named = d.positionalFunction(args, named)
	given, options, err := d.keywordOptions(args, named)
	if err != nil {
		return nil, err
	}
	s := &schedule{name: name, o: o}
	if def == nil {
		p, err := optim.NewReduceLROnPlateau(o.o, given, options...)
		if err != nil {
			return nil, err
		}
		s.s, s.next = p, func(metric *float64) error {
			if metric == nil {
				return fmt.Errorf("ReduceLROnPlateau.step() missing 1 required positional argument: 'metrics'")
			}
			p.Step(*metric)
			return nil
		}
		return s, o.publish()
	}
	by, err := def.New(o.o, given, options...)
	if err != nil {
		return nil, err
	}
	s.s, s.next = by, func(epoch *float64) error {
		if epoch != nil {
			return lack("%s.step of an epoch is not supported in test files", name)
		}
		return by.Step()
	}
	return s, o.publish()
}

// positionalFunction names a function that comes first.
func (d *draw) positionalFunction(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Tuple, []starlark.Tuple) {
	if len(args) > 0 {
		if fns, _ := functionsOf(args[0]); fns != nil {
			return args[1:], append(kwargs, starlark.Tuple{starlark.String("lr_lambda"), args[0]})
		}
	}
	return args, kwargs
}

// functionsOf are the functions that a value is or lists; nil for others.
func functionsOf(v starlark.Value) (fns []starlark.Callable, listed bool) {
	values, listed := sequence(v)
	if !listed {
		values = []starlark.Value{v}
	}
	for _, e := range values {
		switch fn := e.(type) {
		case *starlark.Function, *starlark.Builtin, *object:
			fns = append(fns, fn.(starlark.Callable))
		default:
			return nil, listed
		}
	}
	return fns, listed
}

// keywordOptions are optionsOf, with those by keyword; functions of an epoch
// stay functions.
func (d *draw) keywordOptions(args starlark.Tuple, kwargs []starlark.Tuple) ([]any, []op.Kwarg, error) {
	given, err := d.optionsOf(args)
	if err != nil {
		return nil, nil, err
	}
	var options []op.Kwarg
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		if fns, listed := functionsOf(kw[1]); listed && fns != nil {
			options = append(options, op.Kw(name, d.ofEpochs(fns)))
			continue
		} else if fns != nil {
			options = append(options, op.Kw(name, d.ofEpoch(fns[0])))
			continue
		}
		v, err := d.optionsOf(starlark.Tuple{kw[1]})
		if err != nil {
			return nil, nil, err
		}
		options = append(options, op.Kw(name, v[0]))
	}
	return given, options, nil
}

// ofEpochs are functions of an epoch, one for every group.
func (d *draw) ofEpochs(fns []starlark.Callable) []func(int) float64 {
	var out []func(int) float64
	for _, fn := range fns {
		out = append(out, d.ofEpoch(fn))
	}
	return out
}

func (d *draw) ofEpoch(fn starlark.Callable) func(int) float64 {
	return func(epoch int) float64 {
		v, err := starlark.Call(d.thread, fn, starlark.Tuple{starlark.MakeInt(epoch)}, nil)
		if err != nil {
			d.fail(err)
			return 0
		}
		f, _ := starlark.AsFloat(v)
		return f
	}
}

// Attr returns a method of the schedule.
func (s *schedule) Attr(name string) (starlark.Value, error) {
	switch name {
	case "step":
		first := "epoch"
		if s.name == "ReduceLROnPlateau" {
			first = "metrics"
		}
		return declare(name, []string{first}, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
			given := a.get(first)
			if given == nil || given == starlark.None {
				return starlark.None, s.step(nil)
			}
			v, err := toFloat(t, starlark.Tuple{given})
			if err != nil {
				return nil, err
			}
			f := float64(v.(starlark.Float))
			return starlark.None, s.step(&f)
		}), nil
	case "get_last_lr":
		return builtin(name, func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			var out []starlark.Value
			for _, lr := range s.s.LastLR() {
				out = append(out, starlark.Float(lr))
			}
			return starlark.NewList(out), nil
		}), nil
	}
	return nil, lack("%s of a schedule is not supported in test files", name)
}

func (s *schedule) step(given *float64) error {
	s.o.adopt()
	if err := s.next(given); err != nil {
		return err
	}
	return s.o.publish()
}
