package op

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"plumb/tensor"
)

// Error is a rejection: the operator was called with something it does not
// accept. Class is the Python exception that PyTorch raises for it.
type Error struct {
	Class string // "TypeError", "RuntimeError", "IndexError", "ValueError", …
	Op    string
	Msg   string
}

// Error returns "op: message".
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Msg
	}
	return e.Op + ": " + e.Msg
}

// TypeError returns a rejection of class TypeError.
func TypeError(format string, args ...any) *Error {
	return &Error{Class: "TypeError", Msg: fmt.Sprintf(format, args...)}
}

// RuntimeError returns a rejection of class RuntimeError.
func RuntimeError(format string, args ...any) *Error {
	return &Error{Class: "RuntimeError", Msg: fmt.Sprintf(format, args...)}
}

// IndexError returns a rejection of class IndexError.
func IndexError(format string, args ...any) *Error {
	return &Error{Class: "IndexError", Msg: fmt.Sprintf(format, args...)}
}

// ValueError returns a rejection of class ValueError.
func ValueError(format string, args ...any) *Error {
	return &Error{Class: "ValueError", Msg: fmt.Sprintf(format, args...)}
}

// Value is a tensor as operators see it while arguments are checked, results
// inferred and gradients written. *tensor.Tensor is one.
type Value interface {
	DType() tensor.DType
	Shape() []int
	Strides() []int
}

// DeviceName names where a tensor lives, such as "cpu".
type DeviceName string

// Kwarg is one argument given by keyword.
type Kwarg struct {
	Name  string
	Value any
}

// Kw makes a keyword argument for Builder.Apply.
func Kw(name string, value any) Kwarg { return Kwarg{name, value} }

// numpyNames are the names that PyTorch's argument parser accepts beside its own.
var numpyNames = map[string]string{"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other", "self": "input"}

// Bind matches positional and keyword arguments with the parameters and
// brings each value into its normal form:
//
//	Tensor Value · Tensor[] []Value · Scalar Scalar · int int · int[] []int
//	Index Index · Data Scalar and nested []any
//	float float64 · float[] []float64 · bool bool · bool[] []bool · Scalar[] []Scalar
//	str string · str[] []string · dtype tensor.DType · dtype[] []tensor.DType · int[][] [][]int · None nil
//
// An int[N] parameter accepts one int and repeats it. When method is set,
// args[0] is the receiver. A list that is the only positional parameter, or
// the only one after the receiver, takes all the positional arguments
// (x.permute(0, 2, 1), torch.zeros(2, 3), torch.meshgrid(x, y)). A tensor that
// PyTorch takes for a number is read. The error is a TypeError, or ErrNoElements.
func (s *Sig) Bind(args []any, kwargs []Kwarg, method bool) (Args, error) {
	return s.bind(args, kwargs, method, true)
}

func (s *Sig) bind(args []any, kwargs []Kwarg, method, read bool) (Args, error) {
	args = s.gather(args, method)
	if n := s.positional(); len(args) > n {
		return Args{}, TypeError("%s takes %d positional arguments but %d were given", s.Name, n, len(args))
	}
	vals := make([]any, len(s.Params))
	given := make([]bool, len(s.Params))
	set := func(i int, v any) error {
		p := &s.Params[i]
		if given[i] {
			return TypeError("%s: got multiple values for argument '%s'", s.Name, p.Name)
		}
		given[i] = true
		n, err := normalise(p.Type, v)
		if err != nil && read {
			n, err = fromTensor(p.Type, v, err)
		}
		if err != nil {
			return s.mismatch(p, err)
		}
		if err := s.oneOf(p, n); err != nil {
			return err
		}
		vals[i] = n
		return nil
	}
	for i, v := range args {
		if err := set(i, v); err != nil {
			return Args{}, err
		}
	}
	for _, kw := range kwargs {
		i := s.index(kw.Name)
		if s.Unnamed {
			i = -1
		}
		if i < 0 {
			i = s.index(numpyNames[kw.Name])
		}
		if i < 0 && kw.Name == "out" {
			return Args{}, fmt.Errorf("%s: argument 'out' is not supported: %w", s.Name, ErrUnknown)
		}
		if i < 0 || s.Params[i].OnlyInOverloads {
			return Args{}, TypeError("%s got an unexpected keyword argument '%s'; it takes %s", s.Name, kw.Name, s.paramList())
		}
		if err := set(i, kw.Value); err != nil {
			return Args{}, err
		}
	}
	for i, p := range s.Params {
		switch {
		case given[i]:
		case p.HasDefault:
			vals[i] = p.Default
		default:
			return Args{}, TypeError("%s missing required argument: '%s' (%s)", s.Name, p.Name, p.Type)
		}
	}
	return Args{s, vals}, nil
}

