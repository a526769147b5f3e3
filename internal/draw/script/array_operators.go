package script

import (
	"fmt"
	"math"
	"math/cmplx"
	"plumb/internal/draw/gen"
	"plumb/tensor"
	"slices"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// promoteNumpy is numpy's promote_types.
func promoteNumpy(a, b tensor.DType) tensor.DType {
	if a == b {
		return a
	}
	if rank(a) > rank(b) {
		a, b = b, a
	}
	switch {
	case a == tensor.Bool:
		return b
	case b.IsInt():
		if a == tensor.U8 && b == tensor.I8 {
			return tensor.I16
		}
		return b
	case b.IsFloat() && a.IsInt():
		return wider(b, floatFor(a))
	case b.IsComplex() && !a.IsComplex():
		if a.IsInt() {
			a = floatFor(a)
		}
		if a == tensor.F64 {
			return tensor.C128
		}
		return b
	}
	return b
}

// rank orders the dtypes: bool, integers, floats, complex, each by size.
func rank(d tensor.DType) int {
	group := 0
	switch {
	case d.IsInt():
		group = 1
	case d.IsFloat():
		group = 2
	case d.IsComplex():
		group = 3
	}
	r := 100*group + 2*d.Size()
	if d == tensor.I8 {
		r++
	}
	return r
}

// floatFor is the float dtype that holds an integer dtype.
func floatFor(d tensor.DType) tensor.DType {
	switch d.Size() {
	case 1:
		return tensor.F16
	case 2:
		return tensor.F32
	}
	return tensor.F64
}

func wider(a, b tensor.DType) tensor.DType {
	if a.Size() >= b.Size() {
		return a
	}
	return b
}

// resultType is numpy's result_type of two operands: what has no dimension
// gives way to what has, unless it is of a higher kind.
func resultType(x, y *array) tensor.DType {
	a, b := x.t, y.t
	if (a.Dim() == 0) != (b.Dim() == 0) {
		if a.Dim() == 0 {
			a, b = b, a
		}
		if rank(b.DType())/100 <= rank(a.DType())/100 {
			return a.DType()
		}
		switch d := b.DType(); {
		case d.IsComplex() && (a.DType() == tensor.F32 || a.DType() == tensor.F16):
			return tensor.C64
		}
	}
	return promoteNumpy(a.DType(), b.DType())
}

// binary applies an operator of numpy; Python's numbers are 0-d arrays.
func (o operator) arrays(t *starlark.Thread, x, y starlark.Value) (starlark.Value, error) {
	a, err := toArray(t, x, tensor.Invalid)
	if err != nil {
		return nil, err
	}
	b, err := toArray(t, y, tensor.Invalid)
	if err != nil {
		return nil, err
	}
	if o.name == "matmul" {
		return matmulArrays(a, b)
	}
	out, err := o.elementwise(a, b)
	if err != nil {
		return nil, err
	}
	if target, ok := x.(*array); ok && o.inplace {
		if !slices.Equal(target.t.Shape(), out.t.Shape()) {
			return nil, fmt.Errorf("non-broadcastable output operand with shape %s", tensor.ShapeString(target.t.Shape()))
		}
		target.t.CopyFrom(out.t.Convert(target.t.DType()))
		return target, nil
	}
	return out.scalar(), nil
}

func (o operator) elementwise(a, b *array) (*array, error) {
	shape, err := tensor.BroadcastShapes(a.t.Shape(), b.t.Shape())
	if err != nil {
		return nil, fmt.Errorf("operands could not be broadcast together with shapes %s %s", tensor.ShapeString(a.t.Shape()), tensor.ShapeString(b.t.Shape()))
	}
	if tensor.NumElements(shape) > maxElements {
		return nil, errLarge
	}
	d := resultType(a, b)
	if d == tensor.Bool && (o.token == syntax.MINUS) {
		return nil, fmt.Errorf("numpy boolean subtract is not supported")
	}
	if o.token == syntax.SLASH && !d.IsFloat() && !d.IsComplex() {
		d = tensor.F64
	}
	if d == tensor.Bool && (o.token == syntax.SLASHSLASH || o.token == syntax.PERCENT || o.token == syntax.STARSTAR) {
		d = tensor.I8
	}
	result := d
	if o.compare {
		result = tensor.Bool
	}
	f, err := o.element(d)
	if err != nil {
		return nil, err
	}
	x, _ := a.t.Convert(d).Expand(shape...)
	y, _ := b.t.Convert(d).Expand(shape...)
	out := tensor.New(result, shape...)
	for i := range out.Len() {
		f(out, i, x, y)
	}
	return &array{out}, nil
}

// element returns what computes one element of the operands in dtype d.
func (o operator) element(d tensor.DType) (func(out *tensor.Tensor, i int, x, y *tensor.Tensor), error) {
	switch {
	case o.compare && d.IsComplex():
		return func(out *tensor.Tensor, i int, x, y *tensor.Tensor) {
			out.SetInt(i, truthInt((x.At(i) == y.At(i)) == (o.token == syntax.EQL)))
		}, nil
	case o.compare:
		holds := comparison(o.token)
		if d.IsFloat() {
			return func(out *tensor.Tensor, i int, x, y *tensor.Tensor) {
				a, b := x.Float(i), y.Float(i)
				if a != a || b != b {
					out.SetInt(i, truthInt(o.token == syntax.NEQ))
					return
				}
				out.SetInt(i, truthInt(holds(threeWay(a, b))))
			}, nil
		}
		return func(out *tensor.Tensor, i int, x, y *tensor.Tensor) {
			out.SetInt(i, truthInt(holds(threeWay(x.Int(i), y.Int(i)))))
		}, nil
	case d.IsComplex():
		f := complexElement(o.token)
		if f != nil {
			return func(out *tensor.Tensor, i int, x, y *tensor.Tensor) { out.Set(i, f(x.At(i), y.At(i))) }, nil
		}
	case d.IsFloat():
		f := floatElement(o.token)
		if f != nil {
			return func(out *tensor.Tensor, i int, x, y *tensor.Tensor) {
				out.Set(i, complex(f(x.Float(i), y.Float(i)), 0))
			}, nil
		}
	default:
		f := intElement(o.token, d == tensor.Bool)
		if f != nil {
			return func(out *tensor.Tensor, i int, x, y *tensor.Tensor) { out.SetInt(i, f(x.Int(i), y.Int(i))) }, nil
		}
	}
	return nil, fmt.Errorf("ufunc %s is not supported for %s", o.name, d)
}

func truthInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func threeWay[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func comparison(token syntax.Token) func(int) bool {
	return map[syntax.Token]func(int) bool{
		syntax.EQL: func(c int) bool { return c == 0 }, syntax.NEQ: func(c int) bool { return c != 0 }, syntax.LT: func(c int) bool { return c < 0 },
		syntax.LE: func(c int) bool { return c <= 0 }, syntax.GT: func(c int) bool { return c > 0 }, syntax.GE: func(c int) bool { return c >= 0 },
	}[token]
}

func complexElement(token syntax.Token) func(x, y complex128) complex128 {
	switch token {
	case syntax.PLUS:
		return func(x, y complex128) complex128 { return x + y }
	case syntax.MINUS:
		return func(x, y complex128) complex128 { return x - y }
	case syntax.STAR:
		return gen.Product
	case syntax.SLASH:
		return func(x, y complex128) complex128 { return x / y }
	case syntax.STARSTAR:
		return cmplx.Pow
	}
	return nil
}

func floatElement(token syntax.Token) func(x, y float64) float64 {
	switch token {
	case syntax.PLUS:
		return func(x, y float64) float64 { return x + y }
	case syntax.MINUS:
		return func(x, y float64) float64 { return x - y }
	case syntax.STAR:
		return func(x, y float64) float64 { return float64(x * y) }
	case syntax.SLASH:
		return func(x, y float64) float64 { return x / y }
	case syntax.SLASHSLASH:
		return func(x, y float64) float64 { div, _ := floorMod(x, y); return div }
	case syntax.PERCENT:
		return func(x, y float64) float64 { _, mod := floorMod(x, y); return mod }
	case syntax.STARSTAR:
		return math.Pow
	}
	return nil
}

func intElement(token syntax.Token, isBool bool) func(x, y int64) int64 {
	switch token {
	case syntax.PLUS:
		if isBool {
			return func(x, y int64) int64 { return x | y }
		}
		return func(x, y int64) int64 { return x + y }
	case syntax.MINUS:
		return func(x, y int64) int64 { return x - y }
	case syntax.STAR:
		return func(x, y int64) int64 { return x * y }
	case syntax.SLASHSLASH:
		return func(x, y int64) int64 {
			if y == 0 {
				return 0
			}
			q := x / y
			if x%y != 0 && (x < 0) != (y < 0) {
				q--
			}
			return q
		}
	case syntax.PERCENT:
		return func(x, y int64) int64 {
			if y == 0 {
				return 0
			}
			m := x % y
			if m != 0 && (m < 0) != (y < 0) {
				m += y
			}
			return m
		}
	case syntax.STARSTAR:
		return func(x, y int64) int64 {
			out := int64(1)
			for ; y > 0; y >>= 1 {
				if y&1 == 1 {
					out *= x
				}
				x *= x
			}
			return out
		}
	case syntax.AMP:
		return func(x, y int64) int64 { return x & y }
	case syntax.PIPE:
		return func(x, y int64) int64 { return x | y }
	case syntax.CIRCUMFLEX:
		return func(x, y int64) int64 { return x ^ y }
	}
	return nil
}

func matmulArrays(a, b *array) (starlark.Value, error) {
	x, y := a.t, b.t
	if x.Dim() < 1 || y.Dim() < 1 {
		return nil, fmt.Errorf("matmul: an operand does not have enough dimensions")
	}
	if x.Dim() > 2 || y.Dim() > 2 {
		return matmulStacks(x, y)
	}
	shape := []int{}
	if x.Dim() == 1 {
		x = x.Reshape(1, x.Len())
	} else {
		shape = append(shape, x.Shape()[0])
	}
	if y.Dim() == 1 {
		y = y.Reshape(y.Len(), 1)
	} else {
		shape = append(shape, y.Shape()[1])
	}
	m, k, n := x.Shape()[0], x.Shape()[1], y.Shape()[1]
	if k != y.Shape()[0] {
		return nil, fmt.Errorf("matmul: dimensions %d and %d differ", k, y.Shape()[0])
	}
	if m*n > maxElements || m*n*max(k, 1) > 16*maxElements {
		return nil, fmt.Errorf("matmul of too many elements")
	}
	d := promoteNumpy(a.t.DType(), b.t.DType())
	out := tensor.New(d, shape...)
	for i := range m {
		for j := range n {
			var sum complex128
			var whole int64
			for l := range k {
				if d.IsInt() || d == tensor.Bool {
					whole += x.Int(i*k+l) * y.Int(l*n+j)
				} else {
					sum += gen.Product(x.At(i*k+l), y.At(l*n+j))
				}
			}
			if d.IsInt() || d == tensor.Bool {
				out.SetInt(i*n+j, whole)
			} else {
				out.Set(i*n+j, sum)
			}
		}
	}
	return (&array{out}).scalar(), nil
}

// matmulStacks multiplies the matrices in the last two dimensions, those before broadcast.
func matmulStacks(x, y *tensor.Tensor) (starlark.Value, error) {
	row, column := x.Dim() == 1, y.Dim() == 1
	if row {
		x = x.Reshape(1, x.Len())
	}
	if column {
		y = y.Reshape(y.Len(), 1)
	}
	m, n := x.Dim()-2, y.Dim()-2
	stack, err := tensor.BroadcastShapes(x.Shape()[:m], y.Shape()[:n])
	if err != nil {
		return nil, fmt.Errorf("matmul: operands could not be broadcast together")
	}
	count := tensor.NumElements(stack)
	flat := func(t *tensor.Tensor) (*tensor.Tensor, error) {
		matrix := t.Shape()[t.Dim()-2:]
		t, err := t.Expand(slices.Concat(stack, matrix)...)
		if err != nil {
			return nil, err
		}
		return t.Contiguous().Reshape(slices.Concat([]int{count}, matrix)...), nil
	}
	shape := slices.Clone(stack)
	if !row {
		shape = append(shape, x.Shape()[m])
	}
	if !column {
		shape = append(shape, y.Shape()[n+1])
	}
	if tensor.NumElements(shape) > maxElements || count > maxElements {
		return nil, errLarge
	}
	if x, err = flat(x); err != nil {
		return nil, err
	}
	if y, err = flat(y); err != nil {
		return nil, err
	}
	out := tensor.New(promoteNumpy(x.DType(), y.DType()), count, x.Shape()[1], y.Shape()[2])
	for i := range count {
		v, err := matmulArrays(&array{x.Select(0, i).Contiguous()}, &array{y.Select(0, i).Contiguous()})
		if err != nil {
			return nil, err
		}
		out.Select(0, i).CopyFrom(v.(*array).t)
	}
	return &array{out.Reshape(shape...)}, nil
}
