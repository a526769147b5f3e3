package program

import (
	"slices"
	"strings"

	"plumb/op"
)

// attributes are the methods that Python reads without a call.
var attributes = []string{"Tensor.T", "Tensor.mT", "Tensor.H", "Tensor.mH", "Tensor.real", "Tensor.imag"}

// Written returns a call of a public name with the arguments of its signature
// as Python writes it: some names are attributes, and functions of an operator
// that is Variadic take a list's elements one by one.
func Written(d *op.Def, result, target string, args []any, kwargs []Kwarg) Call {
	if len(args) > 0 {
		if list, ok := args[0].(List); ok && d.Variadic {
			return Call{Result: result, Target: target, Args: append(slices.Clone([]any(list)), args[1:]...), Kwargs: kwargs}
		}
	}
	if name, method := strings.CutPrefix(target, "Tensor."); method && len(args) == 1 && slices.Contains(attributes, target) {
		return Call{Result: result, Target: "getattr", Args: []any{args[0], name}}
	}
	return Call{Result: result, Target: target, Args: args, Kwargs: kwargs}
}
