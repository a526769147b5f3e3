package onekernel

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// promising are the flags that state what a kernel takes where it refuses no other call, ""
// where no flags say that.
func (s *Session) promising() string {
	fine := func(of func(*result) bool) bool {
		return slices.ContainsFunc(s.outcomes, func(r *result) bool { return r.fine() && of(r) })
	}
	var flags []string
	for _, r := range s.outcomes {
		if len(r.problems) > 0 || r.kernel.Status == backend.OK {
			continue
		}
		flag := ""
		switch {
		case !fine(func(o *result) bool { return o.DType == r.DType }):
			flag = "--dtypes " + strings.Join(s.answered(), ",")
		case r.Layout != Contiguous && !fine(func(o *result) bool { return o.Layout == r.Layout }):
			flag = "--layouts contiguous"
		case r.smallest() == 0:
			flag = "--no-empty"
		case r.Regime == NonFinite:
			flag = "--no-nonfinite"
		default:
			return ""
		}
		if !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	slices.Sort(flags)
	return strings.Join(flags, " ")
}

// dividesByNothing reports whether a kernel refuses a call for a size of 0 that it divides by, as
// Python's numbers do (D ** -0.5) and so does reshape(-1, D), where the reference has no number
// either: tensors give NaN there.
func (r *result) dividesByNothing() bool {
	divides := r.kernel.Class == "ZeroDivisionError" || strings.Contains(r.kernel.Message, "-1 can be any value and is ambiguous")
	return r.kernel.Status == backend.Raised && divides && r.smallest() == 0 && !anywhere(r.ref, func(t *tensor.Tensor) bool {
		for i := range t.Len() {
			if compare.Finite(t.At(i)) {
				return true
			}
		}
		return false
	})
}

// answered are the dtypes in which a kernel is right in some case.
func (s *Session) answered() (all []string) {
	for _, dt := range s.maker.promises.DTypes {
		if slices.ContainsFunc(s.outcomes, func(r *result) bool { return r.DType == dt && r.fine() }) {
			all = append(all, dt.String())
		}
	}
	return all
}
