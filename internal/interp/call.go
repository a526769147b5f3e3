package interp

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// scoped runs a call within its with statements.
func (r *Run) scoped(c *program.Call) (v *value, err error) {
	if len(c.Scopes) == 0 {
		return r.call(c)
	}
	for _, s := range c.Scopes {
		if strings.HasSuffix(s.Target, "autocast") {
			return nil, fmt.Errorf("%w: %s", errUnsupported, s.Target)
		}
	}
	if r.space != nil {
		r.space.Recording(c.Grad())
		defer r.space.Recording(true)
	}
	err = r.session.Recording(c.Grad(), func() error {
		v, err = r.call(c)
		return err
	})
	return v, err
}

func (r *Run) call(c *program.Call) (*value, error) {
	if f := leafCalls[c.Target]; f != nil {
		return f(r, c)
	}
	switch kind, name, _ := strings.Cut(c.Target, "."); {
	case kind == "Module":
		return r.moduleCall(name, c)
	case program.IsModule(c.Target):
		return r.construct(c)
	case c.Target == program.ToGlobal:
		return r.toGlobal(c)
	case c.Target == program.ToLocal:
		return r.toLocal(c)
	case c.Target == "operator.getitem" || c.Target == "getattr":
		if v, err := r.structure(c); v != nil || err != nil {
			return v, err
		}
	}
	args, kwargs, err := c.OpArgs(r.lookup)
	if err != nil {
		return nil, err
	}
	var into *eager.Var
	if c.Out() != "" {
		if into = r.env[c.Out()].tensor; into == nil {
			return nil, fmt.Errorf("%w: out that is no tensor", errUnsupported)
		}
		kwargs = slices.DeleteFunc(kwargs, func(kw op.Kwarg) bool { return kw.Name == "out" })
	}
	call, err := program.Resolve(r.table, c.Target, args, kwargs)
	if err == nil && r.int32s {
		err = r.lengthen(call)
	}
	if err != nil {
		return nil, err
	}
	if into != nil {
		return r.into(c, call, into)
	}
	if x := r.dataOf(call); x != nil {
		return r.throughData(c, call, x)
	}
	out, err := r.execute(call)
	if err != nil {
		return nil, err
	}
	if call.InPlace && call.Def.InPlace.NoResult {
		return &value{}, nil
	}
	if call.MakesLeaf() {
		return &value{tensor: out[0].(*eager.Var)}, r.wantGrad(c, out[0].(*eager.Var), true)
	}
	return wrap(call, out), nil
}

// lengthen converts indices that have to be int64 from int32.
func (r *Run) lengthen(call *op.Call) error {
	for _, h := range call.Def.Long {
		v, ok := call.Args.Any(h).(op.Value)
		if !ok || v.DType() != tensor.I32 {
			continue
		}
		cast, err := program.Resolve(r.table, "Tensor.to", []any{v}, []op.Kwarg{op.Kw("dtype", tensor.I64)})
		if err != nil {
			return err
		}
		long, err := r.session.Execute(cast)
		if err != nil {
			return err
		}
		call.Args.Vals[call.Args.Sig.Index(h)] = long[0]
	}
	return nil
}

// lookup returns what a name stands for as an operator's argument.
func (r *Run) lookup(ref program.Ref) (any, error) {
	v := r.env[ref]
	if err := r.refresh(v); err != nil {
		return nil, err
	}
	switch {
	case v.tensor != nil:
		return v.tensor, nil
	case v.tuple != nil:
		list := make([]any, len(v.tuple))
		for i, e := range v.tuple {
			if e.tensor != nil {
				list[i] = e.tensor
			} else {
				list[i] = e.plain
			}
		}
		return list, nil
	case v.module != nil:
		return nil, fmt.Errorf("%w: the module %s as an argument", errUnsupported, ref)
	}
	return v.plain, nil
}

// execute applies a call, in place where it says so.
func (r *Run) execute(call *op.Call) ([]op.Value, error) {
	if r.space != nil {
		return r.space.Execute(call)
	}
	return r.session.Execute(call)
}

// builder is what modules are written on.
func (r *Run) builder() op.Builder {
	b := r.session.Builder()
	if r.space != nil {
		b = r.space.Builder()
	}
	if t, ok := r.session.(*Trace); ok && t.outline != nil {
		b.Applier = scoped{b.Applier, t}
	}
	return b
}

// refresh brings the tensors that a name stands for up to date.
func (r *Run) refresh(v *value) error {
	if r.space == nil {
		return nil
	}
	if v.tensor != nil {
		now, err := r.space.Current(v.tensor)
		if err != nil {
			return err
		}
		v.tensor = now.(*eager.Var)
	}
	for _, e := range v.tuple {
		if err := r.refresh(e); err != nil {
			return err
		}
	}
	return nil
}
