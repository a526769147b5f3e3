package kernel

import (
	"fmt"

	"plumb/tensor"
)

// Lane is the set of types in which pointwise and reduction kernels see
// elements: float32 for float32 and the half types, float64, int64 for
// integers and bool, complex128 for both complex types, and uint8 for truth values.
type Lane interface {
	float32 | float64 | int64 | complex128 | uint8
}

type realLane interface {
	float32 | float64 | int64
}

// loadFunc fills dst with the elements at, at+step, …
type loadFunc[T any] func(dst []T, at, step int)

// storeFunc writes src to the elements at, at+step, …
type storeFunc[T any] func(src []T, at, step int)

// lanes returns t's elements when they are stored as T; else nil.
func lanes[T Lane](t *tensor.Tensor) []T {
	var zero T
	var d tensor.DType
	switch any(zero).(type) {
	case float32:
		d = tensor.F32
	case float64:
		d = tensor.F64
	case int64:
		d = tensor.I64
	case complex128:
		d = tensor.C128
	case uint8:
		d = tensor.U8
		if t.DType() == tensor.Bool {
			d = tensor.Bool
		}
	}
	if t.DType() != d {
		return nil
	}
	return tensor.Data[T](t)
}

// loader returns how elements of t become lanes. The value converts without
// loss but for float64 to float32 and int64 to a float.
func loader[T Lane](t *tensor.Tensor) loadFunc[T] {
	var zero T
	var f any
	switch any(zero).(type) {
	case float32:
		f = realLoader[float32](t)
	case float64:
		f = realLoader[float64](t)
	case int64:
		f = realLoader[int64](t)
	case complex128:
		f = complexLoader(t)
	case uint8:
		f = loadFunc[uint8](loadReal[uint8, uint8](t))
	}
	return f.(loadFunc[T])
}

func realLoader[T realLane](t *tensor.Tensor) loadFunc[T] {
	switch t.DType() {
	case tensor.Bool, tensor.U8:
		return loadReal[T, uint8](t)
	case tensor.I8:
		return loadReal[T, int8](t)
	case tensor.I16:
		return loadReal[T, int16](t)
	case tensor.I32:
		return loadReal[T, int32](t)
	case tensor.I64:
		return loadReal[T, int64](t)
	case tensor.F32:
		return loadReal[T, float32](t)
	case tensor.F64:
		return loadReal[T, float64](t)
	case tensor.F16:
		return loadFloat16[T](t)
	case tensor.BF16:
		return loadBFloat16[T](t)
	}
	panic(fmt.Sprintf("kernel: %s elements read as reals", t.DType()))
}

type stored interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64
}

func loadReal[T realLane | uint8, S stored](t *tensor.Tensor) loadFunc[T] {
	data := tensor.Data[S](t)
	return func(dst []T, at, step int) {
		for i := range dst {
			dst[i] = T(data[at])
			at += step
		}
	}
}

func loadFloat16[T realLane](t *tensor.Tensor) loadFunc[T] {
	data := tensor.Data[tensor.Float16](t)
	return func(dst []T, at, step int) {
		if some, ok := any(dst).([]float32); ok && step == 1 {
			tensor.FromFloat16s(some, data[at:][:len(some)])
			return
		}
		for i := range dst {
			dst[i] = T(data[at].Float32())
			at += step
		}
	}
}

func loadBFloat16[T realLane](t *tensor.Tensor) loadFunc[T] {
	data := tensor.Data[tensor.BFloat16](t)
	return func(dst []T, at, step int) {
		if some, ok := any(dst).([]float32); ok && step == 1 {
			tensor.FromBFloat16s(some, data[at:][:len(some)])
			return
		}
		for i := range dst {
			dst[i] = T(data[at].Float32())
			at += step
		}
	}
}

