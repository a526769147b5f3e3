package recorded

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"plumb/backend"
	"plumb/program"
	"plumb/safetensors"
	"plumb/tensor"
)

// The JSON text of a baseline. Field names are short: they occur often.
type (
	fileJSON struct {
		Version int          `json:"version"`
		Info    backend.Info `json:"info"`
		Cases   []caseJSON   `json:"cases"`
	}
	caseJSON struct {
		Test    string      `json:"test"`
		ID      string      `json:"id"`
		Program string      `json:"program"`
		Outcome outcomeJSON `json:"outcome"`
	}
	outcomeJSON struct {
		Status     backend.Status         `json:"status"`
		Class      string                 `json:"class,omitempty"`
		Message    string                 `json:"message,omitempty"`
		Call       int                    `json:"call,omitempty"`
		Values     []valueJSON            `json:"values"`
		Initial    map[string][]namedJSON `json:"initial,omitempty"`
		Final      map[string][]namedJSON `json:"final,omitempty"`
		Grads      map[string]*tensorJSON `json:"grads,omitempty"`
		ParamGrads map[string][]namedJSON `json:"param_grads,omitempty"`

		SecondGrads      map[string]*tensorJSON `json:"grads2,omitempty"`
		SecondParamGrads map[string][]namedJSON `json:"param_grads2,omitempty"`
		Stepped          map[string][]namedJSON `json:"stepped,omitempty"`
		// Changes are by the call's index; nil when they are not known.
		Changes *map[int][]namedJSON `json:"changes,omitempty"`
	}
	// valueJSON has one field, and Grad beside Tensor.
	valueJSON struct {
		Tensor *tensorJSON  `json:"t,omitempty"`
		Grad   bool         `json:"grad,omitempty"`
		Tuple  *[]valueJSON `json:"tuple,omitempty"`
		Module bool         `json:"module,omitempty"`
		Plain  *plainJSON   `json:"plain,omitempty"`
	}
	// plainJSON has one field, or none for None.
	plainJSON struct {
		Bool    *bool      `json:"bool,omitempty"`
		Int     *int64     `json:"int,omitempty"`
		Float   *string    `json:"float,omitempty"`
		Complex *[2]string `json:"complex,omitempty"`
		Str     *string    `json:"str,omitempty"`
	}
	namedJSON struct {
		Name   string      `json:"n"`
		Tensor *tensorJSON `json:"t"`
	}
	// tensorJSON takes the elements of a stored tensor, or of an input of the
	// case, in another shape and layout where it says so.
	tensorJSON struct {
		Stored  string `json:"s,omitempty"`
		Input   string `json:"i,omitempty"`
		Shape   *[]int `json:"shape,omitempty"`
		Strides []int  `json:"strides,omitempty"` // nil for contiguous
	}
)

// maxInput is the size, in bytes, of the largest input that tensors refer to.
const maxInput = 16 << 20

// encoder collects tensors by their bits.
type encoder struct {
	tensors []safetensors.Entry
	known   map[string]stored // by dtype and bytes
}

// stored is where bits are to be found: in a stored tensor or in an input.
type stored struct {
	ref   tensorJSON
	shape []int
}

func encode(info backend.Info, cases []Case) ([]safetensors.Entry, []byte, error) {
	e := &encoder{known: map[string]stored{}}
	f := fileJSON{Version: Version, Info: info, Cases: []caseJSON{}}
	seen := map[string]bool{}
	for i, c := range cases {
		id := c.Program.ID()
		if seen[id] {
			continue
		}
		seen[id] = true
		o, err := e.outcome(c)
		if err != nil {
			return nil, nil, fmt.Errorf("case %d (%s): %w", i, c.Test, err)
		}
		f.Cases = append(f.Cases, caseJSON{c.Test, id, c.Program.String(), *o})
	}
	text, err := json.Marshal(f)
	return e.tensors, text, err
}

// caseEncoder also knows the inputs of one case.
type caseEncoder struct {
	*encoder
	inputs map[string]stored
}

func (e *encoder) outcome(c Case) (*outcomeJSON, error) {
	o := c.Outcome
	k := &caseEncoder{e, map[string]stored{}}
	k.addInputs(c.Program)
	out := &outcomeJSON{
		Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call,
		Initial: k.states(o.Initial), Final: k.states(o.Final), ParamGrads: k.states(o.ParamGrads),
		SecondParamGrads: k.states(o.SecondParamGrads), Stepped: k.states(o.Stepped), Changes: k.changes(o.Changes),
	}
	var err error
	if out.Values, err = k.values(o.Values); err != nil {
		return nil, err
	}
	out.Grads, out.SecondGrads = k.grads(o.Grads), k.grads(o.SecondGrads)
	return out, nil
}

