package foreign

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"plumb/internal/autograd"
	"plumb/op"
	"plumb/tensor"
)

// Operator describes an operator to those who do not write Go.
type Operator struct {
	ID         string   `json:"id"`
	Doc        string   `json:"doc"`
	Signatures []string `json:"signatures"`
	// Schemas are the signatures as torch.library takes them, one for each; VJP are
	// those of its gradients, none where it has none.
	Schemas []Schema `json:"schemas"`
	VJP     []Schema `json:"vjp,omitempty"`
	NoVJP   string   `json:"novjp,omitempty"` // why it has none, though it is differentiable
	Random  bool     `json:"random,omitempty"`
}

// Schema is a signature in the notation of torch.library.
type Schema struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Why  string `json:"why,omitempty"` // there is no Text
	// Params are the parameters that Text has, in its order, by the name that the
	// operator knows each by; Kinds their types without list and None.
	Params []string `json:"params"`
	Kinds  []string `json:"kinds"`
	Tensor []bool   `json:"tensor"` // a tensor, or a list of them
	Many   bool     `json:"many"`   // its result is a list
	KwOnly []bool   `json:"kwonly"`
	// Unset are parameters that None leaves to their defaults, which torch.library
	// has no notation for.
	Unset []string `json:"unset,omitempty"`
}

// Names returns the functions of the library, each once: the ids up to their dot.
func (l *Library) Names() []string {
	seen := map[string]bool{}
	var names []string
	for _, d := range l.table.Defs() {
		base, _, _ := strings.Cut(d.ID(), ".")
		if !seen[base] {
			seen[base] = true
			names = append(names, base)
		}
	}
	slices.Sort(names)
	return names
}

// Describe describes the operators that a name stands for.
func (l *Library) Describe(name string) (all []*Operator, err error) {
	defer caught(name, &err)
	defs, _ := l.named(name)
	if autograd.IsVJP(name) {
		d, err := l.vjp(name)
		if err != nil {
			return nil, err
		}
		defs = []*op.Def{d}
	}
	if len(defs) == 0 {
		return nil, fmt.Errorf("%w %s", op.ErrUnknown, name)
	}
	for _, d := range defs {
		all = append(all, l.operator(d))
	}
	return all, nil
}

func (l *Library) operator(d *op.Def) *Operator {
	o := &Operator{ID: d.ID(), Doc: d.Doc, Random: d.Traits.Has(op.Random)}
	for i, s := range d.Sigs() {
		o.Signatures = append(o.Signatures, s.String())
		o.Schemas = append(o.Schemas, schema(d, s, overloadName(d.ID(), i), autograd.IsVJP(d.ID())))
	}
	if !d.Differentiable() {
		return o
	}
	v, err := l.vjp(autograd.VJPName(d.ID()))
	switch {
	case err != nil:
		o.NoVJP = err.Error()
	case len(d.Mutates) > 0:
		o.NoVJP = d.ID() + " changes its arguments, so that torch.library has no gradients of it"
	default:
		for i, s := range v.Sigs() {
			o.VJP = append(o.VJP, schema(v, s, overloadName(v.ID(), i), true))
			if !inOrder(s, v.Sigs()[0]) {
				o.VJP[i].Text, o.VJP[i].Why = "", "its parameters have another order than those of "+v.Sigs()[0].String()
			}
		}
	}
	return o
}

// inOrder reports whether a signature has its parameters in the order of the main one.
func inOrder(s, main *op.Sig) bool {
	return slices.IsSortedFunc(s.Params, func(a, b op.Param) int {
		return main.Index(op.AnyArg(a.Name)) - main.Index(op.AnyArg(b.Name))
	})
}

// overloadName names the i-th signature of an operator.
func overloadName(id string, i int) string {
	if i == 0 {
		return id
	}
	base, overload, has := strings.Cut(id, ".")
	if has {
		overload += "_"
	}
	return fmt.Sprintf("%s.%sv%d", base, overload, i)
}

// left are the parameters that callers from outside do not give.
var left = []string{"inplace", "requires_grad", "pin_memory"}

var torchKinds = map[op.Kind]string{
	op.KTensor: "Tensor", op.KScalar: "Scalar", op.KInt: "int", op.KFloat: "float", op.KBool: "bool", op.KStr: "str",
	op.KDType: "ScalarType", op.KFormat: "MemoryFormat",
}

// schema writes a signature for torch.library; bare leaves out defaults, and that
// parameters are by keyword alone.
func schema(d *op.Def, sig *op.Sig, name string, bare bool) Schema {
	s := Schema{Name: name, Many: sig.Many}
	if sig.Plain {
		s.Why = "its result is a Python number"
	}
	var params []string
	starred := false
	for _, p := range sig.Params {
		skip := p.HasDefault && slices.Contains(left, p.Name) || p.Type.Kind == op.KGenerator || p.Type.Kind == op.KDevice
		kind := torchKinds[p.Type.Kind]
		if skip && (p.HasDefault || p.Type.Optional) {
			continue
		}
		if kind == "" || p.Type.Holes && p.Type.Kind == op.KInt {
			s.Why = fmt.Sprintf("torch.library has no type %s, that of %s", p.Type, p.Name)
			continue
		}
		if p.KwOnly && !bare && !starred {
			starred = true
			params = append(params, "*")
		}
		changes := slices.ContainsFunc(d.Mutates, func(m op.TensorArg) bool { return m.Name() == p.Name })
		typ, def := p.Type, torchDefault(p.Default)
		if p.HasDefault && p.Default != nil && typ.List && typ.Kind != op.KInt && typ.Kind != op.KFloat {
			typ.Optional, def = true, "None"
			s.Unset = append(s.Unset, p.Name)
		}
		text := torchType(typ, changes, len(s.Params)) + " " + p.Name
		if p.HasDefault && !bare {
			text += "=" + def
		}
		params = append(params, text)
		s.Params, s.Kinds = append(s.Params, p.Name), append(s.Kinds, p.Type.Kind.String())
		s.Tensor = append(s.Tensor, p.Type.Kind == op.KTensor)
		s.KwOnly = append(s.KwOnly, p.KwOnly && !bare)
	}
	if s.Why == "" {
		s.Text = fmt.Sprintf("%s(%s) -> %s", name, strings.Join(params, ", "), torchResults(sig))
	}
	return s
}

func torchType(t op.Type, changes bool, at int) string {
	s := torchKinds[t.Kind]
	if changes {
		s += fmt.Sprintf("(a%d!)", at)
	}
	if t.Holes {
		s += "?"
	}
	if t.List && t.N > 1 {
		s += fmt.Sprintf("[%d]", t.N)
	} else if t.List {
		s += "[]"
	}
	if t.Optional {
		s += "?"
	}
	return s
}

func torchResults(sig *op.Sig) string {
	if sig.Many {
		return "Tensor[]"
	}
	var rs []string
	for _, r := range sig.Results {
		rs = append(rs, strings.TrimSpace("Tensor "+r))
	}
	return "(" + strings.Join(rs, ", ") + ")"
}

func torchDefault(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return strconv.Quote(v)
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".eni") {
			text += ".0"
		}
		return text
	case op.Scalar:
		return torchDefault(v.Any())
	case tensor.MemoryFormat:
		return v.String()
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		parts := make([]string, list.Len())
		for i := range parts {
			parts[i] = torchDefault(list.Index(i).Interface())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}
