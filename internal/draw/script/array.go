package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/program"
	"plumb/tensor"
)

// array is a numpy array of a test. Its elements are the host's: passed to
// torch they become a literal input of the program.
type array struct{ t *tensor.Tensor }

func (a *array) String() string {
	if a.t.Dim() == 0 {
		return repr(scalarOf(a.t, 0), 0)
	}
	return "array(" + repr(a.list(), 0) + ")"
}

func (a *array) Type() string          { return "ndarray" }
func (a *array) Freeze()               {}
func (a *array) Truth() starlark.Bool  { return true }
func (a *array) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: numpy.ndarray") }
func (a *array) AttrNames() []string   { return nil }
func (a *array) clone() *array         { return &array{a.t.Clone()} }

// errLarge is the error of an array that test files do not hold.
var errLarge = lack("an array of more than %d elements is not supported in test files", maxElements)

// numpyType is an element type such as numpy.float32; calling it converts.
type numpyType dtype

func (n numpyType) String() string        { return "<class 'numpy." + n.Name() + "'>" }
func (n numpyType) Type() string          { return "type" }
func (n numpyType) Freeze()               {}
func (n numpyType) Truth() starlark.Bool  { return true }
func (n numpyType) Hash() (uint32, error) { return uint32(n), nil }

// Name returns numpy's name.
func (n numpyType) Name() string { return tensor.DType(n).String() }

// CallInternal makes a 0-d array, or converts an array.
func (n numpyType) CallInternal(t *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("numpy.%s takes one value, not %d", n.Name(), len(args))
	}
	a, err := toArray(t, args[0], tensor.DType(n))
	if err != nil {
		return nil, err
	}
	return a.scalar(), nil
}

// scalar returns the plain value of a 0-d array that numpy has as one.
func (a *array) scalar() starlark.Value {
	if a.t.Dim() == 0 {
		switch a.t.DType() {
		case tensor.F64, tensor.I64, tensor.Bool, tensor.C128:
			return scalarOf(a.t, 0)
		}
	}
	return a
}

func scalarOf(t *tensor.Tensor, i int) starlark.Value {
	switch d := t.DType(); {
	case d == tensor.Bool:
		return starlark.Bool(t.Int(i) != 0)
	case d.IsInt():
		return starlark.MakeInt64(t.Int(i))
	case d.IsComplex():
		return complexNumber(t.At(i))
	}
	return starlark.Float(t.Float(i))
}

// list is tolist.
func (a *array) list() starlark.Value {
	if a.t.Dim() == 0 {
		return scalarOf(a.t, 0)
	}
	out := make([]starlark.Value, a.t.Shape()[0])
	for i := range out {
		out[i] = (&array{a.t.Select(0, i)}).list()
	}
	return starlark.NewList(out)
}

// rows are what a loop over the array sees.
func (a *array) rows() ([]starlark.Value, error) {
	if a.t.Dim() == 0 {
		return nil, fmt.Errorf("iteration over a 0-d array")
	}
	out := make([]starlark.Value, a.t.Shape()[0])
	for i := range out {
		out[i] = (&array{a.t.Select(0, i)}).scalar()
	}
	return out, nil
}

// Len is the size of the first dimension.
func (a *array) Len() int {
	if a.t.Dim() == 0 {
		return 0
	}
	return a.t.Shape()[0]
}

// Iterate goes over the first dimension.
func (a *array) Iterate() starlark.Iterator {
	rows, _ := a.rows()
	return &elements{rows}
}

// numpyDType reads an element type: of numpy, of Python, or by name.
func numpyDType(v starlark.Value) (tensor.DType, error) {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return tensor.Invalid, nil
	case numpyType:
		return tensor.DType(v), nil
	case *pyType:
		if d, ok := elementTypes[v.name]; ok {
			return d, nil
		}
	case starlark.String:
		if d, err := tensor.ParseDType(string(v)); err == nil {
			return d, nil
		}
	}
	return tensor.Invalid, lack("the numpy dtype %s is not supported in test files", v)
}

// toArray converts a value; Invalid keeps the type that numpy would choose.
func toArray(t *starlark.Thread, v starlark.Value, d tensor.DType) (*array, error) {
	switch x := v.(type) {
	case *array:
		if d == tensor.Invalid || d == x.t.DType() {
			return x, nil
		}
		return &array{x.t.Convert(d)}, nil
	case *attr:
		s, err := x.resolve()
		if err != nil {
			return nil, err
		}
		return toArray(t, s, d)
	case *symbol:
		a, err := x.array()
		if err != nil {
			return nil, err
		}
		return toArray(t, a, d)
	}
	b := &arrayBuilder{dtype: tensor.Bool, thread: t}
	if err := b.add(v, 0); err != nil {
		return nil, err
	}
	if len(b.values) == 0 {
		b.dtype = tensor.F64
	}
	if d == tensor.Invalid {
		d = b.dtype
	}
	if n := tensor.NumElements(b.shape); n != len(b.values) {
		return nil, fmt.Errorf("the elements have an inhomogeneous shape")
	}
	out := tensor.New(d, b.shape...)
	for i, e := range b.values {
		if n, ok := e.(starlark.Int); ok && (d.IsInt() || d == tensor.Bool) {
			k, fits := n.Int64()
			if !fits {
				return nil, fmt.Errorf("the integer %s is too large", n)
			}
			if d == tensor.Bool && k != 0 {
				k = 1
			}
			out.SetInt(i, k)
			continue
		}
		c, _ := asComplex(e)
		if d == tensor.Bool && c != 0 {
			c = 1
		}
		if d.IsInt() {
			out.SetInt(i, int64(real(c)))
		} else {
			out.Set(i, c)
		}
	}
	return &array{out}, nil
}