func (e *caseEncoder) grads(m map[string]*tensor.Tensor) map[string]*tensorJSON {
	if m == nil {
		return nil
	}
	out := map[string]*tensorJSON{}
	for name, t := range sorted(m) {
		out[name] = e.tensor(t)
	}
	return out
}

func (e *caseEncoder) changes(calls [][]backend.Named) *map[int][]namedJSON {
	if calls == nil {
		return nil
	}
	out := map[int][]namedJSON{}
	for i, changed := range calls {
		if len(changed) > 0 {
			out[i] = e.named(changed)
		}
	}
	return &out
}

func (e *caseEncoder) named(state []backend.Named) []namedJSON {
	list := []namedJSON{}
	for _, n := range state {
		list = append(list, namedJSON{n.Name, e.tensor(n.Tensor)})
	}
	return list
}

func (e *caseEncoder) addInputs(p *program.Program) {
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if !refersTo(in) {
			continue
		}
		t := in.Materialize()
		if key := bits(t); e.inputs[key].shape == nil {
			e.inputs[key] = stored{tensorJSON{Input: in.Name}, t.Shape()}
		}
	}
}

// refersTo reports whether an input is small enough to take elements from.
func refersTo(in *program.Input) bool {
	if tensor.CheckShape(in.DType, in.Shape) != nil {
		return false
	}
	n := tensor.NumElements(in.Shape) * in.DType.Size()
	return n > 0 && n <= maxInput && (in.Strides == nil || modest(in.Shape, in.Strides))
}

// modest reports whether a layout is valid and wastes little memory.
func modest(shape, strides []int) bool {
	if len(strides) != len(shape) {
		return false
	}
	n := tensor.NumElements(shape)
	limit := 4*n + 64
	extent := 1
	for i, s := range strides {
		if s < 0 || s > limit {
			return false
		}
		if shape[i] > 0 {
			extent += (shape[i] - 1) * s
		}
		if extent > limit {
			return false
		}
	}
	return true
}

func bits(t *tensor.Tensor) string { return string(rune(t.DType())) + string(t.Bytes()) }

func (e *caseEncoder) values(vs []backend.Value) ([]valueJSON, error) {
	out := make([]valueJSON, len(vs))
	for i := range vs {
		v, err := e.value(&vs[i])
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

func (e *caseEncoder) value(v *backend.Value) (valueJSON, error) {
	switch {
	case v.Tensor != nil:
		return valueJSON{Tensor: e.tensor(v.Tensor), Grad: v.RequiresGrad}, nil
	case v.IsTuple:
		vs, err := e.values(v.Tuple)
		return valueJSON{Tuple: &vs}, err
	case v.Module:
		return valueJSON{Module: true}, nil
	}
	p, err := plain(v.Plain)
	return valueJSON{Plain: p}, err
}

func plain(v any) (*plainJSON, error) {
	switch v := v.(type) {
	case nil:
		return &plainJSON{}, nil
	case bool:
		return &plainJSON{Bool: &v}, nil
	case int64:
		return &plainJSON{Int: &v}, nil
	case float64:
		s := formatFloat(v)
		return &plainJSON{Float: &s}, nil
	case complex128:
		return &plainJSON{Complex: &[2]string{formatFloat(real(v)), formatFloat(imag(v))}}, nil
	case string:
		return &plainJSON{Str: &v}, nil
	}
	return nil, fmt.Errorf("a %T cannot be recorded", v)
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (e *caseEncoder) states(m map[string]backend.State) map[string][]namedJSON {
	if m == nil {
		return nil
	}
	out := map[string][]namedJSON{}
	for module, state := range sorted(m) {
		out[module] = e.named(state)
	}
	return out
}

// tensor returns where t's elements are to be found; they are stored when they
// are new.
func (e *caseEncoder) tensor(t *tensor.Tensor) *tensorJSON {
	if t == nil {
		return nil
	}
	key := bits(t)
	at, ok := e.inputs[key]
	if !ok {
		at, ok = e.known[key]
	}
	if !ok {
		at = stored{tensorJSON{Stored: fmt.Sprintf("%05d", len(e.tensors))}, t.Shape()}
		e.known[key] = at
		e.tensors = append(e.tensors, safetensors.Entry{Name: at.ref.Stored, Tensor: t})
	}
	ref := at.ref
	if !slices.Equal(at.shape, t.Shape()) {
		shape := append([]int{}, t.Shape()...)
		ref.Shape = &shape
	}
	if !t.IsContiguous() && modest(t.Shape(), t.Strides()) {
		ref.Strides = t.Strides()
	}
	return &ref
}
