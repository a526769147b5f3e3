package interp

import (
	"fmt"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/arg"
	"plumb/internal/autograd"
	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/internal/inplace"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

type builtModule struct {
	name   string
	module *nn.Module
}

// construct makes a module, gives it its initial state and reports that.
func (r *Run) construct(c *program.Call) (*value, error) {
	def := r.modules.Lookup(c.Target)
	if def == nil {
		return nil, fmt.Errorf("%w %s", op.ErrUnknown, c.Target)
	}
	args, kwargs, err := c.OpArgs(r.lookupModule)
	if err != nil {
		return nil, err
	}
	m, err := def.New(args, r.withDType(def, kwargs))
	if err != nil {
		return nil, err
	}
	if !def.Container { // whose modules have their state
		if err := r.loadState(c.Result, m); err != nil {
			return nil, err
		}
	}
	r.built = append(r.built, builtModule{c.Result, m})
	if r.out.Initial == nil {
		r.out.Initial = map[string]backend.State{}
	}
	r.out.Initial[c.Result] = r.stateOf(m)
	return &value{module: m}, nil
}

// withDType adds the program's default dtype to a constructor's arguments.
func (r *Run) withDType(def *nn.Def, kwargs []op.Kwarg) []op.Kwarg {
	d := r.job.Program.DType
	if d == tensor.Invalid || !def.Sigs()[0].Takes(arg.DType) || slices.ContainsFunc(kwargs, func(k op.Kwarg) bool { return k.Name == "dtype" }) {
		return kwargs
	}
	return append(slices.Clone(kwargs), op.Kw("dtype", d))
}

// lookupModule is lookup for constructors of containers, which take modules.
func (r *Run) lookupModule(ref program.Ref) (any, error) {
	if m := r.env[ref].module; m != nil {
		return m, nil
	}
	return r.lookup(ref)
}

// loadState sets a module's state: the reference's where the job brings it,
// else one that follows from the program's seed.
func (r *Run) loadState(name string, m *nn.Module) error {
	given := map[string]*tensor.Tensor{}
	for _, n := range r.job.State[name] {
		given[n.Name] = n.Tensor
	}
	for _, s := range m.State() {
		t := given[s.Name]
		switch {
		case t != nil:
			t = t.Clone()
		case s.Fill != nil || s.Given != nil:
			t = gradOf(m.Value(s.Name))
		default:
			t = r.initial(name, s)
		}
		if err := m.Load(s.Name, r.session.Leaf(t, s.Kind == nn.Param)); err != nil {
			return op.RuntimeError("%v", err)
		}
		if r.space != nil {
			r.space.Leaf(m.Value(s.Name))
		}
	}
	return nil
}

// initial draws a parameter from U[-1/√n, 1/√n), n the elements per output,
// as PyTorch's default initialisation does up to the random stream.
func (r *Run) initial(module string, s nn.Slot) *tensor.Tensor {
	fan := 1
	for _, n := range s.Shape[min(1, len(s.Shape)):] {
		fan *= max(n, 1)
	}
	bound := 1 / math.Sqrt(float64(fan))
	in := program.Input{DType: s.DType, Shape: s.Shape, Fill: program.Fill{
		Dist: program.Uniform, Lo: -bound, Hi: bound, Key: choice.DeriveName(r.job.Program.Seed, module+"."+s.Name),
	}}
	return in.Materialize()
}

func (r *Run) stateOf(m *nn.Module) backend.State {
	var st backend.State
	for _, s := range m.State() {
		st = append(st, backend.Named{Name: s.Name, Tensor: r.session.Kept(gradOf(m.Value(s.Name)))})
	}
	return st
}

// report adds the slots of a module's tensors.
func (r *Run) report(part backend.Part, module string, st backend.State) {
	for _, n := range st {
		r.out.Add(backend.Place{Part: part, Owner: module, Name: n.Name}, n.Tensor)
	}
}

// moduleCall runs a method of a module; "__call__" is its forward.
func (r *Run) moduleCall(method string, c *program.Call) (*value, error) {
	recv := r.env[c.Args[0].(program.Ref)]
	if recv.module == nil {
		return nil, op.TypeError("the receiver of %s is not a module", method)
	}
	if c.Target == program.ModuleToGlobal {
		return r.placeModule(recv, c)
	}
	rest := program.Call{Args: c.Args[1:], Kwargs: c.Kwargs}
	args, kwargs, err := rest.OpArgs(r.lookup)
	if err != nil {
		return nil, err
	}
	switch method {
	case "__call__", "forward":
		if err := r.update(recv.module); err != nil {
			return nil, err
		}
		before := r.buffers(recv.module)
		out, err := recv.module.Call(r.builder(), args, kwargs)
		if err != nil {
			return nil, err
		}
		for name, old := range before {
			if now := recv.module.Value(name); now != old {
				if err := r.space.Assign(old, now); err != nil {
					return nil, err
				}
			}
		}
		return wrapModule(out, recv.module.Def.Paired), nil
	case "train":
		bound, err := trainSig.Bind(args, kwargs, false)
		if err != nil {
			return nil, err
		}
		recv.module.Train(bound.Vals[0].(bool))
		return recv, nil
	case "eval":
		recv.module.Train(false)
		return recv, nil
	}
	if d, ok := nn.Conversion(method, args); ok && len(kwargs) == 0 {
		recv.module.Convert(d, r.converted(d))
		return recv, nil
	}
	return r.part(recv.module, method, args)
}

// converted makes leaves of a dtype from parameters and buffers.
func (r *Run) converted(d tensor.DType) func(v op.Value, kind nn.Kind) op.Value {
	return func(v op.Value, kind nn.Kind) op.Value {
		leaf := r.session.Leaf(gradOf(r.builder().Cast(v, d)), kind == nn.Param)
		if r.space != nil {
			r.space.Leaf(leaf)
		}
		return leaf
	}
}

// update gives a module what calls in place have left in its parameters that
// require no gradient: those of others have the same variable.
func (r *Run) update(m *nn.Module) error {
	if r.space == nil {
		return nil
	}
	for _, s := range m.State() {
		held := m.Value(s.Name)
		now, err := r.space.Current(held)
		if err == nil && now != held {
			err = m.Load(s.Name, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buffers are those of a module, of which a forward may change what earlier
// names stand for; none where the program has not read any.
func (r *Run) buffers(m *nn.Module) map[string]op.Value {
	if r.space == nil {
		return nil
	}
	found := map[string]op.Value{}
	for _, s := range m.State() {
		if s.Kind == nn.Buffer {
			found[s.Name] = m.Value(s.Name)
		}
	}
	return found
}

// readBuffer notes that a name stands for a buffer, which calls of its module
// change in place.
func (r *Run) readBuffer(m *nn.Module, name string) {
	isBuffer := func(s nn.Slot) bool { return s.Name == name && s.Kind == nn.Buffer }
	if r.space == nil && slices.ContainsFunc(m.State(), isBuffer) {
		r.space = inplace.New(r.table, host{r.session})
	}
}

// part returns what a module holds: by name, or all of a kind with their names.
func (r *Run) part(m *nn.Module, method string, args []any) (*value, error) {
	kinds := map[string]nn.Kind{"named_parameters": nn.Param, "get_parameter": nn.Param, "named_buffers": nn.Buffer, "get_buffer": nn.Buffer}
	kind, ok := kinds[method]
	if !ok {
		return nil, fmt.Errorf("%w: Module.%s", errUnsupported, method)
	}
	all := &value{tuple: []*value{}}
	for _, s := range m.State() {
		v, ok := m.Value(s.Name).(*eager.Var)
		if s.Kind != kind || !ok {
			continue
		}
		r.readBuffer(m, s.Name)
		if len(args) == 1 && args[0] == any(s.Name) {
			return &value{tensor: v}, nil
		}
		all.tuple = append(all.tuple, &value{tuple: []*value{{plain: s.Name}, {tensor: v}}})
	}
	if len(args) > 0 {
		return nil, &op.Error{Class: "AttributeError", Msg: fmt.Sprintf("%s has no attribute `%v`", m.Def.Name(), args[0])}
	}
	return all, nil
}

var trainSig = op.MustParseSig("train(bool mode=True)")

// wrapModule makes a module's results a value; paired puts those after the
// first into a tuple of their own.
func wrapModule(out []op.Value, paired bool) *value {
	if paired {
		return &value{tuple: []*value{wrapModule(out[:1], false), wrapModule(out[1:], false)}}
	}
	vs := make([]*value, len(out))
	for i, o := range out {
		vs[i] = &value{}
		if o != nil {
			vs[i].tensor = o.(*eager.Var)
		}
	}
	if len(vs) == 1 {
		return vs[0]
	}
	return &value{tuple: vs}
}

func (r *Run) finalState() error {
	for _, m := range r.built {
		if err := r.update(m.module); err != nil {
			return err
		}
		r.report(backend.PartState, m.name, r.stateOf(m.module))
	}
	return nil
}

// paramGrads reports the gradients of parameters, of one that a container
// holds twice under its first name, as named_parameters does; those of the
// first order count in what calls of backward left.
func (r *Run) paramGrads(part backend.Part, grads autograd.Cotangents) (err error) {
	for _, m := range r.built {
		seen := map[op.Value]bool{}
		for _, s := range m.module.State() {
			v := m.module.Value(s.Name)
			g := gradOf(grads[v])
			if part == backend.PartParamGrad {
				if g, err = r.leafGrad(v, grads); err != nil {
					return err
				}
			}
			if s.Kind == nn.Param && g != nil && !seen[v] {
				r.out.Add(backend.Place{Part: part, Owner: m.name, Name: s.Name}, g)
			}
			seen[v] = true
		}
	}
	return nil
}
