package autograd

import (
	"fmt"
	"slices"
	"strings"

	"plumb/op"
)

const vjpSuffix = "__vjp"

// IsVJP reports whether an id is that of an operator that VJP makes.
func IsVJP(id string) bool {
	base, _, _ := strings.Cut(id, ".")
	return strings.HasSuffix(base, vjpSuffix)
}

// VJPName returns the id of the operator that computes the gradients of another.
func VJPName(id string) string {
	base, overload, has := strings.Cut(id, ".")
	if has {
		return base + vjpSuffix + "." + overload
	}
	return base + vjpSuffix
}

// OfVJP returns the id of the operator whose gradients that of an id computes.
func OfVJP(id string) string {
	base, overload, has := strings.Cut(id, ".")
	base = strings.TrimSuffix(base, vjpSuffix)
	if has {
		return base + "." + overload
	}
	return base
}

// vjp is the operator that computes the gradients of d.
type vjp struct {
	table *op.Table
	d     *op.Def
	args  int // parameters of d
	many  bool
	outs  int
}

// VJP returns the literal of an operator over a table that computes the gradients of d
// by its own rule. Its arguments are those of d, its results and their gradients, then the
// places, among the tensors of all of d's arguments, of those whose gradients are
// wanted. It is a composition, so that it has gradients of its own, and VJP too.
func VJP(table *op.Table, d *op.Def) (*op.Def, error) {
	sig := d.Sigs()[0]
	switch {
	case !d.Differentiable():
		return nil, op.RuntimeError("%s has no gradient", d.ID())
	case d.Traits.Has(op.Random):
		return nil, op.RuntimeError("%s: gradients of what is drawn are not given, whose draw only the call knows", d.ID())
	}
	v := &vjp{table: table, d: d, args: len(sig.Params), many: sig.Many, outs: len(sig.Results)}
	sigs := make([]string, len(d.Sigs()))
	for i, s := range d.Sigs() {
		sigs[i] = v.signature(s)
	}
	return &op.Def{
		Sig: sigs[0], More: sigs[1:],
		Doc:     "Gradients of " + d.ID() + ".",
		Compose: v.compose,
		Tol:     op.Tol{Class: d.Tol.Class, ULP: d.Tol.ULP, Terms: d.Tol.Terms, Reason: "that of " + d.ID()},
	}, nil
}

// signature returns that of the gradients of calls by one of the signatures.
func (v *vjp) signature(of *op.Sig) string {
	params := of.Written()
	own := fmt.Sprintf("vjp%d", 1+strings.Count(v.d.ID(), vjpSuffix)) // gradients of gradients have parameters of each
	if v.many {
		params = append(params, "Tensor[] "+own+"_results", "Tensor[] "+own+"_gradients")
	} else {
		for i := range v.outs {
			params = append(params, fmt.Sprintf("Tensor %s_result%d", own, i))
		}
		for i := range v.outs {
			params = append(params, fmt.Sprintf("Tensor? %s_gradient%d", own, i))
		}
	}
	params = append(params, "int[] "+own+"_wanted")
	return fmt.Sprintf("%s(%s) -> Tensor[]", VJPName(v.d.ID()), strings.Join(params, ", "))
}

func (v *vjp) compose(b op.Builder, a op.Args) []op.Value {
	own := op.Args{Sig: v.d.Sigs()[0], Vals: a.Vals[:v.args]}
	tensors := own.AllValues()
	var wanted []op.Value
	for _, i := range a.Vals[len(a.Vals)-1].([]int) {
		if i < 0 || i >= len(tensors) {
			op.Fail(op.IndexError("the gradient of tensor %d is wanted, of %d", i, len(tensors)))
		}
		wanted = append(wanted, tensors[i])
	}
	results, cot := v.results(a)
	grads := v.gradients(b, own, results, cot, wanted)
	out := make([]op.Value, len(wanted))
	for i, x := range wanted {
		if out[i] = grads[x]; out[i] == nil {
			out[i] = b.FullLike(x, 0)
		}
	}
	return out
}

// results returns the results of the call and their gradients.
func (v *vjp) results(a op.Args) (results, cot []op.Value) {
	if v.many {
		return a.Vals[v.args].([]op.Value), a.Vals[v.args+1].([]op.Value)
	}
	for i := range v.outs {
		x, _ := a.Vals[v.args+i].(op.Value)
		g, _ := a.Vals[v.args+v.outs+i].(op.Value)
		results, cot = append(results, x), append(cot, g)
	}
	return results, cot
}

// gradients applies the rule of the operator, or those of its parts, which it
// computes again.
func (v *vjp) gradients(b op.Builder, own op.Args, results, cot, wanted []op.Value) Cotangents {
	t := &taped{Builder: b, table: v.table, needs: map[op.Value]bool{}}
	for _, x := range wanted {
		t.needs[x] = true
	}
	call := &op.Call{Def: v.d, Args: own}
	if v.d.Compose == nil {
		t.note(call, results)
	} else {
		again, err := call.Parts(op.Builder{Applier: t})
		if err != nil {
			op.Fail(err)
		}
		results = again
	}
	grads := Cotangents{}
	for i, g := range cot {
		if g == nil || !t.needs[results[i]] {
			continue
		}
		if err := grads.Seed(b, results[i], g); err != nil {
			op.Fail(err)
		}
	}
	if err := Walk(b, t.nodes, grads, func(x op.Value) bool { return t.needs[x] }); err != nil {
		op.Fail(err)
	}
	return grads
}

// taped applies parts, taking compositions apart, and notes those that lead from what
// is wanted.
type taped struct {
	op.Builder
	table *op.Table
	nodes []Node
	needs map[op.Value]bool
}

// Apply applies an operator by id.
func (t *taped) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := t.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	if call.Def.Compose != nil && !call.Def.Traits.Has(op.NoGrad) {
		return call.Parts(op.Builder{Applier: t})
	}
	out, err := t.Builder.Apply(id, args, kwargs)
	if err == nil {
		t.note(call, out)
	}
	return out, err
}

func (t *taped) note(call *op.Call, out []op.Value) {
	args := call.Args.AllValues()
	itself := len(out) == 1 && slices.Contains(args, out[0])
	if itself || call.Def.Traits.Has(op.NoGrad) || !slices.ContainsFunc(args, func(x op.Value) bool { return t.needs[x] }) {
		return
	}
	t.nodes = append(t.nodes, Node{Call: call, Out: out})
	for _, x := range out {
		if x.DType().IsDifferentiable() {
			t.needs[x] = true
		}
	}
}
