package shared

/*
#include <stdint.h>
#include <stdlib.h>
#include "plumb.h"

DLManagedTensor *plumb_managed(void *data, int ndim, uint8_t code, uint8_t bits, uintptr_t handle);
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"unsafe"

	"plumb/internal/foreign"
	"plumb/op"
	"plumb/tensor"
)

// fault returns an error as C has it; nil for none.
func fault(name string, err error) *C.char {
	if err == nil {
		return nil
	}
	return C.CString(string(library.FaultOf(name, err).JSON()))
}

// text returns a value as JSON, or the error.
func text(name string, v any, err error) *C.char {
	if err != nil {
		return fault(name, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fault(name, err)
	}
	return C.CString(string(b))
}

//export goPrepare
func goPrepare(call *C.char, length C.size_t) *C.char {
	d, err := library.Prepare(C.GoBytes(unsafe.Pointer(call), C.int(min(length, 1<<30))))
	return text("a call", d, err)
}

//export goRun
func goRun(plan C.int64_t, tensors unsafe.Pointer, n C.int, results unsafe.Pointer, m C.int) *C.char {
	p := library.Plan(int(plan))
	if p == nil {
		return fault("", noPlan(plan))
	}
	if err := p.Run(memories(tensors, n), memories(results, m)); err != nil {
		return fault(p.Name(), err)
	}
	return nil
}

func noPlan(plan C.int64_t) error { return fmt.Errorf("there is no plan %d", plan) }

func memories(at unsafe.Pointer, n C.int) []foreign.Memory {
	return unsafe.Slice((*foreign.Memory)(at), max(n, 0))
}

//export goRunNew
func goRunNew(plan C.int64_t, tensors unsafe.Pointer, n C.int, results **C.DLManagedTensor, shares *C.int, room C.int, count *C.int) *C.char {
	p := library.Plan(int(plan))
	if p == nil {
		return fault("", noPlan(plan))
	}
	out, shared, err := p.RunNew(memories(tensors, n))
	if err == nil {
		err = give(out, shared, results, room, count)
	}
	if err == nil && shares != nil {
		for i, at := range shared {
			unsafe.Slice(shares, room)[i] = C.int(at)
		}
	}
	return fault(p.Name(), err)
}

//export goCall
func goCall(name, arguments *C.char, tensors unsafe.Pointer, n C.int, results **C.DLManagedTensor, room C.int, count *C.int) *C.char {
	called := C.GoString(name)
	err := call(called, C.GoString(arguments), unsafe.Slice((**C.DLTensor)(tensors), max(n, 0)), results, room, count)
	return fault(called, err)
}

func call(name, arguments string, tensors []*C.DLTensor, results **C.DLManagedTensor, room C.int, count *C.int) error {
	var layouts []op.Meta
	var at []foreign.Memory
	for _, t := range tensors {
		m, err := layout(t)
		if err != nil {
			return err
		}
		layouts = append(layouts, m)
		at = append(at, unsafe.Add(t.data, uintptr(t.byte_offset)))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &fields); err != nil {
		return fmt.Errorf("%s: the arguments cannot be read: %w", name, err)
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["name"] = quoted
	request, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	p, err := library.Bind(request, layouts)
	if err != nil {
		return err
	}
	out, shared, err := p.RunNew(at)
	if err != nil {
		return err
	}
	return give(out, shared, results, room, count)
}

// codes are DLPack's codes of dtypes.
var codes = map[tensor.DType]C.DLDataType{
	tensor.Bool: {code: 6, bits: 8}, tensor.U8: {code: 1, bits: 8},
	tensor.I8: {bits: 8}, tensor.I16: {bits: 16}, tensor.I32: {bits: 32}, tensor.I64: {bits: 64},
	tensor.F16: {code: 2, bits: 16}, tensor.BF16: {code: 4, bits: 16}, tensor.F32: {code: 2, bits: 32}, tensor.F64: {code: 2, bits: 64},
	tensor.C64: {code: 5, bits: 64}, tensor.C128: {code: 5, bits: 128},
}

func layout(t *C.DLTensor) (m op.Meta, err error) {
	if t == nil || t.ndim < 0 || t.ndim > 64 {
		return m, errors.New("a tensor is NULL, or of more than 64 dimensions")
	}
	if d := t.device.device_type; d != 1 && d != 3 {
		return m, op.RuntimeError("a tensor is on the device of DLPack's type %d: want one in the memory of the CPU", d)
	}
	for d, c := range codes {
		if c.code == t.dtype.code && c.bits == t.dtype.bits && t.dtype.lanes == 1 {
			m.DType = d
		}
	}
	if m.DType == tensor.Invalid {
		return m, op.TypeError("a tensor has DLPack's dtype code %d of %d bits and %d lanes, which Plumb lacks", t.dtype.code, t.dtype.bits, t.dtype.lanes)
	}
	for i := range int(t.ndim) {
		m.Shape = append(m.Shape, int(unsafe.Slice(t.shape, t.ndim)[i]))
		if t.strides != nil {
			m.Strides = append(m.Strides, int(unsafe.Slice(t.strides, t.ndim)[i]))
		}
	}
	return m, nil
}

// give hands results over; their memory, where it is Go's, is pinned until they are deleted.
func give(out []*tensor.Tensor, shared []int, results **C.DLManagedTensor, room C.int, count *C.int) error {
	if len(out) > int(room) {
		return fmt.Errorf("the call has %d results, the caller room for %d", len(out), room)
	}
	for i, t := range out {
		var data unsafe.Pointer
		var handle cgo.Handle
		if storage := t.Storage(); len(storage) > 0 && t.Len() > 0 {
			data = unsafe.Pointer(&storage[t.Offset()*t.DType().Size()])
			if shared[i] < 0 {
				pin := &runtime.Pinner{}
				pin.Pin(&storage[0])
				handle = cgo.NewHandle(pin)
			}
		}
		c := codes[t.DType()]
		m := C.plumb_managed(data, C.int(t.Dim()), c.code, c.bits, C.uintptr_t(handle))
		for j, n := range t.Shape() {
			unsafe.Slice(m.dl_tensor.shape, t.Dim())[j] = C.int64_t(n)
			unsafe.Slice(m.dl_tensor.strides, t.Dim())[j] = C.int64_t(t.Strides()[j])
		}
		unsafe.Slice(results, room)[i] = m
	}
	*count = C.int(len(out))
	return nil
}

//export goRelease
func goRelease(handle C.uintptr_t) {
	if handle == 0 {
		return
	}
	h := cgo.Handle(handle)
	h.Value().(*runtime.Pinner).Unpin()
	h.Delete()
}

//export goForget
func goForget(plan C.int64_t) { library.Forget(int(plan)) }

//export goSeed
func goSeed(seed C.uint64_t) { library.Seed(uint64(seed)) }

//export goOperators
func goOperators() *C.char { return text("", library.Names(), nil) }

//export goDescribe
func goDescribe(name *C.char) *C.char {
	called := C.GoString(name)
	d, err := library.Describe(called)
	return text(called, d, err)
}