// mismatch rejects a value of a wrong type.
func (s *Sig) mismatch(p *Param, err error) error {
	if errors.Is(err, ErrNoElements) {
		return fmt.Errorf("%s: argument '%s': %w", s.Name, p.Name, err)
	}
	e := TypeError("%s: argument '%s' %v", s.Name, p.Name, err)
	if p.Choice {
		e.Class = "ValueError"
	}
	return e
}

// oneOf refuses text that is none of a parameter's choices.
func (s *Sig) oneOf(p *Param, v any) error {
	var given []string
	switch v := v.(type) {
	case string:
		given = []string{v}
	case []string:
		given = v
	}
	for _, g := range given {
		if len(p.OneOf) > 0 && !slices.Contains(p.OneOf, g) {
			return ValueError("%s: argument '%s' must be one of '%s', not '%s'", s.Name, p.Name, strings.Join(p.OneOf, "', '"), g)
		}
	}
	return nil
}

// Spread returns the position of the list parameter that takes all the
// positional arguments from there on, after the receiver or a str; -1 when
// there is none.
func (s *Sig) Spread(method bool) int {
	at := 0
	if method || len(s.Params) > 1 && s.Params[0].Type.Kind == KStr {
		at = 1
	}
	if s.positional() != at+1 || !s.Params[at].Type.List || s.Params[at].Type.N != 0 {
		return -1
	}
	return at
}

func (s *Sig) gather(args []any, method bool) []any {
	at := s.Spread(method)
	if at < 0 || at >= len(args) || !isElement(args[at]) {
		return args
	}
	return append(slices.Clone(args[:at]), slices.Clone(args[at:]))
}

// isElement reports whether v can be an element of a list argument.
func isElement(v any) bool {
	switch v.(type) {
	case int, int64, Value:
		return true
	}
	return false
}

func (s *Sig) positional() int {
	n := slices.IndexFunc(s.Params, func(p Param) bool { return p.KwOnly })
	if n < 0 {
		return len(s.Params)
	}
	return n
}

