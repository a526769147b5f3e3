package interp

import (
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/eager"
	"plumb/internal/inplace"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// changes reports whether a call of the program may change a tensor.
func (r *Run) changes() bool {
	return slices.ContainsFunc(r.job.Program.Calls, func(c program.Call) bool {
		return op.InPlace(c.Target) || c.Out() != "" || hasTrue(c.Args, c.Kwargs) && r.takesInPlace(c.Target)
	})
}

// mayChange reports whether a call may change a tensor. That of a module may:
// an inplace=True of its constructor, or of one inside it, is not looked for.
func (r *Run) mayChange(c *program.Call) bool {
	return op.InPlace(c.Target) || c.Out() != "" || strings.HasPrefix(c.Target, "Module.") || hasTrue(c.Args, c.Kwargs)
}

func hasTrue(args []any, kwargs []program.Kwarg) bool {
	return slices.Contains(args, any(true)) || slices.ContainsFunc(kwargs, func(kw program.Kwarg) bool { return kw.Value == true })
}

// takesInPlace reports whether a target has an argument inplace.
func (r *Run) takesInPlace(target string) bool {
	has := func(s *op.Sig) bool { return s.Takes(arg.Inplace) }
	if m := r.modules.Lookup(target); m != nil {
		return slices.ContainsFunc(m.Sigs(), has)
	}
	return slices.ContainsFunc(r.table.Lookup(target), func(d *op.Def) bool { return slices.ContainsFunc(d.Sigs(), has) })
}

// host lets a space of variables work on a session.
type host struct{ Session }

var _ inplace.Host = host{}

// RequiresGrad reports whether a gradient of the value is wanted.
func (host) RequiresGrad(v op.Value) bool { return eager.RequiresGrad(v) }

// Same reports whether two variables have one tensor.
func (host) Same(a, b op.Value) bool { return tensorOf(a) == tensorOf(b) }

// Shares reports whether two values have one storage.
func (host) Shares(c *op.Call, a, b op.Value) bool {
	x, y := tensorOf(a), tensorOf(b)
	if x.Room() == 0 && y.Room() == 0 { // no storage tells
		return c.Def.View != nil && !c.Def.Traits.Has(op.ItselfOrCopy)
	}
	return x.SharesStorage(y)
}

// Overlaps follows PyTorch's get_overlap_status: only dense tensors are looked at.
func (host) Overlaps(a, b op.Value) bool {
	x, y := tensorOf(a), tensorOf(b)
	if x.Len() == 0 || y.Len() == 0 || !x.SharesStorage(y) || !dense(x) || !dense(y) {
		return false
	}
	if x.Offset() == y.Offset() && x.Len() == y.Len() {
		return !slices.Equal(x.Strides(), y.Strides())
	}
	return x.Offset() < y.Offset()+y.Len() && y.Offset() < x.Offset()+x.Len()
}

// dense reports whether the elements lie in some order without gaps.
func dense(t *tensor.Tensor) bool {
	return tensor.Extent(t.Shape(), t.Strides()) == t.Len() && !slices.Contains(t.Strides(), 0)
}

// Arrange lays a variable out anew.
func (h host) Arrange(v op.Value, strides []int) {
	x := v.(*eager.Var)
	h.Replace(x, x.CloneStrided(strides))
}

// Adopt gives a variable the elements of another.
func (h host) Adopt(v, elements op.Value) bool {
	h.Replace(v.(*eager.Var), tensorOf(elements))
	return true
}

// Track notes until when a variable is what its memory holds.
func (host) Track(v op.Value, version *int) { v.(*eager.Var).Track(version) }
