package ops

import (
	"plumb/op"
	"plumb/tensor"
)

// floatKernels are the kernels of a product, window or normalisation. The
// tensors arrive contiguous, in float32 in place of half precision; results are
// rounded once and laid out as Infer said.
func floatKernels(arg op.TensorArg, run32, run64 func(c *op.Run) error) []op.Kernel {
	return []op.Kernel{
		{Name: "float32", When: op.DTypeIn(arg, tensor.F32), Run: run32},
		{Name: "float64", When: op.DTypeIn(arg, tensor.F64), Run: run64},
		{Name: "bfloat16", When: op.DTypeIn(arg, tensor.BF16), Run: inFloat32(run32)},
		{Name: "float16", When: op.DTypeIn(arg, tensor.F16), Run: inFloat32(run32), Since: "2"},
	}
}

// reporting marks the kernels for float32 and float64 as those that call Done.
func reporting(ks []op.Kernel) []op.Kernel {
	for i := range ks {
		ks[i].Reports = ks[i].Name == "float32" || ks[i].Name == "float64"
	}
	return ks
}

// inFloat32 runs a float32 kernel on half-precision tensors.
func inFloat32(run func(c *op.Run) error) func(c *op.Run) error {
	return func(c *op.Run) error {
		wide := &op.Run{Args: c.MapValues(func(v op.Value) op.Value { return toFloat32(v.(*tensor.Tensor)) })}
		for _, out := range c.Out {
			wide.Out = append(wide.Out, tensor.Unset(workType(out.DType()), out.Shape(), nil))
		}
		if err := run(wide); err != nil {
			return err
		}
		for i, out := range c.Out {
			out.CopyFrom(wide.Out[i])
		}
		return nil
	}
}

// workType is the dtype in which kernels compute on elements of d.
func workType(d tensor.DType) tensor.DType {
	if d == tensor.F16 || d == tensor.BF16 {
		return tensor.F32
	}
	return d
}

func toFloat32(t *tensor.Tensor) *tensor.Tensor {
	if w := workType(t.DType()); w != t.DType() {
		return t.Convert(w)
	}
	return t
}

// contiguousData returns the elements of a tensor argument in row-major order; nil for None.
func contiguousData[T tensor.Elem](t *tensor.Tensor) []T {
	if t == nil {
		return nil
	}
	return tensor.Data[T](t.Contiguous())[:t.Len()]
}

// writeTo runs f on a contiguous place for the elements of a result.
func writeTo[T tensor.Elem](out *tensor.Tensor, f func(data []T)) {
	if out.IsContiguous() {
		f(tensor.Data[T](out)[:out.Len()])
		return
	}
	t := tensor.Unset(out.DType(), out.Shape(), nil)
	f(tensor.Data[T](t)[:t.Len()])
	out.CopyFrom(t)
}

// zeroResults is the kernel of a call whose results have no elements, or only zeros.
func zeroResults(c *op.Run) error {
	for _, out := range c.Out {
		clear(out.Storage())
	}
	return nil
}

// accumulating is the class of results that sum terms.
func accumulating(terms func(a op.Args) int, reason string) op.Tol {
	return op.Tol{Class: op.Accumulating, Terms: terms, Reason: reason}
}

// sizeOf returns a dimension counted from the end, 1 for missing ones.
func sizeOf(v op.Value, fromEnd int) int {
	if s := v.Shape(); len(s) >= fromEnd {
		return s[len(s)-fromEnd]
	}
	return 1
}

// sumOver returns the sum of v over dims, which stay with size 1.
func sumOver(g *op.Grad, v op.Value, dims ...int) op.Value {
	return g.Op("sum", v, op.Kw("dim", dims), op.Kw("keepdim", true))
}