func (s *Sig) paramList() string {
	var names []string
	for _, p := range s.Params {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// normalise converts v to the normal form of type t.
func normalise(t Type, v any) (any, error) {
	if v == nil && t.Kind != KIndex {
		if t.Optional {
			return nil, nil
		}
		return nil, fmt.Errorf("must be %s, not None", t)
	}
	if t.List {
		return normaliseList(t, v)
	}
	if n, ok := normaliseOne(t.Kind, v); ok {
		return n, nil
	}
	if t.Kind == KData {
		return data(v)
	}
	return nil, mustBe(t, v)
}

// normaliseOne converts v to the normal form of a kind; false where it has none.
func normaliseOne(k Kind, v any) (any, bool) {
	switch k {
	case KTensor:
		return as[Value](v)
	case KScalar:
		return normaliseScalar(v)
	case KInt:
		if x, ok := v.(int64); ok {
			return int(x), true
		}
		return as[int](v)
	case KFloat:
		return normaliseFloat(v)
	case KBool:
		return as[bool](v)
	case KStr:
		return as[string](v)
	case KDType:
		x, ok := v.(tensor.DType)
		return x, ok && x.Valid()
	case KDevice:
		if x, ok := v.(string); ok {
			return DeviceName(x), true
		}
		return as[DeviceName](v)
	case KIndex:
		if x, ok := v.(Index); ok {
			return x, true
		}
		return IndexOf(v), true
	case KFormat:
		x, ok := v.(tensor.MemoryFormat)
		return x, ok && x.Valid()
	}
	return nil, false
}

func as[T any](v any) (any, bool) {
	x, ok := v.(T)
	return x, ok
}

func normaliseScalar(v any) (any, bool) {
	switch x := v.(type) {
	case Scalar:
		return x, true
	case int:
		return ScalarOf(int64(x)), true
	case bool, int64, float64, complex128:
		return ScalarOf(x), true
	}
	return nil, false
}

func normaliseFloat(v any) (any, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	case int:
		return float64(x), true
	case bool:
		return ScalarOf(x).Float(), true
	}
	return nil, false
}

func normaliseList(t Type, v any) (any, error) {
	elem := t.Element()
	switch x := v.(type) {
	case []Value:
		if t.Kind == KTensor {
			return x, nil
		}
	case []int:
		if t.Kind == KInt {
			return repeat(t, x)
		}
	case []float64:
		if t.Kind == KFloat {
			return repeat(t, x)
		}
	case []bool, []string, []tensor.DType, []Scalar, [][]int:
		return normaliseList(t, anys(x))
	case []any:
		switch t.Kind {
		case KTensor:
			return listOf[Value](t, elem, x)
		case KInt:
			return listOf[int](t, elem, filled(t, x))
		case KFloat:
			return listOf[float64](t, elem, x)
		case KBool:
			return listOf[bool](t, elem, x)
		case KStr:
			return listOf[string](t, elem, x)
		case KDType:
			return listOf[tensor.DType](t, elem, x)
		case KScalar:
			return listOf[Scalar](t, elem, x)
		case KShape:
			return listOf[[]int](t, elem, x)
		}
	default:
		one, err := normalise(elem, v)
		if err != nil || t.N == 0 {
			return nil, mustBe(t, v)
		}
		switch one := one.(type) {
		case int:
			return slices.Repeat([]int{one}, t.N), nil
		case float64:
			return slices.Repeat([]float64{one}, t.N), nil
		}
	}
	return nil, mustBe(t, v)
}

// anys returns a list's elements, whose type its kind has no other list of.
func anys(list any) []any {
	v := reflect.ValueOf(list)
	out := make([]any, v.Len())
	for i := range out {
		out[i] = v.Index(i).Interface()
	}
	return out
}

// filled replaces None where a list may have it.
func filled(t Type, xs []any) []any {
	if !t.Holes || t.Kind != KInt {
		return xs
	}
	xs = slices.Clone(xs)
	for i, x := range xs {
		if x == nil {
			xs[i] = NoInt
		}
	}
	return xs
}

func listOf[T any](t, elem Type, xs []any) (any, error) {
	out := make([]T, len(xs))
	for i, x := range xs {
		if x == nil && t.Holes {
			continue // the zero T: no tensor
		}
		v, err := normalise(elem, x)
		if err != nil {
			return nil, fmt.Errorf("must be %s, but element %d is %s", t, i, TypeName(x))
		}
		out[i] = v.(T)
	}
	return repeat(t, out)
}

// repeat stretches a list of one element to the fixed length. Other lengths
// pass: what they mean is each operator's own check.
func repeat[T any](t Type, xs []T) (any, error) {
	if t.N > 1 && len(xs) == 1 {
		return slices.Repeat(xs, t.N), nil
	}
	return xs, nil
}

// Opaque is what an argument of type Data may be beside numbers, such as a module.
type Opaque interface{ Opaque() }

// data returns numbers and nested lists of them as Scalar and []any.
func data(v any) (any, error) {
	if o, ok := v.(Opaque); ok {
		return o, nil
	}
	list, ok := v.([]any)
	if !ok {
		return normalise(Type{Kind: KScalar}, v)
	}
	out := make([]any, len(list))
	for i, e := range list {
		x, err := data(e)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// TypeName returns the Python name of a value's type, for messages.
func TypeName(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int, int64:
		return "int"
	case float64:
		return "float"
	case complex128:
		return "complex"
	case string:
		return "str"
	case DeviceName:
		return "device"
	case tensor.DType:
		return "torch.dtype"
	case tensor.MemoryFormat:
		return "torch.memory_format"
	case Value:
		return "Tensor"
	case []Value:
		return "list of Tensor"
	case []any:
		if len(x) > 0 {
			return "list of " + TypeName(x[0])
		}
		return "list"
	case []int:
		return "list of int"
	case [][]int:
		return "list of list"
	case []bool:
		return "list of bool"
	case []string:
		return "list of str"
	case []tensor.DType:
		return "list of torch.dtype"
	case []float64:
		return "list of float"
	}
	return fmt.Sprintf("%T", v)
}