// arrayBuilder collects the elements of nested sequences.
type arrayBuilder struct {
	thread *starlark.Thread
	dtype  tensor.DType
	shape  []int
	values []starlark.Value
}

func (b *arrayBuilder) add(v starlark.Value, depth int) error {
	if depth > 16 {
		return fmt.Errorf("an array of more than 16 dimensions")
	}
	var kind tensor.DType
	switch x := v.(type) {
	case starlark.Bool:
		kind, v = tensor.Bool, number(x)
	case starlark.Int:
		kind = tensor.I64
	case starlark.Float:
		kind = tensor.F64
	case complexNumber:
		kind = tensor.C128
	case starlark.String, starlark.NoneType, *starlark.Dict:
		return fmt.Errorf("an array of %s", v.Type())
	case *array:
		if x.t.Dim() == 0 {
			b.dtype = promoteNumpy(b.dtype, x.t.DType())
			return b.append(number(scalarOf(x.t, 0)))
		}
		return b.sequence(v, depth)
	default:
		return b.sequence(v, depth)
	}
	b.dtype = promoteNumpy(b.dtype, kind)
	return b.append(v)
}

func (b *arrayBuilder) append(v starlark.Value) error {
	if b.values = append(b.values, v); len(b.values) > maxElements {
		return errLarge
	}
	return nil
}

func (b *arrayBuilder) sequence(v starlark.Value, depth int) error {
	if s, ok := v.(*symbol); ok {
		a, err := s.array()
		if err != nil {
			return err
		}
		if a.t.Dim() == 0 {
			return b.add(a, depth)
		}
		v = a
	}
	vs, err := iterate(b.thread, v)
	if err != nil {
		return err
	}
	switch {
	case depth == len(b.shape) && len(b.values) == 0:
		b.shape = append(b.shape, len(vs))
	case depth >= len(b.shape) || b.shape[depth] != len(vs):
		return fmt.Errorf("the elements have an inhomogeneous shape")
	}
	for _, e := range vs {
		if err := b.add(e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// place is a part of an array: a view of it, or positions in row-major order.
type part struct {
	view  *tensor.Tensor
	at    []int
	shape []int
}

// Get is a[k].
func (a *array) Get(k starlark.Value) (starlark.Value, bool, error) {
	p, err := a.part(k)
	if err != nil {
		return nil, false, err
	}
	if p.view != nil {
		return (&array{p.view}).scalar(), true, nil
	}
	out := tensor.New(a.t.DType(), p.shape...)
	for i, at := range p.at {
		out.Set(i, a.t.At(at))
		if a.t.DType().IsInt() {
			out.SetInt(i, a.t.Int(at))
		}
	}
	return &array{out}, true, nil
}

// SetKey is a[k] = v.
func (a *array) SetKey(k, v starlark.Value) error {
	p, err := a.part(k)
	if err != nil {
		return err
	}
	src, err := toArray(nil, v, tensor.Invalid)
	if err != nil {
		return err
	}
	shape := p.shape
	if p.view != nil {
		shape = p.view.Shape()
	}
	t, err := src.t.Convert(a.t.DType()).Expand(shape...)
	if err != nil {
		return fmt.Errorf("could not broadcast input array from shape %s into shape %s", tensor.ShapeString(src.t.Shape()), tensor.ShapeString(shape))
	}
	if p.view != nil {
		p.view.CopyFrom(t.Clone())
		return nil
	}
	for i, at := range p.at {
		a.t.Set(at, t.At(i))
	}
	return nil
}

// array is the reference's value of a tensor.
func (s *symbol) array() (*array, error) {
	t, err := s.tensor()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%s is not a tensor", s.ref)
	}
	if t.Len() > maxElements {
		return nil, fmt.Errorf("%s has more than %d elements", s.ref, maxElements)
	}
	return &array{t.Clone()}, nil
}

// literal makes an array an input of the program.
func (d *draw) literal(a *array) *symbol {
	t := tensor.New(a.t.DType(), a.t.Shape()...)
	t.CopyFrom(a.t)
	name := d.name("x")
	d.prog.Inputs = append(d.prog.Inputs, program.Input{Name: name, DType: t.DType(), Shape: t.Shape(), Fill: program.Fill{Dist: program.Literal, Data: t}})
	s := &symbol{d: d, ref: program.Ref(name), kind: kindTensor}
	d.symbols[s.ref] = s
	return s
}

// index makes literals of the arrays by which a tensor is indexed.
func (d *draw) index(k starlark.Value) starlark.Value {
	switch k := k.(type) {
	case *array:
		return d.literal(k)
	case starlark.Tuple:
		out := make(starlark.Tuple, len(k))
		for i, e := range k {
			out[i] = d.index(e)
		}
		return out
	}
	return k
}

// axisOf reads an axis; all is true without one.
func axisOf(v starlark.Value, dims int) (axes []int, all bool, err error) {
	if v == nil || v == starlark.None {
		return nil, true, nil
	}
	items := []starlark.Value{v}
	if vs, ok := sequence(v); ok {
		items = vs
	}
	for _, v := range items {
		i, err := starlark.AsInt32(number(v))
		if err != nil {
			return nil, false, err
		}
		if i < -dims || i >= dims {
			return nil, false, fmt.Errorf("axis %d is out of bounds for array of dimension %d", i, dims)
		}
		axes = append(axes, (i+dims)%dims)
	}
	slices.Sort(axes)
	return axes, false, nil
}
