// Package refusal knows what PyTorch says when it refuses a call. Recorded
// outcomes hold only its words, and Plumb's own operators refuse in them.
package refusal

import (
	_ "embed"
	"encoding/json"
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
	": Expected floating point type for result tensor, but got: Complex",
	"This function was deprecated since version ",
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

//go:embed equivalents.json
var equivalents []byte

// equivalent is a line of the table: a class of exceptions and the one of
// PyTorch's that it stands for. Says, where set, is a part of the message.
type equivalent struct {
	Raised string `json:"raised"`
	Says   string `json:"says"`
	For    string `json:"for"`
	Why    string `json:"why"`
}

// anyClass stands for every class, where it is raised and where it is stood for.
const anyClass = "*"

// table has the equivalents of every subject, and those of frameworks whose
// exceptions have classes of their own.
var table = func() (t struct{ All, Framework []equivalent }) {
	if err := json.Unmarshal(equivalents, &t); err != nil {
		panic(err)
	}
	return t
}()

// Caught returns the class by which a caller would catch what a side raised.
func Caught(o *backend.Outcome) string {
	for _, e := range table.All {
		if e.Raised == o.Class && strings.Contains(o.Message, e.Says) {
			return e.For
		}
	}
	return o.Class
}

// Alike reports whether what a candidate raised stands for what the reference did.
func Alike(ref, cand *backend.Outcome) bool {
	want, got := Caught(ref), Caught(cand)
	return want == got || cand.Refused || cand.OwnForms && slices.ContainsFunc(table.Framework, func(e equivalent) bool {
		return (e.Raised == got || e.Raised == anyClass) && (e.For == want || e.For == anyClass) && strings.Contains(cand.Message, e.Says)
	})
}
