package config

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Device is a device config: rules that skip cases which a device cannot
// compute, and tolerances that it is held to instead of the config's.
//
// It is written like a config, in a dict of entries with name, para,
// tensor_para and the five tolerances, where a value that is skipped stands in
// Skip(...). A rule holds for the case names "<entry>::<function>" of its key
// and its functions. Its conditions are alternatives: any one skips the case.
// Source: DIOPI's device_configs.py.
type Device struct {
	// Warnings tell of keys and values that have no effect.
	Warnings []*Error
	rules    []*rule
	byName   map[string]*rule
}

// rule is what a device config says about one function of an entry.
type rule struct {
	at      place
	skipAll bool
	tol     *Dict // overrides by key
	para    []condition
	args    []condition
	dtypes  []Value
	used    atomic.Bool
}

// condition skips the cases where an argument's or a parameter's key has one
// of the values.
type condition struct {
	arg, key string // arg is empty for a parameter
	values   []Value
}

var ruleKeys = append([]string{"name", "skip_all", "dtype", "para", "tensor_para"}, toleranceKeys...)

// LoadDevice reads and checks a device config, from Python or YAML as [Load]
// does. The error is an *Error.
func LoadDevice(name string, src []byte) (*Device, error) {
	s, err := readSource(name, src)
	if err != nil {
		return nil, err
	}
	d := &Device{byName: map[string]*rule{}}
	for _, key := range s.root.Keys() {
		if err := d.add(place{s, []step{{key: key}}}, key, s.root.Get(key)); err != nil {
			return nil, err
		}
	}
	d.Warnings = s.warnings
	return d, nil
}

func (d *Device) add(at place, key string, v Value) error {
	dict, err := wantDict(at, v)
	if err != nil {
		return err
	}
	if dict.Get("name") == nil {
		return at.errorf("name is missing: want the list of the functions")
	}
	names, err := wantStrings(at.key("name"), dict.Get("name"))
	if err != nil {
		return err
	}
	warnUnknown(at, dict, ruleKeys)
	r, err := readRule(at, dict)
	if err != nil {
		return err
	}
	d.rules = append(d.rules, r)
	for _, n := range names {
		d.byName[key+"::"+n] = r
	}
	return nil
}

func readRule(at place, d *Dict) (*rule, error) {
	r := &rule{at: at, tol: &Dict{}}
	switch v := d.Get("skip_all").(type) {
	case nil:
	case Bool:
		r.skipAll = bool(v)
	default:
		return nil, at.key("skip_all").errorf("want True or False, not %s", Show(v))
	}
	for _, k := range toleranceKeys {
		v := d.Get(k)
		if v == nil {
			continue
		}
		if f, ok := Number(v); !ok || !(f >= 0) {
			return nil, at.key(k).errorf("want a number that is not negative, not %s", Show(v))
		}
		r.tol.Set(k, v)
	}
	var err error
	if v := d.Get("dtype"); v != nil {
		if r.dtypes, err = skipped(at.key("dtype"), v); err != nil {
			return nil, err
		}
	}
	if err := r.readPara(at.key("para"), d.Get("para")); err != nil {
		return nil, err
	}
	return r, r.readArgs(at.key("tensor_para"), d.Get("tensor_para"))
}

func (r *rule) readPara(at place, v Value) error {
	if v == nil {
		return nil
	}
	para, err := wantDict(at, v)
	if err != nil {
		return err
	}
	for _, k := range para.Keys() {
		values, err := skipped(at.key(k), para.Get(k))
		if err != nil {
			return err
		}
		r.para = append(r.para, condition{key: k, values: values})
	}
	return nil
}

func (r *rule) readArgs(at place, v Value) error {
	if v == nil {
		return nil
	}
	tensors, err := wantDict(at, v)
	if err != nil {
		return err
	}
	warnUnknown(at, tensors, []string{"args"})
	if tensors.Get("args") == nil {
		return nil
	}
	at = at.key("args")
	args, err := wantList(at, tensors.Get("args"))
	if err != nil {
		return err
	}
	for i, a := range args {
		if err := r.readArg(at.index(i), a); err != nil {
			return err
		}
	}
	return nil
}

func (r *rule) readArg(at place, v Value) error {
	d, err := wantDict(at, v)
	if err != nil {
		return err
	}
	names := []string{"input"}
	if d.Get("ins") != nil {
		if names, err = wantStrings(at.key("ins"), d.Get("ins")); err != nil {
			return err
		}
	}
	for _, k := range d.Keys() {
		if k == "ins" {
			continue
		}
		values, err := skipped(at.key(k), d.Get(k))
		if err != nil {
			return err
		}
		for _, n := range names {
			r.args = append(r.args, condition{arg: n, key: k, values: values})
		}
	}
	return nil
}

// skipped are the values that stand in Skip in a list.
func skipped(at place, v Value) ([]Value, error) {
	list, err := wantList(at, v)
	if err != nil {
		return nil, err
	}
	var out []Value
	for i, x := range list {
		s, ok := x.(Skip)
		if !ok {
			at.index(i).warnf("%s skips nothing: want Skip(%s)", Show(x), Show(x))
			continue
		}
		out = append(out, s...)
	}
	return out, nil
}

