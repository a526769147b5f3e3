// Package refusal knows what PyTorch says when it refuses a call. Recorded
// outcomes hold only its words, and Plumb's own operators refuse in them.
package refusal

import (
	"regexp"
	"slices"
	"strings"

	"plumb/backend"
)

// missingKernel is what PyTorch says of a legal call whose dtype it has no kernel
// for, or whose gradient it lacks.
var missingKernel = []string{
	"\" not implemented for '",
	"derivative for ",
	"_cpu not implemented for ",
	" is not implemented for half on CPU",
	"Low precision dtypes not supported",
	"does not support automatic differentiation for outputs with complex dtype",
	"is not differentiable with respect to argument '",
	" to have one of the following scalar types: Half, Float, Double; but got CPUBFloat16Type",
}

// ours is what Plumb's own operators say of a dtype, or of a gradient, that
// they have no kernel for and PyTorch may have.
var ours = regexp.MustCompile(`: no kernel for \(|not implemented for (argument '\w+' of dtype )?(bool|uint8|int\d+|float\d+|bfloat16|complex\d+)\b|: the derivative of \w+ with respect to '\w+' is not implemented`)

// form is what Plumb's own operators say where they lack a signature for the
// arguments, which PyTorch may have.
var form = regexp.MustCompile(`: no signature accepts the arguments |: argument '\w+' must be \S+, not |^[\w.]+ takes \d+ positional arguments but \d+ were given`)

// Gap reports whether an outcome is an exception by which Plumb's own operators
// say that they lack a kernel, or a signature: a call that PyTorch
// accepts is beyond them then, and no evidence of a fault.
func Gap(o *backend.Outcome) bool {
	return o.Status == backend.Raised && (ours.MatchString(o.Message) || o.Class == "TypeError" && form.MatchString(o.Message))
}

// Classify sets the NoKernel of an outcome by its exception.
func Classify(o *backend.Outcome) {
	o.NoKernel = o.Status == backend.Raised && (o.Class == "RuntimeError" || o.Class == "NotImplementedError") &&
		slices.ContainsFunc(missingKernel, func(s string) bool { return strings.Contains(o.Message, s) })
}

// dispatch are the words of PyTorch's dispatch macros, which look at a dtype
// before any element is read.
var dispatch = regexp.MustCompile(`^"\w+" not implemented for '\w+'$`)

// OfDType reports whether an exception's message says that a function has
// no kernel for a dtype, whatever the elements are.
func OfDType(message string) bool { return dispatch.MatchString(message) }

// Caught returns the class by which a caller would catch what a side raised.
func Caught(o *backend.Outcome) string {
	switch {
	case o.Class == "NotImplementedError":
		return "RuntimeError" // its subclass
	case o.Class == "AttributeError" && strings.Contains(o.Message, "' object has no attribute '"):
		return "TypeError" // what a function written in Python raises for an argument of a wrong type
	}
	return o.Class
}
