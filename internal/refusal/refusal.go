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
