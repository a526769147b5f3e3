package gen

import (
	"fmt"
	"math"

	"plumb/program"
	"plumb/tensor"
)

// Tensor describes a drawn input tensor.
type Tensor struct {
	DType        tensor.DType
	Shape        []int
	Strides      []int // nil for contiguous
	Fill         program.Fill
	RequiresGrad bool
}

// TensorSpec says what a random tensor is like. Fields are values or
// generators; nil fields have the defaults of RandomTensor.
type TensorSpec struct {
	NDim         any
	Dims         [5]any
	Low, High    any
	DType        tensor.DType
	RequiresGrad any
	// Layouts are those among which the tensor's is drawn; nil are the case's.
	Layouts []Layout
	// Special are kinds of edge values, beside the case's, to mix in.
	Special program.Special
}

// MaxBytes bounds the size of a drawn tensor unless the case says otherwise:
// AutoTest's limit.
const MaxBytes = 32 << 20

// kinkWeights gives a quarter of the drawn float tensors Fill.Kinks; the first
// alternative, without, is the simpler one.
var kinkWeights = []float64{3, 1}

// The kids of a random tensor.
const (
	kidNDim = iota
	kidDim0
	kidLow          = kidDim0 + 5
	kidHigh         = kidLow + 1
	kidRequiresGrad = kidHigh + 1
)

type randomTensor struct {
	dtype   tensor.DType
	layouts []Layout
	special program.Special
}

func (randomTensor) name() string { return "random_tensor" }

// RandomTensor draws a tensor of NDim dimensions, 1 to 5 unless given. Dims[0]
// is 1 unless given, as in AutoTest; any other dimension is 1 to 7. Elements
// are uniform in [Low, High): by default floats in [-1, 1), integers in
// [-10, 11), both parts of a complex in [-10, 10). The zero DType is float32.
// A gradient is required unless RequiresGrad says otherwise or the dtype is
// not differentiable. A quarter of the float tensors hold exact zeros,
// repeated values and ±1, as far as these lie in [Low, High]. Of the edge
// values asked for, a tensor has none, those of one kind, or those of all.
func RandomTensor(s TensorSpec) *Node {
	if s.DType == tensor.Invalid {
		s.DType = tensor.F32
	}
	kids := []*Node{orElse(s.NDim, func() *Node { return Random(1, 6) })}
	for i, d := range s.Dims {
		if i == 0 {
			kids = append(kids, orElse(d, func() *Node { return Constant(1) }))
		} else {
			kids = append(kids, orElse(d, randomDim))
		}
	}
	kids = append(kids, orElse(s.Low, nil), orElse(s.High, nil), orElse(s.RequiresGrad, func() *Node { return Constant(true) }))
	return newNode(randomTensor{s.DType, s.Layouts, s.Special}, kids...)
}

func randomDim() *Node { return Random(1, 8) }

func orElse(v any, def func() *Node) *Node {
	if v != nil {
		return pack(v)
	}
	if def == nil {
		return Constant(nil)
	}
	return def()
}

func (r randomTensor) draw(c *Case, n *Node) (any, error) {
	dtype := r.dtype
	if dtype == tensor.F32 && c.Float != tensor.Invalid {
		dtype = c.Float
	}
	if c.Complex && dtype.IsFloat() {
		dtype = tensor.Promote(dtype, tensor.C64)
	}
	shape, err := r.shape(c, n)
	if err != nil {
		return nil, err
	}
	if err := c.checkSize(dtype, shape); err != nil {
		return nil, err
	}
	fill, err := r.fill(c, n, dtype)
	if err != nil {
		return nil, err
	}
	n.kids[kidRequiresGrad].To(c, Bool)
	grad, err := n.kids[kidRequiresGrad].Value(c)
	if err != nil {
		return nil, err
	}
	want, ok := grad.(bool)
	if !ok {
		return nil, fmt.Errorf("random_tensor: argument 'requires_grad' must be bool, not %s", describe(grad))
	}
	layouts := r.layouts
	if layouts == nil {
		layouts = c.Layouts
	}
	strides := drawLayout(c, layouts, shape)
	return &Tensor{dtype, shape, strides, fill, want && dtype.IsDifferentiable()}, nil
}

func (randomTensor) shape(c *Case, n *Node) ([]int, error) {
	ndim, err := dimension(c, n.kids[kidNDim], "ndim")
	if err != nil {
		return nil, err
	}
	if ndim > 64 {
		return nil, fmt.Errorf("random_tensor: argument 'ndim' must be at most 64, not %d", ndim)
	}
	shape := make([]int, ndim)
	for i := range shape {
		kid := randomDim()
		if i < 5 {
			kid = n.kids[kidDim0+i]
		}
		if shape[i], err = dimension(c, kid, fmt.Sprintf("dim%d", i)); err != nil {
			return nil, err
		}
	}
	return shape, nil
}

func dimension(c *Case, n *Node, arg string) (int, error) {
	n.To(c, Int)
	v, err := n.Value(c)
	if err != nil {
		return 0, err
	}
	d, ok := v.(int64)
	switch {
	case !ok:
		return 0, fmt.Errorf("random_tensor: argument '%s' must be int, not %s", arg, describe(v))
	case d < 0 || d > math.MaxInt32:
		return 0, fmt.Errorf("random_tensor: argument '%s' must not be negative or above %d, but is %d", arg, math.MaxInt32, d)
	}
	return int(d), nil
}

