package recorded

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"plumb/backend"
	"plumb/tensor"
)

// Structure is the JSON form of an outcome: all but its tensors' elements and
// its elapsed time. Field names are short: they occur often.
type Structure struct {
	Status     backend.Status         `json:"status"`
	Class      string                 `json:"class,omitempty"`
	Message    string                 `json:"message,omitempty"`
	Call       int                    `json:"call,omitempty"`
	Values     []valueJSON            `json:"values"`
	Initial    map[string][]namedJSON `json:"initial,omitempty"`
	Final      map[string][]namedJSON `json:"final,omitempty"`
	Grads      map[string]*TensorRef  `json:"grads,omitempty"`
	ParamGrads map[string][]namedJSON `json:"param_grads,omitempty"`

	SecondGrads      map[string]*TensorRef  `json:"grads2,omitempty"`
	SecondParamGrads map[string][]namedJSON `json:"param_grads2,omitempty"`
	Stepped          map[string][]namedJSON `json:"stepped,omitempty"`
	// Changes are by the call's index; nil when they are not known.
	Changes *map[int][]namedJSON `json:"changes,omitempty"`
}

type (
	// valueJSON has one field, and Grad beside Tensor.
	valueJSON struct {
		Tensor *TensorRef   `json:"t,omitempty"`
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
		Name   string     `json:"n"`
		Tensor *TensorRef `json:"t"`
	}
)

// TensorRef takes the elements of a stored tensor, or of an input of the case,
// in another shape and layout where it says so.
type TensorRef struct {
	Stored  string `json:"s,omitempty"`
	Input   string `json:"i,omitempty"`
	Shape   *[]int `json:"shape,omitempty"`
	Strides []int  `json:"strides,omitempty"` // nil for contiguous
	// Coded is how package conform/baseline keeps a tensor; a file of this
	// package has none.
	Coded *Code `json:"c,omitempty"`
}

// Code says how the elements of a tensor come from its bytes.
type Code struct {
	DType string `json:"d"`
	// By is the coding; see package conform/baseline.
	By string `json:"by"`
	// Like is the place, in the outcome that predicts this one, of the tensor
	// that the bytes are relative to.
	Like string `json:"like,omitempty"`
	// NaN holds the bits that a NaN of the prediction stands for; 0 for its own.
	NaN uint64 `json:"nan,omitempty"`
	// Fill holds the bytes of the one element, in hexadecimal.
	Fill string `json:"fill,omitempty"`
	// Sum is the checksum of the elements' bytes.
	Sum string `json:"sum,omitempty"`
}

// Describe returns the structure of an outcome. Put is asked for each tensor
// where its elements are kept; place tells which one it is: equal places in two
// outcomes of one program are the same result.
func Describe(o *backend.Outcome, put func(place string, t *tensor.Tensor) *TensorRef) (*Structure, error) {
	d := describer{put}
	out := &Structure{
		Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call,
		Initial: d.states("i", o.Initial), Final: d.states("f", o.Final), ParamGrads: d.states("p", o.ParamGrads),
		SecondParamGrads: d.states("q", o.SecondParamGrads), Stepped: d.states("s", o.Stepped), Changes: d.changes(o.Changes),
	}
	var err error
	if out.Values, err = d.values("v", o.Values); err != nil {
		return nil, err
	}
	out.Grads, out.SecondGrads = d.grads("g", o.Grads), d.grads("h", o.SecondGrads)
	return out, nil
}

type describer struct {
	put func(place string, t *tensor.Tensor) *TensorRef
}

func (d describer) tensor(place string, t *tensor.Tensor) *TensorRef {
	if t == nil {
		return nil
	}
	return d.put(place, t)
}

func (d describer) grads(place string, m map[string]*tensor.Tensor) map[string]*TensorRef {
	if m == nil {
		return nil
	}
	out := map[string]*TensorRef{}
	for name, t := range sorted(m) {
		out[name] = d.tensor(place+"."+name, t)
	}
	return out
}

func (d describer) changes(calls [][]backend.Named) *map[int][]namedJSON {
	if calls == nil {
		return nil
	}
	out := map[int][]namedJSON{}
	for i, changed := range calls {
		if len(changed) > 0 {
			out[i] = d.named("c"+strconv.Itoa(i), changed)
		}
	}
	return &out
}

func (d describer) named(place string, state []backend.Named) []namedJSON {
	list := []namedJSON{}
	for _, n := range state {
		list = append(list, namedJSON{n.Name, d.tensor(place+"."+n.Name, n.Tensor)})
	}
	return list
}

func (d describer) states(place string, m map[string]backend.State) map[string][]namedJSON {
	if m == nil {
		return nil
	}
	out := map[string][]namedJSON{}
	for module, state := range sorted(m) {
		out[module] = d.named(place+"."+module, state)
	}
	return out
}