// Apply returns the case under the rules: with the device's tolerances, or
// the reason why it is skipped. The case itself is not changed.
func (d *Device) Apply(c *Case) (*Case, string) {
	r := d.byName[c.Config+"::"+c.Function]
	if r == nil {
		return c, ""
	}
	r.used.Store(true)
	if r.skipAll {
		return c, "the device config skips all of " + c.Config + "::" + c.Function
	}
	c = c.with(r.tol)
	para, _ := c.Item.Get("para").(*Dict)
	for _, cond := range r.para {
		if v := para.Get(cond.key); v != nil && among(v, cond.values) {
			return c, fmt.Sprintf("the device config skips %s=%s", cond.key, Show(v))
		}
	}
	for _, cond := range r.args {
		for _, arg := range c.arguments() {
			if arg.Get("ins") != String(cond.arg) {
				continue
			}
			if v := first(arg.Get(cond.key)); v != nil && among(v, cond.values) {
				return c, fmt.Sprintf("the device config skips %s with %s %s", cond.arg, cond.key, Show(v))
			}
		}
	}
	for _, arg := range c.arguments() {
		if v := arg.Get("dtype"); among(v, r.dtypes) {
			return c, "the device config skips dtype " + Show(v)
		}
	}
	return c, ""
}

// Unused are warnings about the rules that no case met so far: an entry or a
// function of theirs is misspelt, or the cases were filtered out.
func (d *Device) Unused() []*Error {
	var out []*Error
	for _, r := range d.rules {
		if !r.used.Load() {
			out = append(out, r.at.errorf("the rule meets no case"))
		}
	}
	return out
}

// with is the case with other tolerances.
func (c *Case) with(tol *Dict) *Case {
	if len(tol.Keys()) == 0 {
		return c
	}
	out := *c
	out.Item = c.Item.clone()
	for _, k := range tol.Keys() {
		out.Item.Set(k, tol.Get(k))
	}
	return &out
}

// arguments are the tensor arguments of the case.
func (c *Case) arguments() []*Dict {
	tensors, _ := c.Item.Get("tensor_para").(*Dict)
	if tensors == nil {
		return nil
	}
	list, _ := Items(tensors.Get("args"))
	out := make([]*Dict, 0, len(list))
	for _, v := range list {
		if d, ok := v.(*Dict); ok {
			out = append(out, d)
		}
	}
	return out
}

// DType is the dtype of the case's first tensor argument, by PyTorch's name;
// empty where it has none.
func (c *Case) DType() string {
	for _, a := range c.arguments() {
		if d, ok := a.Get("dtype").(DType); ok {
			return strings.TrimSuffix(string(d), "_")
		}
	}
	return ""
}

// DTypes are the dtypes of the case's tensor arguments by PyTorch's names, each
// once, in the order of the arguments.
func (c *Case) DTypes() []string {
	var out []string
	for _, a := range c.arguments() {
		if d, ok := a.Get("dtype").(DType); ok && !slices.Contains(out, strings.TrimSuffix(string(d), "_")) {
			out = append(out, strings.TrimSuffix(string(d), "_"))
		}
	}
	return out
}

// Differentiates says that an argument requires a gradient.
func (c *Case) Differentiates() bool {
	return slices.ContainsFunc(c.arguments(), func(a *Dict) bool {
		list, ok := a.Get("requires_grad").(List)
		return ok && len(list) == 1 && list[0] == Bool(true)
	})
}

// first is the first element of a list, and else the value: DIOPI asks an
// argument's requires_grad so.
func first(v Value) Value {
	if list, ok := v.(List); ok && len(list) > 0 {
		return list[0]
	}
	return v
}

// among says whether a value equals one of others, as Python's in does.
func among(v Value, others []Value) bool {
	return slices.ContainsFunc(others, func(o Value) bool { return equal(v, o) })
}

// equal is Python's ==: True equals 1 and 1.0, and a tuple equals no list.
func equal(a, b Value) bool {
	if x, ok := a.(Int); ok {
		if y, ok := b.(Int); ok {
			return x == y
		}
	}
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, equal)
	case Tuple:
		b, ok := b.(Tuple)
		return ok && slices.EqualFunc(a, b, equal)
	case Slice:
		b, ok := b.(Slice)
		return ok && slices.EqualFunc(a[:], b[:], equal)
	case *Dict:
		b, ok := b.(*Dict)
		return ok && len(a.keys) == len(b.keys) && !slices.ContainsFunc(a.keys, func(k string) bool {
			return b.Get(k) == nil || !equal(a.Get(k), b.Get(k))
		})
	case None, String, DType:
		return a == b
	}
	return false
}

func numeric(v Value) (float64, bool) {
	if b, ok := v.(Bool); ok {
		if b {
			return 1, true
		}
		return 0, true
	}
	return Number(v)
}
