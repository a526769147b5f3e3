package global

import (
	"context"
	"fmt"
	"math"
	"slices"

	"plumb/internal/ranks"
	"plumb/op"
	"plumb/tensor"
)

// Tensor is a tensor of which the ranks of a placement hold parts. Its shape,
// dtype and strides are those of the whole.
type Tensor struct {
	meta      op.Meta
	placement Placement
	sbp       SBP
	parts     []*tensor.Tensor // by position in the placement
}

var _ op.Value = (*Tensor)(nil)

// DType returns the element type.
func (t *Tensor) DType() tensor.DType { return t.meta.DType }

// Shape returns the logical shape.
func (t *Tensor) Shape() []int { return t.meta.Shape }

// Strides returns the strides that the whole has.
func (t *Tensor) Strides() []int {
	if t.meta.Strides == nil {
		return tensor.ContiguousStrides(t.meta.Shape)
	}
	return t.meta.Strides
}

// Placement returns where the tensor lies.
func (t *Tensor) Placement() Placement { return t.placement }

// SBP returns how the ranks share the tensor.
func (t *Tensor) SBP() SBP { return slices.Clone(t.sbp) }

// String returns dtype, shape, placement and sbp.
func (t *Tensor) String() string {
	return fmt.Sprintf("%s%s on %s by %s", t.meta.DType, tensor.ShapeString(t.meta.Shape), t.placement, t.sbp)
}

// Part returns what a rank holds; nil where it is not in the placement.
func (t *Tensor) Part(rank int) *tensor.Tensor {
	if i := slices.Index(t.placement.Ranks, rank); i >= 0 {
		return t.parts[i]
	}
	return nil
}

// ToLocal returns what a rank holds, OneFlow's x.to_local() on it: a tensor of no
// elements where the rank is not in the placement.
func (t *Tensor) ToLocal(rank int) *tensor.Tensor {
	if part := t.Part(rank); part != nil {
		return part
	}
	return tensor.New(t.meta.DType, make([]int, max(1, len(t.meta.Shape)))...)
}

// LocalGradient makes the gradient of a tensor of those that the ranks have for
// what ToLocal gave them, by position: pieces where it was split, summands where
// each had the whole, the whole where each had a summand.
func (t *Tensor) LocalGradient(gradients []*tensor.Tensor) (*Tensor, error) {
	g, err := FromParts(gradients, t.placement, t.sbp.Dual())
	switch {
	case err != nil:
		return nil, err
	case !slices.Equal(g.meta.Shape, t.meta.Shape):
		return nil, op.RuntimeError("gradients of the shape %s do not fit a tensor of %s", tensor.ShapeString(g.meta.Shape), tensor.ShapeString(t.meta.Shape))
	}
	return g, g.replicated()
}

// FromParts makes a tensor of what each rank of the placement holds, by
// position. The shape is what S pieces add up to.
func FromParts(parts []*tensor.Tensor, p Placement, s SBP) (*Tensor, error) {
	if len(parts) != p.size() {
		return nil, op.RuntimeError("%d parts do not fit the %d ranks of %s", len(parts), p.size(), p)
	}
	if err := s.Check(p, parts[0].Shape()); err != nil {
		return nil, err
	}
	shape := slices.Clone(parts[0].Shape())
	for axis := range shape {
		shape[axis] = s.logicalSize(axis, parts, p)
	}
	t := &Tensor{meta: op.Meta{DType: parts[0].DType(), Shape: shape}, placement: p, sbp: slices.Clone(s), parts: slices.Clone(parts)}
	if err := t.consistent(); err != nil {
		return nil, err
	}
	return t.there()
}

// logicalSize adds up the sizes along an axis of the pieces into which it is split.
func (s SBP) logicalSize(axis int, parts []*tensor.Tensor, p Placement) int {
	total := 0
	for i, part := range parts {
		at := p.Coordinates(i)
		counts := axis < part.Dim()
		for k, e := range s {
			if a, split := e.Axis(); (!split || a != axis) && at[k] != 0 {
				counts = false
			}
		}
		if counts {
			total += part.Shape()[axis]
		}
	}
	return total
}

// consistent returns the promise that a part breaks: a dtype or shape that is
// not what the sbp says.
func (t *Tensor) consistent() error {
	for i, part := range t.parts {
		want := t.sbp.regionOf(t.placement, t.meta.Shape, t.placement.Coordinates(i)).size
		if part.DType() != t.meta.DType || !slices.Equal(part.Shape(), want) {
			return &PromiseError{t, fmt.Sprintf("rank %d holds %s, not %s%s", t.placement.Ranks[i], part, t.meta.DType, tensor.ShapeString(want))}
		}
	}
	return nil
}

// PromiseError says that the parts of a tensor are not what its sbp promises.
type PromiseError struct {
	Tensor *Tensor
	Broken string
}

// Error names the tensor and the promise.
func (e *PromiseError) Error() string { return fmt.Sprintf("%s: %s", e.Tensor, e.Broken) }