func complexLoader(t *tensor.Tensor) loadFunc[complex128] {
	switch t.DType() {
	case tensor.C64:
		data := tensor.Data[complex64](t)
		return func(dst []complex128, at, step int) {
			for i := range dst {
				dst[i] = complex128(data[at])
				at += step
			}
		}
	case tensor.C128:
		data := tensor.Data[complex128](t)
		return func(dst []complex128, at, step int) {
			for i := range dst {
				dst[i] = data[at]
				at += step
			}
		}
	}
	parts := realLoader[float64](t)
	return func(dst []complex128, at, step int) {
		var buf [64]float64
		for len(dst) > 0 {
			n := min(len(dst), len(buf))
			parts(buf[:n], at, step)
			for i, v := range buf[:n] {
				dst[i] = complex(v, 0)
			}
			dst, at = dst[n:], at+n*step
		}
	}
}

// storer returns how lanes become elements of t, rounded once; integers wrap
// around and a bool asks whether the lane is non-zero.
func storer[T Lane](t *tensor.Tensor) storeFunc[T] {
	var zero T
	var f any
	switch any(zero).(type) {
	case float32:
		f = floatStorer[float32](t)
	case float64:
		f = floatStorer[float64](t)
	case int64:
		f = intStorer(t)
	case complex128:
		f = complexStorer(t)
	case uint8:
		f = storeReal[uint8, uint8](t)
	}
	return f.(storeFunc[T])
}

func floatStorer[T float32 | float64](t *tensor.Tensor) storeFunc[T] {
	switch t.DType() {
	case tensor.F32:
		return storeReal[T, float32](t)
	case tensor.F64:
		return storeReal[T, float64](t)
	case tensor.F16:
		data := tensor.Data[tensor.Float16](t)
		return func(src []T, at, step int) {
			if some, ok := any(src).([]float32); ok && step == 1 {
				tensor.ToFloat16s(data[at:][:len(some)], some)
				return
			}
			for _, v := range src {
				data[at] = tensor.ToFloat16(float32(v))
				at += step
			}
		}
	case tensor.BF16:
		data := tensor.Data[tensor.BFloat16](t)
		return func(src []T, at, step int) {
			if some, ok := any(src).([]float32); ok && step == 1 {
				tensor.ToBFloat16s(data[at:][:len(some)], some)
				return
			}
			for _, v := range src {
				data[at] = tensor.ToBFloat16(float32(v))
				at += step
			}
		}
	}
	panic(fmt.Sprintf("kernel: reals written to %s elements", t.DType()))
}

func intStorer(t *tensor.Tensor) storeFunc[int64] {
	switch t.DType() {
	case tensor.Bool:
		data := tensor.Data[uint8](t)
		return func(src []int64, at, step int) {
			for _, v := range src {
				data[at] = truth(v != 0)
				at += step
			}
		}
	case tensor.U8:
		return storeReal[int64, uint8](t)
	case tensor.I8:
		return storeReal[int64, int8](t)
	case tensor.I16:
		return storeReal[int64, int16](t)
	case tensor.I32:
		return storeReal[int64, int32](t)
	case tensor.I64:
		return storeReal[int64, int64](t)
	}
	panic(fmt.Sprintf("kernel: integers written to %s elements", t.DType()))
}

func complexStorer(t *tensor.Tensor) storeFunc[complex128] {
	if t.DType() == tensor.C64 {
		data := tensor.Data[complex64](t)
		return func(src []complex128, at, step int) {
			for _, v := range src {
				data[at] = complex64(v)
				at += step
			}
		}
	}
	data := tensor.Data[complex128](t)
	return func(src []complex128, at, step int) {
		for _, v := range src {
			data[at] = v
			at += step
		}
	}
}

func storeReal[T realLane | uint8, S stored](t *tensor.Tensor) storeFunc[T] {
	data := tensor.Data[S](t)
	return func(src []T, at, step int) {
		for _, v := range src {
			data[at] = S(v)
			at += step
		}
	}
}

func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
