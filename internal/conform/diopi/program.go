// Package diopi turns the cases of a conformance config into programs: what
// DIOPI generates as inputs, the functions of its CustomizedTest as compositions
// of PyTorch's, and how its own comparison would have judged.
package diopi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plumb/internal/conform/config"
	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// Result names the call of a case's program whose value is the case's output.
// Where there are several they are Result+"0", Result+"1" and so on.
const Result = "result"

// Position tells where among the outputs of its function the value of a call is,
// by the call's name; ok is false of a call that computes no output.
func Position(call string) (at int, ok bool) {
	number, ok := strings.CutPrefix(call, Result)
	if !ok || number == "" {
		return 0, ok
	}
	at, err := strconv.Atoi(number)
	return at, err == nil
}

// Untranslated says why a case has no program.
type Untranslated struct {
	Case   string
	Reason string
}

// Error returns "case: reason".
func (e *Untranslated) Error() string { return e.Case + ": " + e.Reason }

// Program returns the case as a program: its inputs, the calls that compute its
// output, and what is differentiated. The key of each input derives from the
// seed, the case's name and the argument's, so that a case can be generated
// alone, in any order and on any machine. Inputs are named as the arguments,
// those of a list with their number behind, and the output is named [Result].
// A function without a name of its own in PyTorch is a composition of calls.
// The program has no tolerance: see [config.Case.Tolerance].
//
// The error is an *[Untranslated].
func Program(c *config.Case, seed uint64) (*program.Program, error) {
	b, err := newBuild(c, seed, false)
	if err != nil {
		return nil, err
	}
	return b.whole()
}

// Sparse returns the variant of the case in which the arguments that the config
// makes sparse are so, over the same inputs as [Program], which has them dense;
// ok is false where none is.
func Sparse(c *config.Case, seed uint64) (p *program.Program, ok bool, err error) {
	b, err := newBuild(c, seed, true)
	if err != nil || len(b.p.Calls) == 0 {
		return nil, false, err
	}
	p, err = b.whole()
	return p, err == nil, err
}

// whole is the program of the function, forward and backward.
func (b *build) whole() (*program.Program, error) {
	out, err := b.forward()
	if err != nil {
		return nil, err
	}
	b.name(out)
	if err := b.backward(out); err != nil {
		return nil, err
	}
	return b.done()
}

// InPlace returns the variant of the case that changes its first argument, over
// the same inputs as [Program]; ok is false where the case asks for none.
// Its output is to be that of Program, converted to the dtype of the argument.
// Nothing is differentiated.
func InPlace(c *config.Case, seed uint64) (p *program.Program, ok bool, err error) {
	if c.Item.Get("is_inplace") != config.Bool(true) {
		return nil, false, nil
	}
	b, err := newBuild(c, seed, false)
	if err != nil {
		return nil, false, err
	}
	for i := range b.p.Inputs {
		b.p.Inputs[i].RequiresGrad = false
	}
	out, err := b.inPlace()
	if err != nil {
		return nil, false, err
	}
	b.name(out)
	p, err = b.done()
	return p, err == nil, err
}

// Changes lists the arguments that the function may change, as DIOPI's
// ops_with_states does. All others are to be what they were.
func Changes(c *config.Case) []string { return changes[c.Function] }

