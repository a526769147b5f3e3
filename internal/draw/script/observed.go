package script

import (
	"fmt"
	"plumb/program"
	"plumb/tensor"

	"go.starlark.net/starlark"
)

// observed answers the methods that look at a value instead of computing one.
func (s *symbol) observed(name string, args starlark.Tuple, kwargs []starlark.Tuple) (bool, starlark.Value, error) {
	if len(kwargs) > 0 || len(args) > 1 || len(args) == 1 && name != "size" {
		return false, nil, nil
	}
	switch name {
	case "item":
		v, err := s.item()
		if err != nil {
			return true, nil, err
		}
		out, err := s.d.fromProgram(v)
		return true, out, err
	case "numpy", "tolist":
		a, err := s.array()
		if err != nil {
			return true, nil, err
		}
		if name == "tolist" {
			return true, a.list(), nil
		}
		return true, a, nil
	case "storage_offset":
		if kind, err := s.known(); kind != kindTensor || err != nil {
			return err != nil, nil, err
		}
		v, err := s.d.ask(program.Call{Target: "Tensor.storage_offset", Args: []any{s.ref}})
		if err != nil {
			return true, nil, err
		}
		out, err := s.d.fromProgram(v.Plain)
		return true, out, err
	case "data_ptr", "storage", "untyped_storage":
		return true, s.addressed(name), nil
	case "size", "dim", "ndimension", "numel", "nelement":
		v, err := s.sizes(name, args)
		return true, v, err
	case "is_contiguous", "stride", "is_floating_point", "is_complex", "element_size":
		t, err := s.tensor()
		if err != nil || t == nil {
			return err != nil, nil, err
		}
		return true, layoutOf(t, name), nil
	}
	return false, nil, nil
}

// layoutOf answers what a tensor's dtype and strides tell.
func layoutOf(t *tensor.Tensor, name string) starlark.Value {
	switch name {
	case "stride":
		return intTuple(t.Strides())
	case "is_contiguous":
		return starlark.Bool(t.IsContiguous())
	case "is_floating_point":
		return starlark.Bool(t.DType().IsFloat())
	case "is_complex":
		return starlark.Bool(t.DType().IsComplex())
	}
	return starlark.MakeInt(t.DType().Size())
}

// sizes answers what a tensor's shape tells.
func (s *symbol) sizes(name string, args starlark.Tuple) (starlark.Value, error) {
	shape, err := s.shape()
	if err != nil {
		return nil, err
	}
	switch {
	case name == "numel" || name == "nelement":
		return starlark.MakeInt(tensor.NumElements(shape)), nil
	case name != "size":
		return starlark.MakeInt(len(shape)), nil
	case len(args) == 0:
		return intTuple(shape), nil
	}
	i, err := s.d.integer(args[0])
	if err != nil {
		return nil, err
	}
	if i < 0 {
		i += len(shape)
	}
	if i < 0 || i >= len(shape) {
		return nil, fmt.Errorf("%s.size(%s) of a tensor with %d dimensions", s.ref, args[0], len(shape))
	}
	return starlark.MakeInt(shape[i]), nil
}