// FromLocal makes a local tensor, which all ranks know, global: each rank
// copies its part, or makes its summand.
func FromLocal(x *tensor.Tensor, p Placement, s SBP) (*Tensor, error) {
	if err := s.Check(p, x.Shape()); err != nil {
		return nil, err
	}
	t := &Tensor{meta: metaOf(x), placement: p, sbp: slices.Clone(s)}
	for i := range p.size() {
		at := p.Coordinates(i)
		part := narrow(x, region{make([]int, x.Dim()), x.Shape()}, s.regionOf(p, x.Shape(), at)).CloneAs(tensor.Contiguous)
		for k, e := range s {
			if e == op.P {
				if p.Hierarchy[k] > 1 {
					summand(part, at[k])
				}
			}
		}
		t.parts = append(t.parts, part)
	}
	return t.there()
}

func metaOf(x *tensor.Tensor) op.Meta {
	return op.Meta{DType: x.DType(), Shape: slices.Clone(x.Shape()), Strides: slices.Clone(x.Strides())}
}

// summand makes a part that has the whole one of the summands along a dimension
// of a hierarchy: of x the first rank holds 2x, the second -x, the others -0, which
// changes no sum. So they add up without a rounding, and sums and products of
// them too, while no function but a linear one takes them for x. What 2x would
// not hold, and zeros for the sake of their sign, the first rank has alone.
func summand(part *tensor.Tensor, at int) {
	nothing := neutral(part.DType())
	for i := range part.Len() {
		v := part.At(i)
		switch doubles := at < 2 && doubled(part.DType(), v); {
		case doubles && at == 0:
			part.Set(i, 2*v)
		case doubles:
			part.Set(i, -v)
		case at > 0:
			part.Set(i, nothing)
		}
	}
}

// doubled reports whether 2v has the dtype, and neither component of v is 0.
func doubled(d tensor.DType, v complex128) bool {
	limit := map[tensor.DType]float64{
		tensor.I8: math.MaxInt8, tensor.I16: math.MaxInt16, tensor.I32: math.MaxInt32, tensor.I64: 1 << 52,
		tensor.F16: 65504, tensor.BF16: math.MaxFloat32, tensor.F32: math.MaxFloat32, tensor.C64: math.MaxFloat32, tensor.F64: math.MaxFloat64, tensor.C128: math.MaxFloat64,
	}[d]
	small := func(x float64) bool { return x != 0 && math.Abs(x) <= limit/4 }
	return small(real(v)) && (!d.IsComplex() || small(imag(v)))
}

// narrow returns the part of x that is in r; x is what is in of.
func narrow(x *tensor.Tensor, of, r region) *tensor.Tensor {
	for axis := range r.start {
		if r.start[axis] != of.start[axis] || r.size[axis] != of.size[axis] {
			x = x.Narrow(axis, r.start[axis]-of.start[axis], r.size[axis], 1)
		}
	}
	return x
}

// Logical puts the whole together, with the tensor's strides. A *PromiseError
// says that ranks which should hold the same do not.
func (t *Tensor) Logical() (*tensor.Tensor, error) {
	if err := t.consistent(); err != nil {
		return nil, err
	}
	t, err := t.here()
	if err != nil {
		return nil, err
	}
	if err := t.replicated(); err != nil {
		return nil, err
	}
	one := Placement{tensor.HostName, []int{1}, t.placement.Ranks[:1]}
	whole, err := t.route(one, Broadcast(1)).carry(context.Background(), t)
	if err != nil {
		return nil, err
	}
	return laid(whole.parts[0], t.Strides()), nil
}

// replicated checks that ranks along a B dimension hold the same bits.
func (t *Tensor) replicated() error {
	t, err := t.here()
	if err != nil {
		return err
	}
	for i := range t.parts {
		at := t.placement.Coordinates(i)
		first := slices.Clone(at)
		for k, e := range t.sbp {
			if e == op.B {
				first[k] = 0
			}
		}
		if j := t.placement.position(first); !t.parts[j].SameBits(t.parts[i]) {
			return &PromiseError{t, fmt.Sprintf("ranks %d and %d differ under B", t.placement.Ranks[j], t.placement.Ranks[i])}
		}
	}
	return nil
}

// position is the inverse of Coordinates.
func (p Placement) position(at []int) int {
	position := 0
	for k, n := range p.Hierarchy {
		position = position*n + at[k]
	}
	return position
}

// ToGlobal moves the tensor to another placement or sbp, which is OneFlow's boxing.
func (t *Tensor) ToGlobal(ctx context.Context, p Placement, s SBP) (*Tensor, error) {
	if err := s.Check(p, t.meta.Shape); err != nil {
		return nil, err
	}
	return t.box(ctx, p, s)
}

// onRanks has every rank of the placement do body at the same time, by position.
func onRanks(ctx context.Context, n int, body func(r *ranks.Rank) error) error {
	if n == 1 {
		return body(&ranks.Rank{})
	}
	return ranks.Run(ctx, n, body)
}