func (c *Case) checkSize(d tensor.DType, shape []int) error {
	bytes := float64(d.Size())
	for _, s := range shape {
		bytes = float64(bytes * float64(s))
	}
	limit := c.MaxBytes
	if limit == 0 {
		limit = MaxBytes
	}
	if bytes > float64(limit) {
		return &TooLarge{fmt.Sprintf("random_tensor: shape %s of %s is above the limit of %d bytes; --set tensor.max sets another", tensor.ShapeString(shape), d, limit)}
	}
	return nil
}

// TooLarge is the error of a draw of more than MaxBytes.
type TooLarge struct{ msg string }

// Error says how large the draw is.
func (e *TooLarge) Error() string { return e.msg }

func (r randomTensor) fill(c *Case, n *Node, d tensor.DType) (program.Fill, error) {
	lo, hi, dist, typ := ranges(d)
	for _, b := range []struct {
		kid  int
		name string
		into *float64
	}{{kidLow, "low", &lo}, {kidHigh, "high", &hi}} {
		v, err := n.kids[b.kid].Value(c)
		if err == nil && v == nil {
			continue
		}
		if *b.into, err = real64(c, n.kids[b.kid], typ, "random_tensor", b.name); err != nil {
			return program.Fill{}, err
		}
	}
	if dist == program.Integer && !(lo < hi) {
		return program.Fill{}, fmt.Errorf("random_tensor: there is no %s in [low=%v, high=%v)", d, lo, hi)
	}
	f := program.Fill{Dist: dist, Lo: lo, Hi: hi, Key: c.Key()}
	c.Own(func() {
		f.Kinks = d.IsFloat() && !c.Generic && c.Weighted(kinkWeights) == 1
		f.Special = drawSpecial(c, r.special|c.Special)
	})
	if c.Integers && d.IsFloat() && f.Special == 0 {
		return whole(f), nil
	}
	return f, nil
}

// drawSpecial draws what a tensor has of the kinds of edge values: nothing, one
// kind, or all.
func drawSpecial(c *Case, s program.Special) program.Special {
	kinds := s.Kinds()
	switch len(kinds) {
	case 0:
		return 0
	case 1:
		kinds = []program.Special{0, s}
	default:
		kinds = append(append([]program.Special{0}, kinds...), s)
	}
	return kinds[c.Index(len(kinds))]
}

// whole turns a distribution of floats into one of the integers in its range,
// those of [-3, 4) for the default range; one without an integer stays.
func whole(f program.Fill) program.Fill {
	lo, hi := math.Ceil(f.Lo), math.Ceil(f.Hi)
	if f.Lo == -1 && f.Hi == 1 {
		lo, hi = -3, 4
	}
	if !(lo < hi) || hi-lo > 1<<10 {
		return f
	}
	return program.Fill{Dist: program.Integer, Lo: lo, Hi: hi, Key: f.Key}
}

// ranges returns the default distribution of a dtype.
func ranges(d tensor.DType) (lo, hi float64, dist program.Dist, t Type) {
	switch {
	case d.IsComplex():
		return -10, 10, program.Uniform, Float
	case d.IsFloat():
		return -1, 1, program.Uniform, Float
	case d == tensor.Bool:
		return 0, 2, program.Integer, Int
	case d == tensor.U8:
		return 0, 11, program.Integer, Int
	}
	return -10, 11, program.Integer, Int
}

// dtypeGroups are AutoTest's groups of dtypes.
var dtypeGroups = map[string][]tensor.DType{
	"None":       {tensor.Invalid},
	"bool":       {tensor.Bool},
	"float":      {tensor.F32, tensor.F64},
	"half":       {tensor.F16},
	"bfloat16":   {tensor.BF16},
	"complex":    {tensor.C64, tensor.C128},
	"signed":     {tensor.I8, tensor.I32, tensor.I64},
	"int":        {tensor.I8, tensor.I32, tensor.I64},
	"unsigned":   {tensor.U8},
	"image":      {tensor.U8, tensor.F32},
	"index":      {tensor.I32, tensor.I64},
	"arithmetic": {tensor.F32, tensor.F64, tensor.I8, tensor.I32, tensor.I64},
	"pod":        {tensor.F32, tensor.F64, tensor.I8, tensor.I32, tensor.I64, tensor.U8, tensor.Bool},
	"all":        {tensor.F32, tensor.F64, tensor.I8, tensor.I32, tensor.I64, tensor.U8, tensor.Bool, tensor.F16, tensor.BF16},
}

// RandomDType draws one dtype of the groups, uniformly over all their members;
// the group None has the member None.
func RandomDType(groups ...string) (*Node, error) {
	var members []any
	for _, g := range groups {
		ds, ok := dtypeGroups[g]
		if !ok {
			return nil, fmt.Errorf("random_dtype: unknown group %q; there are None, all, arithmetic, bfloat16, bool, complex, float, half, image, index, int, pod, signed, unsigned", g)
		}
		for _, d := range ds {
			if d == tensor.Invalid {
				members = append(members, nil)
			} else {
				members = append(members, d)
			}
		}
	}
	return OneOf(nil, members...)
}
