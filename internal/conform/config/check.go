package config

import (
	"cmp"
	"slices"
)

// maxCases bounds what a config expands to.
const maxCases = 1 << 20

// MaxDTypes bounds a list of dtypes, which many arguments may share.
const MaxDTypes = 256

// entry is a checked entry.
type entry struct {
	name      string
	functions []string
	module    string // of the functions, in Python
	// base is the item of every case, where name, para and the args of
	// tensor_para are still to be put in place.
	base    *Dict
	tensors *Dict // tensor_para, likewise
	paras   []*Dict
	args    []*arg
	dtypes  int // the common length of the args' lists
	rows    int // the number of shape groups
	// tolerances says that the entry has some of its own.
	tolerances bool
}

// arg is one tensor argument, after it was cloned by ins.
type arg struct {
	ins    string
	dict   *Dict // filled with defaults
	dtypes []Value
	shape  []Value // a column of rows; nil without the key
	value  []Value // likewise, and it wins over shape
	stride []Value // likewise, of any length
	sparse []Value
}

// defaults are the keys that come first in each item, in their order.
func defaults() *Dict {
	d := &Dict{}
	d.Set("atol", Float(1e-5))
	d.Set("rtol", Float(1e-5))
	d.Set("atol_half", Float(1e-2))
	d.Set("rtol_half", Float(5e-2))
	d.Set("mismatch_ratio_threshold", Float(1e-3))
	d.Set("memory_format", String("NCHW"))
	d.Set("fp16_exact_match", Bool(false))
	d.Set("train", Bool(true))
	d.Set("gen_policy", String("dafault"))
	return d
}

var (
	entryKeys = []string{
		"name", "interface", "dtype", "gen_fn", "gen_policy", "para", "tensor_para",
		"atol", "rtol", "atol_half", "rtol_half", "mismatch_ratio_threshold", "is_inplace",
		"no_output_ref", "saved_args", "requires_backward", "need_context", "sparse_format", "tag",
		"call", "train",
	}
	tensorKeys = []string{"args", "dtype", "gen_fn", "gen_policy", "seq_name"}
	argKeys    = []string{
		"ins", "shape", "value", "stride", "dtype", "gen_fn", "gen_policy", "gen_num_range",
		"requires_grad", "no_contiguous", "sparse",
	}
	toleranceKeys = []string{"atol", "rtol", "atol_half", "rtol_half", "mismatch_ratio_threshold"}
	policies      = []string{"default", "gen_tensor_by_value", "gen_tensor_list", "gen_tensor_list_diff_shape"}
)

// check turns a source into a config.
func check(s *source) (*Config, error) {
	c := &Config{}
	total := 0
	for _, name := range s.root.Keys() {
		at := place{s, []step{{key: name}}}
		e, err := checkEntry(at, s.root.Get(name))
		if err != nil {
			return nil, err
		}
		n, err := e.count(at)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			at.warnf("this expands to no case")
		}
		if total += n; total > maxCases {
			return nil, at.errorf("the config expands to more than %d cases", maxCases)
		}
		c.entries = append(c.entries, e)
	}
	c.Warnings = s.warnings
	slices.SortStableFunc(c.Warnings, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return c, nil
}

