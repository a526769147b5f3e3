package program

import (
	"slices"
	"strings"
)

// attributes are the methods that Python reads without a call.
var attributes = []string{"Tensor.T", "Tensor.mT", "Tensor.H", "Tensor.mH", "Tensor.real", "Tensor.imag"}

// variadic are the functions that take tensors one by one, not as a list.
var variadic = []string{"broadcast_tensors", "block_diag", "cartesian_prod", "chain_matmul"}

// Written returns a call of a public name with the arguments of its signature
// as Python writes it: some names are attributes, some take a list's elements
// one by one.
func Written(result, target string, args []any, kwargs []Kwarg) Call {
	if len(args) > 0 {
		if list, ok := args[0].(List); ok && slices.Contains(variadic, target[strings.LastIndexByte(target, '.')+1:]) {
			return Call{Result: result, Target: target, Args: append(slices.Clone([]any(list)), args[1:]...), Kwargs: kwargs}
		}
	}
	if name, method := strings.CutPrefix(target, "Tensor."); method && len(args) == 1 && slices.Contains(attributes, target) {
		return Call{Result: result, Target: "getattr", Args: []any{args[0], name}}
	}
	return Call{Result: result, Target: target, Args: args, Kwargs: kwargs}
}
