package script

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"sort"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
	"plumb/tensor"
)

func reduction(name string) func(*starlark.Thread, arguments) (starlark.Value, error) {
	return func(t *starlark.Thread, a arguments) (starlark.Value, error) {
		x, err := a.array(t, "a")
		if err != nil {
			return nil, err
		}
		return x.reduce(name, a)
	}
}

// reduce applies a reduction over axes.
func (a *array) reduce(name string, args arguments) (starlark.Value, error) {
	if d, err := numpyDType(args.get("dtype")); err != nil {
		return nil, err
	} else if d != tensor.Invalid {
		a = &array{a.t.Convert(d)}
	}
	axes, all, err := axisOf(args.get("axis"), a.t.Dim())
	if err != nil {
		return nil, err
	}
	keep := args.get("keepdims") != nil && bool(args.get("keepdims").Truth())
	ddof := 0
	if v := args.get("ddof"); v != nil {
		if ddof, err = starlark.AsInt32(v); err != nil {
			return nil, err
		}
	}
	var order, kept []int
	n := 1
	for i, s := range a.t.Shape() {
		reduced := all || slices.Contains(axes, i)
		switch {
		case reduced:
			n *= s
			if keep {
				kept = append(kept, 1)
			}
		default:
			order, kept = append(order, i), append(kept, s)
		}
	}
	for i := range a.t.Shape() {
		if all || slices.Contains(axes, i) {
			order = append(order, i)
		}
	}
	x := a.t.Permute(order...).Contiguous()
	d := reducedType(name, a.t.DType())
	if n == 0 && (name == "max" || name == "min" || name == "argmax" || name == "argmin") {
		return nil, fmt.Errorf("zero-size array to reduction operation %s which has no identity", name)
	}
	out := tensor.New(d, kept...)
	for i := range out.Len() {
		reduceRow(name, out, i, x, i*n, n, ddof)
	}
	return (&array{out}).scalar(), nil
}

func reducedType(name string, d tensor.DType) tensor.DType {
	switch name {
	case "any", "all":
		return tensor.Bool
	case "argmax", "argmin":
		return tensor.I64
	case "sum", "prod":
		if d == tensor.Bool || d.IsInt() {
			return tensor.I64
		}
	case "mean", "std", "var":
		if d == tensor.Bool || d.IsInt() {
			return tensor.F64
		}
		if name != "mean" {
			return d.Real()
		}
	}
	return d
}

// reduceRow reduces the elements from..from+n of x into element i of out.
func reduceRow(name string, out *tensor.Tensor, i int, x *tensor.Tensor, from, n, ddof int) {
	whole := x.DType().IsInt() || x.DType() == tensor.Bool
	switch name {
	case "any", "all":
		hit := name == "all"
		for j := from; j < from+n; j++ {
			if (x.At(j) != 0) == (name == "any") {
				hit = name == "any"
			}
		}
		out.SetInt(i, truthInt(hit))
	case "max", "min", "argmax", "argmin":
		best := from
		for j := from; j < from+n; j++ {
			a, b := x.Float(j), x.Float(best)
			if b == b && (a != a || (name == "max" || name == "argmax") && a > b || (name == "min" || name == "argmin") && a < b) {
				best = j
			}
		}
		if name[0] == 'a' {
			out.SetInt(i, int64(best-from))
		} else if whole {
			out.SetInt(i, x.Int(best))
		} else {
			out.Set(i, x.At(best))
		}
	case "sum", "prod":
		if whole {
			acc := truthInt(name == "prod")
			for j := from; j < from+n; j++ {
				if name == "sum" {
					acc += x.Int(j)
				} else {
					acc *= x.Int(j)
				}
			}
			out.SetInt(i, acc)
			return
		}
		out.Set(i, fold(name, x, from, n))
	case "mean":
		out.Set(i, fold("sum", x, from, n)/complex(float64(n), 0))
	case "std", "var":
		mean := fold("sum", x, from, n) / complex(float64(n), 0)
		sum := 0.0
		for j := from; j < from+n; j++ {
			r := cmplx.Abs(x.At(j) - mean)
			sum += float64(r * r)
		}
		v := sum / float64(max(n-ddof, 0))
		if name == "std" {
			v = math.Sqrt(v)
		}
		out.Set(i, complex(v, 0))
	}
}

func fold(name string, x *tensor.Tensor, from, n int) complex128 {
	acc := complex(0, 0)
	if name == "prod" {
		acc = 1
	}
	for j := from; j < from+n; j++ {
		if name == "sum" {
			acc += x.At(j)
		} else {
			acc = gen.Product(acc, x.At(j))
		}
	}
	return acc
}