func checkEntry(at place, v Value) (*entry, error) {
	d, err := wantDict(at, v)
	if err != nil {
		return nil, err
	}
	if err := refuseSkip(at, d); err != nil {
		return nil, err
	}
	e := &entry{name: at.path[0].key}
	for _, step := range []func(place, *Dict) error{e.head, e.flags, e.para, e.tensorPara, e.pair} {
		if err := step(at, d); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// refuseSkip finds what belongs to device rules.
func refuseSkip(at place, v Value) error {
	switch v := v.(type) {
	case Skip:
		return at.errorf("Skip belongs to device rules")
	case *Dict:
		for _, k := range v.Keys() {
			if err := refuseSkip(at.key(k), v.Get(k)); err != nil {
				return err
			}
		}
	case List, Tuple:
		list, _ := Items(v)
		for i, x := range list {
			if err := refuseSkip(at.index(i), x); err != nil {
				return err
			}
		}
	}
	return nil
}

// head checks the keys that name functions, and lays out the item.
func (e *entry) head(at place, d *Dict) error {
	if d.Get("name") == nil {
		return at.errorf("name is missing: want the list of the functions")
	}
	names, err := wantStrings(at.key("name"), d.Get("name"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return at.key("name").errorf("the list of the functions is empty")
	}
	seen := map[string]bool{}
	for i, n := range names {
		if seen[n] {
			at.key("name").index(i).warnf("%s is named twice; it expands once", n)
			continue
		}
		seen[n] = true
		e.functions = append(e.functions, n)
	}
	e.module = "torch.nn.functional"
	if v := d.Get("interface"); v != nil {
		modules, err := wantStrings(at.key("interface"), v)
		if err != nil {
			return err
		}
		if len(modules) > 0 {
			e.module = modules[0]
		}
		if len(modules) > 1 {
			at.key("interface").warnf("only the first of %d is used", len(modules))
		}
	}
	e.layOut(d)
	return nil
}

// layOut gives the item its keys in the order of DIOPI's.
func (e *entry) layOut(d *Dict) {
	e.base = defaults()
	d = d.clone("dtype", "gen_fn", "gen_policy")
	for _, k := range []struct {
		name string
		v    Value
	}{
		{"tensor_para", &Dict{}}, {"requires_backward", List{}}, {"para", &Dict{}}, {"tag", List{}}, {"saved_args", &Dict{}}, {"interface", List{}},
	} {
		if d.Get(k.name) == nil {
			d.Set(k.name, k.v)
		}
	}
	for _, k := range d.Keys() {
		e.base.Set(k, d.Get(k))
	}
}

// flags checks the keys that are copied as they are.
func (e *entry) flags(at place, d *Dict) error {
	warnUnknown(at, d, entryKeys)
	for _, k := range toleranceKeys {
		e.tolerances = e.tolerances || d.Get(k) != nil
		if f, ok := Number(e.base.Get(k)); !ok || !(f >= 0) {
			return at.key(k).errorf("want a number that is not negative, not %s", Show(d.Get(k)))
		}
	}
	if v := d.Get("saved_args"); v != nil {
		if _, err := wantDict(at.key("saved_args"), v); err != nil {
			return err
		}
	}
	if v := d.Get("requires_backward"); v != nil {
		list, err := wantList(at.key("requires_backward"), v)
		if err != nil {
			return err
		}
		if err := wantSizes(at.key("requires_backward"), list); err != nil {
			return err
		}
	}
	v := d.Get("is_inplace")
	if _, plain := v.(Bool); v != nil && !plain {
		at.key("is_inplace").warnf("%s is not the literal True, and never enables the in-place form", Show(v))
	}
	if v := d.Get("no_output_ref"); v != nil && Show(v) != "true" {
		at.key("no_output_ref").warnf("%s skips the reference all the same: its being there counts", Show(v))
	}
	return nil
}

// para splits the columns of para into rows.
func (e *entry) para(at place, d *Dict) error {
	at = at.key("para")
	para, err := wantDict(at, e.base.Get("para"))
	if err != nil {
		return err
	}
	for i, k := range para.Keys() {
		column, err := wantList(at.key(k), para.Get(k))
		if err != nil {
			return err
		}
		if len(column) > maxCases {
			return at.key(k).errorf("the entry expands to more than %d cases", maxCases)
		}
		if i == 0 {
			for range column {
				e.paras = append(e.paras, &Dict{})
			}
		}
		if len(column) != len(e.paras) {
			return at.key(k).errorf("%d values beside %d of %s: every column of para is as long as the others", len(column), len(e.paras), para.Keys()[0])
		}
		for j, v := range column {
			e.paras[j].Set(k, v)
		}
	}
	return nil
}

// tensorPara checks and fills the arguments, and clones them by ins.
func (e *entry) tensorPara(at place, d *Dict) error {
	top := at
	at = at.key("tensor_para")
	t, err := wantDict(at, e.base.Get("tensor_para"))
	if err != nil {
		return err
	}
	warnUnknown(at, t, tensorKeys)
	e.tensors = t.clone()
	if t.Get("args") == nil {
		e.tensors.Set("args", List{})
	}
	if t.Get("seq_name") == nil {
		e.tensors.Set("seq_name", String(""))
	}
	args, err := wantList(at.key("args"), e.tensors.Get("args"))
	if err != nil {
		return err
	}
	outer := inherited{top: top, entry: d, tensors: t}
	for i, v := range args {
		if err := e.arg(at.key("args").index(i), v, outer); err != nil {
			return err
		}
	}
	return nil
}

// inherited are the dicts in which an argument's missing keys are looked up.
type inherited struct {
	top            place
	entry, tensors *Dict
}

func (h inherited) get(key string, otherwise Value) (place, Value) {
	if v := h.tensors.Get(key); v != nil {
		return h.top.key("tensor_para").key(key), v
	}
	if v := h.entry.Get(key); v != nil {
		return h.top.key(key), v
	}
	return h.top, otherwise
}

// standardDTypes are the dtypes of an argument that inherits none.
var standardDTypes = List{DType("float16"), DType("float32"), DType("float64"), DType("int32"), DType("int64")}

func (e *entry) arg(at place, v Value, outer inherited) error {
	given, err := wantDict(at, v)
	if err != nil {
		return err
	}
	warnUnknown(at, given, argKeys)
	if err := wantColumns(at, given); err != nil {
		return err
	}
	d := given.clone()
	where := map[string]place{}
	for _, k := range []struct {
		name     string
		inherits bool
		v        Value
	}{
		{"ins", false, List{String("input")}}, {"requires_grad", false, List{Bool(false)}}, {"sparse", false, List{Bool(false)}},
		{"gen_num_range", false, List{}}, {"dtype", true, standardDTypes}, {"gen_fn", true, String("Genfunc.randn")}, {"gen_policy", true, String("default")},
	} {
		if where[k.name] = at.key(k.name); d.Get(k.name) != nil {
			continue
		}
		if k.inherits {
			where[k.name], k.v = outer.get(k.name, k.v)
		}
		d.Set(k.name, k.v)
	}
	names, err := wantStrings(where["ins"], d.Get("ins"))
	if err != nil {
		return err
	}
	a := &arg{dict: d}
	if err := a.read(at, where); err != nil {
		return err
	}
	for _, name := range names {
		clone := *a
		clone.ins = name
		clone.dict = d.clone()
		clone.dict.Set("ins", String(name))
		e.args = append(e.args, &clone)
	}
	return nil
}

// wantColumns holds the values of an argument to the types that DIOPI asserts.
func wantColumns(at place, d *Dict) error {
	for _, k := range d.Keys() {
		switch d.Get(k).(type) {
		case List, Tuple, Bool, String:
			continue
		}
		if k != "gen_fn" && k != "gen_policy" {
			return at.key(k).errorf("want a list, a tuple, a bool or a string, not %s", Show(d.Get(k)))
		}
	}
	return nil
}

// read takes the columns out of the filled dict.
func (a *arg) read(at place, where map[string]place) (err error) {
	if a.dtypes, err = wantList(where["dtype"], a.dict.Get("dtype")); err != nil {
		return err
	}
	if len(a.dtypes) > MaxDTypes {
		return where["dtype"].errorf("%d dtypes are more than %d", len(a.dtypes), MaxDTypes)
	}
	for i, v := range a.dtypes {
		if _, ok := v.(DType); !ok {
			return where["dtype"].index(i).errorf("want a dtype such as np.float32, not %s", Show(v))
		}
	}
	if len(a.dtypes) == 0 {
		return where["dtype"].errorf("the list of dtypes is empty")
	}
	for _, c := range []struct {
		key  string
		into *[]Value
	}{{"shape", &a.shape}, {"value", &a.value}, {"stride", &a.stride}, {"sparse", &a.sparse}} {
		if v := a.dict.Get(c.key); v != nil {
			list, err := wantList(at.key(c.key), v)
			if err != nil {
				return err
			}
			*c.into = append([]Value{}, list...) // not nil when it is empty
		}
	}
	if a.shape == nil && a.value == nil {
		return at.errorf("the argument has neither shape nor value")
	}
	if a.shape != nil && a.value != nil {
		at.key("shape").warnf("value wins over shape, which stays a column")
	}
	for i, v := range a.shape {
		if err := wantShape(at.key("shape").index(i), v, 0); err != nil {
			return err
		}
	}
	return a.generator(at, where)
}

// generator checks how the argument's data is made.
func (a *arg) generator(at place, where map[string]place) error {
	if err := checkGenFn(where["gen_fn"], a.dict.Get("gen_fn")); err != nil {
		return err
	}
	policy, ok := a.dict.Get("gen_policy").(String)
	if !ok {
		return where["gen_policy"].errorf("want a string, not %s", Show(a.dict.Get("gen_policy")))
	}
	if !slices.Contains(policies, string(policy)) {
		where["gen_policy"].warnf("no policy is named %q; there are %v", policy, policies)
	}
	bounds, ok := Items(a.dict.Get("gen_num_range"))
	if ok {
		if err := wantSizes(at.key("gen_num_range"), bounds); err != nil {
			return err
		}
	}
	if policy == "gen_tensor_list" && len(bounds) != 2 {
		return at.key("gen_num_range").errorf("gen_tensor_list wants [low, high], not %s", Show(a.dict.Get("gen_num_range")))
	}
	a.warnFlags(at)
	return nil
}

// warnFlags tells of flags that DIOPI takes differently than they read.
func (a *arg) warnFlags(at place) {
	if s := Show(a.dict.Get("requires_grad")); s != "[true]" && s != "[false]" {
		at.key("requires_grad").warnf("%s is not [True], and computes no gradient", s)
	}
	if v := a.dict.Get("no_contiguous"); v != nil {
		if list, ok := Items(v); ok && len(list) > 0 && Show(list[0]) == "false" {
			at.key("no_contiguous").warnf("a list that is not empty is true: the tensor is transposed")
		}
	}
}

func checkGenFn(at place, v Value) error {
	name := v
	if d, ok := v.(*Dict); ok {
		if name = d.Get("fn"); name == nil {
			return at.errorf("want fn, the generator's name, in the dict")
		}
		warnUnknown(at, d, []string{"fn", "low", "high", "density", "kinks", "scales", "special"})
	}
	s, ok := name.(String)
	if !ok {
		return at.errorf("want a generator such as 'Genfunc.randn' or dict(fn=..., low=..., high=...), not %s", Show(v))
	}
	for _, g := range genfuncs {
		if string(s) == "Genfunc."+g || string(s) == "Genfunc."+g+"_sparse" {
			return nil
		}
	}
	at.warnf("no generator is named %q", s)
	return nil
}
