package api

import (
	"errors"
	"fmt"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// Apply applies an operator by its id to arguments by keyword. The functions of this
// package are made of it, and so are those that plumb ops gen writes for operators
// of another table: who calls operators calls them. A nil session is that of the
// tensors. The error of an operator that the session's table lacks is op.ErrUnknown.
func Apply(s *Session, id string, arguments ...Argument) Results {
	if r, ok := again(s, id, arguments); ok {
		return r
	}
	c := call{s: s, name: id, kws: make([]op.Kwarg, 0, len(arguments))}
	for _, a := range arguments {
		if !a.omitted {
			c.kws = append(c.kws, op.Kw(a.name, c.argument(a.value)))
		}
	}
	out, err := c.run()
	if errors.Is(err, op.ErrUnknown) && c.s.rec == nil && c.s.table.Def(id) == nil {
		err = fmt.Errorf("%w: the session's table lacks it; NewSessionOn makes a session of another", err)
	}
	return Results{out: out, err: err}
}

// again applies an operator by the plan of an earlier call, where there is one.
func again(s *Session, id string, arguments []Argument) (r Results, ok bool) {
	var room [8]op.Kwarg
	if len(arguments) > len(room) {
		return r, false
	}
	n := 0
	for i := range arguments {
		a := &arguments[i]
		if a.omitted {
			continue
		}
		kw := &room[n]
		kw.Name = a.name
		switch v := a.value.(type) {
		case *Tensor:
			if v == nil || v.v == nil || s != nil && v.s != s {
				return r, false
			}
			s, kw.Value = v.s, v.v
		case nil, int, int64, float64, bool, string, DType, []int:
			kw.Value = v
		default:
			return r, false
		}
		n++
	}
	if s == nil || s.rec != nil {
		return r, false
	}
	var t *Tensor
	v, ok, err := s.eager.ApplyPlanned(id, room[:n], func(bytes int) (*eager.Room, []byte) {
		switch { // one piece of memory, as small as can be
		case bytes > eager.FewBytes:
			r := &struct {
				eager.Room
				Tensor
			}{}
			t = &r.Tensor
			return &r.Room, nil
		case bytes > eager.FewBytes/2:
			r := &struct {
				eager.Room
				Tensor
				few eager.Few
			}{}
			t = &r.Tensor
			return &r.Room, r.few.Bytes(bytes)
		}
		r := &struct {
			eager.Room
			Tensor
			few eager.Fewer
		}{}
		t = &r.Tensor
		return &r.Room, r.few.Bytes(bytes)
	})
	if !ok || err != nil {
		return Results{err: err}, ok
	}
	t.v, t.s = v, s
	return Results{one: t}, true
}

// Argument is an argument of Apply.
type Argument struct {
	name    string
	value   any
	omitted bool
}

// Given passes an argument, None included.
func Given(name string, v any) Argument {
	x, _ := plain(v)
	return Argument{name: name, value: x}
}

// Optional passes an argument unless it is its type's zero value.
func Optional(name string, v any) Argument {
	x, set := plain(v)
	return Argument{name: name, value: x, omitted: !set}
}

// OptionalScalar is Optional of a Scalar.
func OptionalScalar(name string, v Scalar) Argument {
	if v == (Scalar{}) {
		return Argument{name: name, omitted: true}
	}
	return Argument{name: name, value: v.Any()}
}

// Last returns the options of a call, the zero value when there are none.
func Last[T any](options []T) (o T) {
	if len(options) > 0 {
		o = options[len(options)-1]
	}
	return o
}

// plain takes the pointer off a value. It is not set when it is zero, and None
// when its type has no zero of its own.
func plain(v any) (x any, set bool) {
	switch v := v.(type) {
	case *int:
		return pointed(v)
	case *float64:
		return pointed(v)
	case *bool:
		return pointed(v)
	case *MemoryFormat:
		return pointed(v)
	case *Tensor:
		return v, v != nil
	case []*Tensor:
		return v, v != nil
	case []int:
		return sliceOrNone(v)
	case []float64:
		return sliceOrNone(v)
	case []bool:
		return sliceOrNone(v)
	case []string:
		return sliceOrNone(v)
	case []DType:
		return sliceOrNone(v)
	case []Scalar:
		return sliceOrNone(v)
	case [][]int:
		return sliceOrNone(v)
	case Index:
		return v, v != nil
	case Scalar:
		return v.Any(), v != Scalar{}
	case DType:
		if v == tensor.Invalid {
			return nil, false
		}
		return v, true
	case int:
		return v, v != 0
	case float64:
		return v, v != 0
	case bool:
		return v, v
	case string:
		return v, v != ""
	case Device:
		return v, v != ""
	case MemoryFormat:
		return v, v != tensor.Contiguous
	}
	return v, v != nil
}

func pointed[T any](p *T) (any, bool) {
	if p == nil {
		return nil, false
	}
	return *p, true
}

func sliceOrNone[T any](v []T) (any, bool) {
	if v == nil {
		return nil, false
	}
	return v, true
}

// Results are the tensors that an operator gave, or its error.
type Results struct {
	out []*Tensor
	one *Tensor // in place of out, of a single result
	err error
}

var errResults = errors.New("the operator returned another number of results than its signature says")

func (r Results) want(n int) error {
	is := len(r.out)
	if r.one != nil {
		is = 1
	}
	if r.err == nil && is != n {
		return fmt.Errorf("%w: %d, not %d", errResults, is, n)
	}
	return r.err
}

// All returns the results, however many there are.
func (r Results) All() ([]*Tensor, error) {
	if r.one != nil {
		return []*Tensor{r.one}, nil
	}
	return r.out, r.err
}

// One returns the only result.
func (r Results) One() (*Tensor, error) {
	if r.one != nil {
		return r.one, nil
	}
	if err := r.want(1); err != nil {
		return nil, err
	}
	return r.out[0], nil
}

// Two returns two results.
func (r Results) Two() (a, b *Tensor, err error) {
	if err := r.want(2); err != nil {
		return nil, nil, err
	}
	return r.out[0], r.out[1], nil
}

// Three returns three results.
func (r Results) Three() (a, b, c *Tensor, err error) {
	if err := r.want(3); err != nil {
		return nil, nil, nil, err
	}
	return r.out[0], r.out[1], r.out[2], nil
}

// Four returns four results.
func (r Results) Four() (a, b, c, d *Tensor, err error) {
	if err := r.want(4); err != nil {
		return nil, nil, nil, nil, err
	}
	return r.out[0], r.out[1], r.out[2], r.out[3], nil
}

// Truth returns the result of an operator that answers yes or no.
func (r Results) Truth() (bool, error) {
	v, err := r.Number()
	b, _ := v.Any().(bool)
	return b, err
}

// Number returns the result of an operator that computes a Python number.
func (r Results) Number() (Scalar, error) {
	t, err := r.One()
	if err != nil {
		return Scalar{}, err
	}
	return t.Item()
}
