package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"plumb/backend"
	"plumb/internal/refusal"
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
	out := &Structure{Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call, Initial: d.initial(o.Initial)}
	var err error
	if out.Values, err = d.values("v", o.Values); err != nil {
		return nil, err
	}
	if o.Watched {
		out.Changes = &map[int][]namedJSON{}
	}
	for _, s := range o.Slots {
		out.add(s.Place, d.tensor(placeOf(s.Place), s.Tensor))
	}
	return out, nil
}

// InitialPlace begins the places of initial states.
const InitialPlace = "i."

// letters begin the places of the parts.
var letters = map[backend.Part]string{
	backend.PartState: "f", backend.PartGrad: "g", backend.PartParamGrad: "p",
	backend.PartSecondGrad: "h", backend.PartSecondParamGrad: "q", backend.PartStep: "s",
}

func placeOf(at backend.Place) string {
	switch {
	case at.Part == backend.PartChange:
		return "c" + strconv.Itoa(at.Call) + "." + at.Owner
	case at.Name == "":
		return letters[at.Part] + "." + at.Owner
	}
	return letters[at.Part] + "." + at.Owner + "." + at.Name
}

// ofInputs returns the tensors of a part by input; nil for a part of modules.
func (s *Structure) ofInputs(part backend.Part) *map[string]*TensorRef {
	switch part {
	case backend.PartGrad:
		return &s.Grads
	case backend.PartSecondGrad:
		return &s.SecondGrads
	}
	return nil
}

// ofModules returns the tensors of a part by module; nil for a part of inputs.
func (s *Structure) ofModules(part backend.Part) *map[string][]namedJSON {
	switch part {
	case backend.PartState:
		return &s.Final
	case backend.PartParamGrad:
		return &s.ParamGrads
	case backend.PartSecondParamGrad:
		return &s.SecondParamGrads
	case backend.PartStep:
		return &s.Stepped
	}
	return nil
}

// add puts the tensor of a slot in its field.
func (s *Structure) add(at backend.Place, t *TensorRef) {
	if at.Part == backend.PartChange {
		(*s.Changes)[at.Call] = append((*s.Changes)[at.Call], namedJSON{at.Owner, t})
		return
	}
	if m := s.ofInputs(at.Part); m != nil {
		*m = with(*m, at.Owner, t)
		return
	}
	m := s.ofModules(at.Part)
	*m = with(*m, at.Owner, append((*m)[at.Owner], namedJSON{at.Name, t}))
}

func with[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m
}

// slots yields the places of slots with what stands for their tensors.
func (s *Structure) slots(yield func(backend.Place, *TensorRef) bool) {
	for _, part := range []backend.Part{backend.PartState, backend.PartGrad, backend.PartParamGrad, backend.PartSecondGrad, backend.PartSecondParamGrad, backend.PartStep} {
		if m := s.ofInputs(part); m != nil {
			for owner, t := range sorted(*m) {
				if !yield(backend.Place{Part: part, Owner: owner}, t) {
					return
				}
			}
			continue
		}
		for owner, list := range sorted(*s.ofModules(part)) {
			for _, n := range list {
				if !yield(backend.Place{Part: part, Owner: owner, Name: n.Name}, n.Tensor) {
					return
				}
			}
		}
	}
	if s.Changes == nil {
		return
	}
	for call, list := range sorted(*s.Changes) {
		for _, n := range list {
			if !yield(backend.Place{Part: backend.PartChange, Call: call, Owner: n.Name}, n.Tensor) {
				return
			}
		}
	}
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

func (d describer) initial(m map[string]backend.State) map[string][]namedJSON {
	if m == nil {
		return nil
	}
	out := map[string][]namedJSON{}
	for module, state := range sorted(m) {
		out[module] = []namedJSON{}
		for _, n := range state {
			out[module] = append(out[module], namedJSON{n.Name, d.tensor(InitialPlace+module+"."+n.Name, n.Tensor)})
		}
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

// Ending returns the outcome without its tensors.
func (s *Structure) Ending() *backend.Outcome {
	o := &backend.Outcome{Status: s.Status, Class: s.Class, Message: s.Message, Call: s.Call}
	refusal.Classify(o)
	return o
}

// Outcome returns the outcome of a program of so many calls. Get returns the
// tensor that a reference, which is never nil, stands for.
func (s *Structure) Outcome(calls int, get func(*TensorRef) (*tensor.Tensor, error)) (*backend.Outcome, error) {
	if n := len(s.Values); n > calls {
		return nil, fmt.Errorf("%d values for %d calls", n, calls)
	}
	d := restorer{get}
	o := s.Ending()
	o.Watched = s.Changes != nil
	var errs [2]error
	o.Values, errs[0] = d.values(s.Values)
	o.Initial, errs[1] = d.initial(s.Initial)
	err := errors.Join(errs[:]...)
	for at, ref := range s.slots {
		t, wrong := d.tensor(ref)
		if at.Call < 0 || at.Call >= calls && at.Part == backend.PartChange {
			wrong = fmt.Errorf("there are %d calls", calls)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", placeOf(at), wrong))
		}
		o.Add(at, t)
	}
	return o, err
}

// State returns the initial states of the program's modules alone.
func (s *Structure) State(get func(*TensorRef) (*tensor.Tensor, error)) (map[string]backend.State, error) {
	return restorer{get}.initial(s.Initial)
}

type restorer struct {
	get func(*TensorRef) (*tensor.Tensor, error)
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

func (d restorer) initial(js map[string][]namedJSON) (map[string]backend.State, error) {
	if js == nil {
		return nil, nil
	}
	out := map[string]backend.State{}
	for module, list := range sorted(js) {
		out[module] = backend.State{}
		for _, n := range list {
			t, err := d.tensor(n.Tensor)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", module, n.Name, err)
			}
			out[module] = append(out[module], backend.Named{Name: n.Name, Tensor: t})
		}
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
func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