func (d describer) values(place string, vs []backend.Value) ([]valueJSON, error) {
	out := make([]valueJSON, len(vs))
	for i := range vs {
		v, err := d.value(place+"."+strconv.Itoa(i), &vs[i])
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

func (d describer) value(place string, v *backend.Value) (valueJSON, error) {
	switch {
	case v.Tensor != nil:
		return valueJSON{Tensor: d.tensor(place, v.Tensor), Grad: v.RequiresGrad}, nil
	case v.IsTuple:
		vs, err := d.values(place, v.Tuple)
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

// Outcome returns the outcome of a program of so many calls. Get returns the
// tensor that a reference, which is never nil, stands for.
func (s *Structure) Outcome(calls int, get func(*TensorRef) (*tensor.Tensor, error)) (*backend.Outcome, error) {
	if n := len(s.Values); n > calls {
		return nil, fmt.Errorf("%d values for %d calls", n, calls)
	}
	d := restorer{calls, get}
	o := &backend.Outcome{Status: s.Status, Class: s.Class, Message: s.Message, Call: s.Call}
	var errs [9]error
	o.Values, errs[0] = d.values(s.Values)
	o.Initial, errs[1] = d.states(s.Initial)
	o.Final, errs[2] = d.states(s.Final)
	o.ParamGrads, errs[3] = d.states(s.ParamGrads)
	o.Grads, errs[4] = d.grads(s.Grads)
	o.SecondGrads, errs[5] = d.grads(s.SecondGrads)
	o.SecondParamGrads, errs[6] = d.states(s.SecondParamGrads)
	o.Changes, errs[7] = d.changes(s.Changes)
	o.Stepped, errs[8] = d.states(s.Stepped)
	return o, errors.Join(errs[:]...)
}

type restorer struct {
	calls int
	get   func(*TensorRef) (*tensor.Tensor, error)
}

// tensor returns the tensor that j describes; nil for nil.
func (d restorer) tensor(j *TensorRef) (*tensor.Tensor, error) {
	if j == nil {
		return nil, nil
	}
	return d.get(j)
}

func (d restorer) values(js []valueJSON) ([]backend.Value, error) {
	out := make([]backend.Value, len(js))
	for i := range js {
		v, err := d.value(&js[i])
		if err != nil {
			return nil, fmt.Errorf("value %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

func (d restorer) value(j *valueJSON) (v backend.Value, err error) {
	switch {
	case j.Tensor != nil:
		v.RequiresGrad = j.Grad
		v.Tensor, err = d.tensor(j.Tensor)
	case j.Tuple != nil:
		v.IsTuple = true
		v.Tuple, err = d.values(*j.Tuple)
	case j.Module:
		v.Module = true
	case j.Plain != nil:
		v.Plain, err = j.Plain.value()
	default:
		err = errors.New("it has no content")
	}
	return v, err
}

func (j *plainJSON) value() (any, error) {
	switch {
	case j.Bool != nil:
		return *j.Bool, nil
	case j.Int != nil:
		return *j.Int, nil
	case j.Float != nil:
		return strconv.ParseFloat(*j.Float, 64)
	case j.Complex != nil:
		re, err := strconv.ParseFloat(j.Complex[0], 64)
		im, err2 := strconv.ParseFloat(j.Complex[1], 64)
		return complex(re, im), errors.Join(err, err2)
	case j.Str != nil:
		return *j.Str, nil
	}
	return nil, nil
}

func (d restorer) changes(js *map[int][]namedJSON) ([][]backend.Named, error) {
	if js == nil {
		return nil, nil
	}
	out := make([][]backend.Named, d.calls)
	for i, list := range *js {
		if i < 0 || i >= len(out) {
			return nil, fmt.Errorf("changes of call %d of %d", i, len(out))
		}
		changed, err := d.named(list)
		if err != nil {
			return nil, fmt.Errorf("after call %d: %w", i, err)
		}
		out[i] = changed
	}
	return out, nil
}

func (d restorer) named(list []namedJSON) (backend.State, error) {
	state := backend.State{}
	for i := range list {
		t, err := d.tensor(list[i].Tensor)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].Name, err)
		}
		state = append(state, backend.Named{Name: list[i].Name, Tensor: t})
	}
	return state, nil
}

func (d restorer) states(js map[string][]namedJSON) (map[string]backend.State, error) {
	if js == nil {
		return nil, nil
	}
	out := map[string]backend.State{}
	for module, list := range sorted(js) {
		state, err := d.named(list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", module, err)
		}
		out[module] = state
	}
	return out, nil
}

func (d restorer) grads(js map[string]*TensorRef) (map[string]*tensor.Tensor, error) {
	if js == nil {
		return nil, nil
	}
	out := map[string]*tensor.Tensor{}
	for name, j := range sorted(js) {
		t, err := d.tensor(j)
		if err != nil {
			return nil, fmt.Errorf("gradient of %s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

// Arrange returns t in the shape and layout that the reference asks for.
func (r *TensorRef) Arrange(t *tensor.Tensor) (*tensor.Tensor, error) {
	if r.Shape != nil {
		if err := tensor.CheckShape(t.DType(), *r.Shape); err != nil {
			return nil, err
		}
		if tensor.NumElements(*r.Shape) != t.Len() {
			return nil, fmt.Errorf("%s cannot have the shape %v", t, *r.Shape)
		}
		t = t.Reshape(*r.Shape...)
	}
	if r.Strides == nil {
		return t, nil
	}
	if !Modest(t.Shape(), r.Strides) {
		return nil, fmt.Errorf("%s cannot have the strides %v", t, r.Strides)
	}
	strided := tensor.NewStrided(t.DType(), t.Shape(), r.Strides)
	strided.CopyFrom(t)
	return strided, nil
}

// sorted iterates over a map in the order of its keys.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