// changes are ops_with_states.
var changes = map[string][]string{
	"batch_norm": {"running_mean", "running_var"},
	"sgd":        {"param", "buf", "param_grad"},
	"fused_adamw": {
		"params", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs",
	},
	"adam":              {"param", "param_grad", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
	"adamw":             {"param", "param_grad", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
	"adadelta":          {"param", "param_grad", "square_avg", "acc_delta"},
	"rmsprop":           {"param", "param_grad", "square_avg", "grad_avg", "momentum_buffer"},
	"fill_":             {"input"},
	"zero_":             {"input"},
	"copy_":             {"input"},
	"uniform":           {"input"},
	"random":            {"input"},
	"normal_":           {"input"},
	"bernoulli":         {"input"},
	"cast_dtype":        {"out"},
	"embedding":         {"weight"},
	"context_attention": {"out"},
	"token_attention":   {"out"},
	"paged_attention":   {"out"},
	"destindex_copy_kv": {"out"},
	"apply_penalty":     {"logits"},
	"apply_penalty_v2":  {"logits"},
	"batch_norm_gather_stats_with_counts": {
		"running_mean", "running_var",
	},
	"token_softmax_reducev": {"out"},
	"clip_grad_norm_":       {"tensors"},
	"instance_norm":         {"running_mean", "running_var"},
}

// build is a program in the making.
type build struct {
	c      *config.Case
	seed   uint64
	sparse bool // arguments are sparse where the config makes them so
	p      *program.Program
	args   []program.Kwarg // as the function is called: tensors in the config's order, then para
}

// fail is an *Untranslated.
func (b *build) fail(format string, args ...any) error {
	return &Untranslated{b.c.Name, fmt.Sprintf(format, args...)}
}

// newBuild makes the inputs and the arguments.
func newBuild(c *config.Case, seed uint64, sparse bool) (*build, error) {
	b := &build{c: c, seed: choice.DeriveName(seed, c.Name), sparse: sparse}
	b.p = &program.Program{Name: c.Name, Seed: b.seed}
	if err := b.tensors(); err != nil {
		return nil, err
	}
	para, _ := c.Item.Get("para").(*config.Dict)
	if para == nil {
		return b, nil
	}
	for _, k := range para.Keys() {
		v, err := b.value(para.Get(k))
		if err != nil {
			return nil, err
		}
		b.set(k, v)
	}
	return b, nil
}

// set gives an argument its value, at its first place as Python's update does.
func (b *build) set(name string, v any) {
	for i := range b.args {
		if b.args[i].Name == name {
			b.args[i].Value = v
			return
		}
	}
	b.args = append(b.args, program.Kwarg{Name: name, Value: v})
}

// value is a value of para as an argument.
func (b *build) value(v config.Value) (any, error) {
	switch v := v.(type) {
	case config.None:
		return nil, nil
	case config.Bool:
		return bool(v), nil
	case config.Int:
		return int64(v), nil
	case config.Float:
		return float64(v), nil
	case config.String:
		return string(v), nil
	case config.DType:
		return b.dtype(v)
	case config.List:
		vs, err := b.values(v)
		return program.List(vs), err
	case config.Tuple:
		vs, err := b.values(v)
		return program.Tuple(vs), err
	case config.Slice:
		vs, err := b.values(v[:])
		if err != nil {
			return nil, err
		}
		return program.Slice{Start: vs[0], Stop: vs[1], Step: vs[2]}, nil
	}
	return nil, b.fail("%s cannot be an argument", config.Show(v))
}

func (b *build) values(vs []config.Value) ([]any, error) {
	out := make([]any, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = b.value(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (b *build) dtype(v config.Value) (tensor.DType, error) {
	name, ok := v.(config.DType)
	if name == "bool_" {
		name = "bool"
	}
	d, err := tensor.ParseDType(string(name))
	if !ok || err != nil {
		return tensor.Invalid, b.fail("PyTorch has no dtype %s", config.Show(v))
	}
	return d, nil
}

// get returns an argument, and whether it is there.
func (b *build) get(name string) (any, bool) {
	i := slices.IndexFunc(b.args, func(kw program.Kwarg) bool { return kw.Name == name })
	if i < 0 {
		return nil, false
	}
	return b.args[i].Value, true
}

// without are the arguments but those named.
func (b *build) without(names ...string) []program.Kwarg {
	return slices.DeleteFunc(slices.Clone(b.args), func(kw program.Kwarg) bool { return slices.Contains(names, kw.Name) })
}

// call appends a call. Arguments of type program.Kwarg and []program.Kwarg go by
// name, after the others.
func (b *build) call(target string, args ...any) program.Ref {
	c := program.Call{Result: b.p.Unused("step" + strconv.Itoa(len(b.p.Calls))), Target: target}
	for _, a := range args {
		switch a := a.(type) {
		case program.Kwarg:
			c.Kwargs = append(c.Kwargs, a)
		case []program.Kwarg:
			c.Kwargs = append(c.Kwargs, a...)
		default:
			c.Args = append(c.Args, a)
		}
	}
	b.p.Calls = append(b.p.Calls, c)
	return program.Ref(c.Result)
}

// name gives the calls that compute the outputs their names.
func (b *build) name(out []any) {
	for i, v := range out {
		r, ok := v.(program.Ref)
		at := slices.IndexFunc(b.p.Calls, func(c program.Call) bool { return c.Result == string(r) })
		if !ok || at < 0 {
			continue
		}
		name := Result
		if len(out) > 1 {
			name += strconv.Itoa(i)
		}
		out[i] = b.rename(r, program.Ref(b.p.Unused(name)))
	}
}

func (b *build) rename(from, to program.Ref) program.Ref {
	swap := func(r program.Ref) any {
		if r == from {
			return to
		}
		return r
	}
	for i := range b.p.Calls {
		c := &b.p.Calls[i]
		if c.Result == string(from) {
			c.Result = string(to)
		}
		for k := range c.Args {
			c.Args[k] = program.MapRefs(c.Args[k], swap)
		}
		for k := range c.Kwargs {
			c.Kwargs[k].Value = program.MapRefs(c.Kwargs[k].Value, swap)
		}
	}
	return to
}

// backward differentiates the outputs, or those that requires_backward chooses,
// where an input requires a gradient. The cotangents are drawn: with ones the
// gradient of a softmax is zero whatever it is given.
func (b *build) backward(out []any) error {
	if !slices.ContainsFunc(b.p.Inputs, func(in program.Input) bool { return in.RequiresGrad }) && !b.trains() {
		return nil
	}
	out, err := b.chosen(out)
	if err != nil {
		return err
	}
	key := choice.DeriveName(b.seed, "cotangent")
	for i, v := range out {
		if r, ok := v.(program.Ref); ok {
			b.p.Backward = append(b.p.Backward, program.Backward{
				Value: r, Cotangent: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: choice.Derive(key, uint64(i))},
			})
		}
	}
	return nil
}

// beyondFirst is the number of outputs that a choice of several shows; 0 where
// it chooses the first at most, which may be all that there is.
func beyondFirst(chosen []config.Value) int {
	last := config.Int(0)
	for _, v := range chosen {
		if i, ok := v.(config.Int); ok && i < config.MaxDTypes {
			last = max(last, i)
		}
	}
	if last == 0 {
		return 0
	}
	return int(last) + 1
}

// chosen are the outputs that requires_backward names, or all. Those that the
// function returns as a tuple are taken out of it.
func (b *build) chosen(out []any) ([]any, error) {
	n, part := len(out), func(i int) any { return out[i] }
	names, _ := config.Items(b.c.Item.Get("requires_backward"))
	if parts := cmp.Or(b.parts(), beyondFirst(names)); len(out) == 1 && parts > 0 {
		n, part = parts, func(i int) any { return b.call("operator.getitem", out[0], int64(i)) }
	}
	var picked []any
	for _, v := range names {
		i, ok := v.(config.Int)
		if !ok || i < 0 || int(i) >= n {
			return nil, b.fail("requires_backward names output %s of %d", config.Show(v), n)
		}
		picked = append(picked, part(int(i)))
	}
	for i := 0; len(names) == 0 && i < n; i++ {
		picked = append(picked, part(i))
	}
	return picked, nil
}

// done is the program, checked.
func (b *build) done() (*program.Program, error) {
	if err := b.p.Validate(); err != nil {
		return nil, b.fail("%v", err)
	}
	return b.p, nil
}