// alongLast calls f for each row of an axis, laid out last.
func (a *array) alongLast(v starlark.Value, f func(row []int, x *tensor.Tensor)) (*tensor.Tensor, int, error) {
	x := a.t
	axis := x.Dim() - 1
	if v == starlark.None || x.Dim() == 0 {
		x, axis = x.Reshape(x.Len()), 0
	} else if v != nil {
		axes, _, err := axisOf(v, x.Dim())
		if err != nil || len(axes) != 1 {
			return nil, 0, fmt.Errorf("the axis must be one of the array's")
		}
		axis = axes[0]
	}
	moved := x.Transpose(axis, x.Dim()-1).Contiguous()
	n := moved.Shape()[moved.Dim()-1]
	for from := 0; from < moved.Len(); from += max(n, 1) {
		row := make([]int, n)
		for i := range row {
			row[i] = from + i
		}
		f(row, moved)
	}
	return moved, axis, nil
}

func cumsum(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	axis := args.get("axis")
	if axis == nil {
		axis = starlark.None
	}
	src := &array{a.t.Convert(reducedType("sum", a.t.DType()))}
	moved, at, err := src.alongLast(axis, func(row []int, x *tensor.Tensor) {
		for i := 1; i < len(row); i++ {
			if x.DType().IsInt() {
				x.SetInt(row[i], x.Int(row[i])+x.Int(row[i-1]))
			} else {
				x.Set(row[i], x.At(row[i])+x.At(row[i-1]))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return &array{moved.Transpose(at, moved.Dim()-1).Clone()}, nil
}

// sortedRows returns the array sorted along an axis, and the indices that sort it.
func (a *array) sortedRows(axis starlark.Value) (values, indices *array, err error) {
	var at []int64
	var sorted *tensor.Tensor
	moved, dim, err := a.alongLast(axis, func(row []int, x *tensor.Tensor) {
		order := make([]int, len(row))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(i, j int) bool {
			p, q := x.Float(row[order[i]]), x.Float(row[order[j]])
			return p < q || q != q && p == p
		})
		for _, o := range order {
			at = append(at, int64(o))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	sorted = tensor.New(moved.DType(), moved.Shape()...)
	n := moved.Shape()[moved.Dim()-1]
	for i, o := range at {
		from := i / n * n
		if moved.DType().IsInt() {
			sorted.SetInt(i, moved.Int(from+int(o)))
		} else {
			sorted.Set(i, moved.At(from+int(o)))
		}
	}
	index := tensor.Of(tensor.I64, moved.Shape(), at)
	last := moved.Dim() - 1
	return &array{sorted.Transpose(dim, last).Clone()}, &array{index.Transpose(dim, last).Clone()}, nil
}

func sortCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	v, _, err := a.sortedRows(args.get("axis"))
	return v, err
}

func argsortCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	_, i, err := a.sortedRows(args.get("axis"))
	return i, err
}

// unique is numpy.unique; what return_index, return_inverse and return_counts ask for
// follows the elements.
func unique(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "ar")
	if err != nil {
		return nil, err
	}
	v, order, err := a.sortedRows(starlark.None)
	if err != nil {
		return nil, err
	}
	at := []int{}
	inverse := tensor.New(tensor.I64, v.t.Len())
	for i := range v.t.Len() {
		if i == 0 || v.t.At(i) != v.t.At(i-1) {
			at = append(at, i)
		}
		inverse.SetInt(int(order.t.Int(i)), int64(len(at)-1))
	}
	out := tensor.New(v.t.DType(), len(at))
	first, counts := tensor.New(tensor.I64, len(at)), tensor.New(tensor.I64, len(at))
	for i, j := range at {
		out.Set(i, v.t.At(j))
		end := v.t.Len()
		if i+1 < len(at) {
			end = at[i+1]
		}
		counts.SetInt(i, int64(end-j))
		least := order.t.Int(j)
		for k := j; k < end; k++ {
			least = min(least, order.t.Int(k))
		}
		first.SetInt(i, least)
	}
	all := starlark.Tuple{&array{out}}
	for _, more := range []struct {
		name string
		t    *tensor.Tensor
	}{{"return_index", first}, {"return_inverse", inverse}, {"return_counts", counts}} {
		if v := args.get(more.name); v != nil && bool(v.Truth()) {
			all = append(all, &array{more.t})
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}
