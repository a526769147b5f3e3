package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"plumb/op"
	"plumb/tensor"
)

// maxRequest bounds the bytes of a request, and maxOperands its tensors.
const (
	maxRequest  = 1 << 20
	maxOperands = 1 << 12
	maxDims     = 64
)

// Operand is a tensor of a request, of which the layout is known.
type Operand struct {
	meta op.Meta
	at   int // among the tensors of the request
}

// DType returns the element type.
func (o *Operand) DType() tensor.DType { return o.meta.DType }

// Shape returns the shape.
func (o *Operand) Shape() []int { return o.meta.Shape }

// Strides returns the strides, in elements.
func (o *Operand) Strides() []int { return o.meta.Strides }

// Elements says that they are not known.
func (o *Operand) Elements() (*tensor.Tensor, error) { return nil, op.ErrNoElements }

// Meta describes a tensor to those who do not write Go.
type Meta struct {
	DType   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Strides []int  `json:"strides"`
}

// request is a call of which the tensors are operands.
type request struct {
	name     string
	exact    bool // the name is an id, and means that operator alone
	args     []any
	kwargs   []op.Kwarg
	operands []*Operand
}

// readRequest reads a call:
//
//	{"name": "add", "args": [VALUE, …], "kwargs": [["alpha", VALUE], …]}
//
// With "id" in place of "name" it is that operator's, whatever else has its name.
// A VALUE is null, true, an int, "text", a list of VALUEs or an object of one key:
// tensor (dtype, shape and strides, or the place of one among given), float (hexadecimal,
// "inf", "nan"), complex (two of those), dtype, device, format, index (a tuple between
// brackets), slice (three ints or nulls), ellipsis.
func readRequest(text []byte, given []*Operand) (*request, error) {
	if len(text) > maxRequest {
		return nil, fmt.Errorf("the call is %d bytes long, more than %d", len(text), maxRequest)
	}
	var raw struct {
		Name   string               `json:"name"`
		ID     string               `json:"id"`
		Args   []json.RawMessage    `json:"args"`
		Kwargs [][2]json.RawMessage `json:"kwargs"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("the call cannot be read: %w", err)
	}
	r := &request{name: cmp.Or(raw.ID, raw.Name), exact: raw.ID != "", operands: slices.Clone(given)}
	for _, a := range raw.Args {
		v, err := r.value(a, given)
		if err != nil {
			return nil, err
		}
		r.args = append(r.args, v)
	}
	for _, kw := range raw.Kwargs {
		var name string
		if err := json.Unmarshal(kw[0], &name); err != nil {
			return nil, fmt.Errorf("the name of a keyword argument cannot be read: %w", err)
		}
		v, err := r.value(kw[1], given)
		if err != nil {
			return nil, err
		}
		r.kwargs = append(r.kwargs, op.Kw(name, v))
	}
	return r, nil
}

func (r *request) value(raw json.RawMessage, given []*Operand) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("an argument cannot be read: %w", err)
	}
	return r.decode(v, given)
}

func (r *request) decode(v any, given []*Operand) (any, error) {
	switch v := v.(type) {
	case json.Number:
		i, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil {
			return nil, op.RuntimeError("the int %s does not fit into 64 bits", v)
		}
		return i, nil
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			x, err := r.decode(e, given)
			if err != nil {
				return nil, err
			}
			list[i] = x
		}
		return list, nil
	case map[string]any:
		for kind, of := range v {
			if len(v) == 1 {
				return r.tagged(kind, of, given)
			}
		}
		return nil, fmt.Errorf("an argument is an object of %d keys, want 1", len(v))
	}
	return v, nil // nil, bool, string
}

// tagged decodes an object of one key.
func (r *request) tagged(kind string, v any, given []*Operand) (any, error) {
	text, isText := v.(string)
	list, _ := v.([]any)
	switch {
	case kind == "tensor":
		return r.tensor(v, given)
	case kind == "index" && list != nil:
		all, err := r.decode(list, given)
		if err != nil {
			return nil, err
		}
		return op.Index(all.([]any)), nil
	case kind == "ellipsis":
		return op.Ellipsis{}, nil
	case kind == "float" && isText:
		return hexFloat(text)
	case kind == "complex" && len(list) == 2:
		re, err := hexFloat(list[0])
		im, err2 := hexFloat(list[1])
		return complex(re, im), errors.Join(err, err2)
	case kind == "dtype" && isText:
		return tensor.ParseDType(text)
	case kind == "device" && isText:
		return op.DeviceName(text), nil
	case kind == "format" && isText:
		return tensor.ParseMemoryFormat(text)
	case kind == "slice" && len(list) == 3:
		return slice(list)
	}
	return nil, fmt.Errorf("an argument %q is not one that can be read", kind)
}

func hexFloat(v any) (float64, error) {
	text, _ := v.(string)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("the float %q cannot be read", text)
	}
	return f, nil
}

func slice(list []any) (any, error) {
	var parts [3]*int
	for i, e := range list {
		n, isNumber := e.(json.Number)
		if e == nil {
			continue
		}
		x, err := strconv.Atoi(n.String())
		if !isNumber || err != nil {
			return nil, fmt.Errorf("a slice has the part %v, want an int", e)
		}
		parts[i] = &x
	}
	return op.Slice{Start: parts[0], Stop: parts[1], Step: parts[2]}, nil
}

// tensor notes an operand, or finds one that is given.
func (r *request) tensor(v any, given []*Operand) (any, error) {
	if n, ok := v.(json.Number); ok {
		i, err := strconv.Atoi(n.String())
		if err != nil || i < 0 || i >= len(given) {
			return nil, fmt.Errorf("there is no tensor %s among %d", n, len(given))
		}
		return given[i], nil
	}
	list, _ := v.([]any)
	if len(list) != 3 || len(r.operands) >= maxOperands {
		return nil, errors.New("a tensor cannot be read: want its dtype, shape and strides")
	}
	name, _ := list[0].(string)
	d, err := tensor.ParseDType(name)
	if err != nil {
		return nil, err
	}
	shape, err := ints(list[1])
	if err != nil {
		return nil, err
	}
	strides, err := ints(list[2])
	if err != nil {
		return nil, err
	}
	o, err := newOperand(d, shape, strides, len(r.operands))
	if err != nil {
		return nil, err
	}
	r.operands = append(r.operands, o)
	return o, nil
}

// newOperand checks a layout: kernels rely on what it says.
func newOperand(d tensor.DType, shape, strides []int, at int) (*Operand, error) {
	if strides == nil {
		strides = tensor.ContiguousStrides(shape)
	}
	if len(strides) != len(shape) || len(shape) > maxDims {
		return nil, fmt.Errorf("a tensor has %d dimensions and %d strides, of at most %d", len(shape), len(strides), maxDims)
	}
	if err := tensor.CheckShape(d, shape); err != nil {
		return nil, fmt.Errorf("a tensor is refused: %w", err)
	}
	room := tensor.MaxElements
	for i, n := range shape {
		if strides[i] < 0 || n > 1 && strides[i] > room/(n-1) {
			return nil, fmt.Errorf("a tensor of shape %v has the strides %v: want them from 0 on, within 2^40 elements", shape, strides)
		}
		if n > 1 {
			room -= (n - 1) * strides[i]
		}
	}
	return &Operand{op.Meta{DType: d, Shape: shape, Strides: strides}, at}, nil
}

func ints(v any) ([]int, error) {
	list, ok := v.([]any)
	if !ok || len(list) > maxDims {
		return nil, errors.New("a shape or its strides cannot be read")
	}
	out := make([]int, len(list))
	for i, e := range list {
		n, _ := e.(json.Number)
		x, err := strconv.Atoi(n.String())
		if err != nil {
			return nil, fmt.Errorf("a shape or its strides has %v, want an int", e)
		}
		out[i] = x
	}
	return out, nil
}
