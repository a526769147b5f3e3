package compare

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// draws calls f with many random pairs: of every dtype, up to a few blocks
// long, equal, close or far, with special values.
func draws(t *testing.T, f func(t *testing.T, r *rng, want, got *tensor.Tensor)) {
	for _, d := range tensor.DTypes {
		t.Run(d.String(), func(t *testing.T) {
			for key := range uint64(60) {
				r := &rng{p: choice.NewPhilox(key<<8 | uint64(d))}
				want := r.tensor(d, r.shape())
				got := r.near(want)
				f(t, r, want, got)
				if t.Failed() {
					t.Fatalf("key %d, %s", key, want)
				}
			}
		})
	}
}

type rng struct {
	p choice.Philox
	i uint64
}

func (r *rng) word() uint64 { w, _ := r.p.Pair(r.i); r.i++; return w }

func (r *rng) below(n int) int { return int(r.word() >> 1 % uint64(n)) }

func (r *rng) shape() []int {
	shape := make([]int, r.below(4))
	for i := range shape {
		shape[i] = 1 + r.below(11)
	}
	return shape
}

func (r *rng) float() float64 {
	switch r.below(12) {
	case 0:
		return []float64{0, math.Copysign(0, -1), 1, nan, math.Inf(1), math.Inf(-1), 1e-40, 5e-324, 6e4, 1e300}[r.below(10)]
	}
	return math.Ldexp(float64(r.word()>>11)*0x1p-53-0.5, r.below(8))
}

func (r *rng) element(d tensor.DType) complex128 {
	if d.IsComplex() {
		return complex(r.float(), r.float())
	}
	return complex(r.float(), 0)
}

func (r *rng) tensor(d tensor.DType, shape []int) *tensor.Tensor {
	t := tensor.New(d, shape...)
	for i := range t.Len() {
		if d.IsDifferentiable() {
			t.Set(i, r.element(d))
		} else {
			t.SetInt(i, int64(r.word()>>r.below(64))&map[bool]int64{true: 1, false: -1}[d == tensor.Bool])
		}
	}
	return t
}

// near returns t with some elements changed.
func (r *rng) near(t *tensor.Tensor) *tensor.Tensor {
	u := t.Clone()
	share := []int{1, 2, 10, 1000}[r.below(4)]
	for i := range u.Len() {
		switch {
		case r.below(share) != 0:
		case !u.DType().IsDifferentiable():
			u.SetInt(i, u.Int(i)^1)
		case r.below(20) == 0:
			u.Set(i, r.element(u.DType()))
		default:
			u.Set(i, u.At(i)*complex(1+math.Ldexp(float64(r.below(64)-32), -r.below(50)), 0))
		}
	}
	return u
}

func (r *rng) limit(d tensor.DType) Limit {
	return []Limit{Default(d), Exactly(""), {ULP: 4}, {RTol: 1e-3}, {ATol: 1e-3}, {RTol: 1e-6, ULP: 2}, {RTol: -1, ATol: Number(nan)}, {RTol: inf}}[r.below(8)]
}

// strided returns t's elements in another memory layout.
func (r *rng) strided(t *tensor.Tensor) *tensor.Tensor {
	n := t.Dim()
	strides := make([]int, n)
	step := 1 + r.below(3)
	for range n {
		i := r.below(n)
		for strides[i] != 0 {
			i = (i + 1) % n
		}
		strides[i] = step
		step *= t.Shape()[i] + r.below(2)
	}
	u := tensor.NewStrided(t.DType(), t.Shape(), strides)
	u.CopyFrom(t)
	return u
}

// backwards returns t as a view with negative strides.
func backwards(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.New(t.DType(), t.Shape()...)
	strides := slices.Clone(u.Strides())
	for i := range strides {
		strides[i] = -strides[i]
	}
	v, err := u.AsStrided(u.Shape(), strides, u.Len()-1)
	if err != nil {
		panic(err)
	}
	v.CopyFrom(t)
	return v
}

func TestReflexive(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, _ *tensor.Tensor) {
		for _, b := range []*tensor.Tensor{a, a.Clone(), r.strided(a)} {
			d := Tensors(a, b, r.limit(a.DType()), Options{SignedZero: true})
			if exp := identical(a.Len()); !cmp.Equal(exp, d) {
				t.Errorf("a tensor and itself: -want +got\n%s", cmp.Diff(exp, d))
			}
		}
	})
}

func TestSymmetricWithoutRelativeTolerance(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		for _, l := range []Limit{Exactly(""), {ATol: 1e-3}, {ULP: 3}, {ATol: 1e-5, ULP: 2}} {
			x, y := Tensors(a, b, l, Options{}), Tensors(b, a, l, Options{})
			x.Want, x.Got, x.Bias, x.MaxRel, x.MeanRel, x.Message = y.Want, y.Got, y.Bias, y.MaxRel, y.MeanRel, y.Message
			x.Cosine, y.Cosine = 0, 0
			if !cmp.Equal(x, y) {
				t.Errorf("limit %v: -ab +ba\n%s", l, cmp.Diff(x, y))
			}
		}
	})
}

func TestMonotoneInTheLimit(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		l := r.limit(a.DType())
		last := Tensors(a, b, l, Options{})
		for range 6 {
			l = Limit{RTol: 3*l.RTol + 1e-9, ATol: 3*l.ATol + 1e-12, ULP: 2*l.ULP + 1}
			d := Tensors(a, b, l, Options{})
			if d.WorstRatio > last.WorstRatio || d.Mismatches > last.Mismatches || last.OK && !d.OK {
				t.Errorf("a wider limit %v gives ratio %v after %v, %d mismatches after %d", l, d.WorstRatio, last.WorstRatio, d.Mismatches, last.Mismatches)
			}
			last = d
		}
	})
}

func TestStridesDoNotMatter(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		l := r.limit(a.DType())
		exp := Tensors(a, b, l, Options{})
		views := map[string][2]*tensor.Tensor{"strided": {r.strided(a), r.strided(b)}, "one strided": {a, r.strided(b)}, "backwards": {backwards(a), b}}
		for name, v := range views {
			if d := Tensors(v[0], v[1], l, Options{}); !equalNaN(exp, d) {
				t.Errorf("%s, strides %v and %v: -contiguous +strided\n%s", name, v[0].Strides(), v[1].Strides(), cmp.Diff(exp, d))
			}
		}
	})
}

func TestOrderOfElementsDoesNotMatter(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		l := r.limit(a.DType())
		n := a.Len()
		a, b = a.Reshape(n), b.Reshape(n)
		x := Tensors(a, b, l, Options{})
		y := Tensors(backwards(a), backwards(b), l, Options{})
		pa, pb := shuffled(r, a, b)
		z := Tensors(pa, pb, l, Options{})
		if !equalNaN(x, y) {
			t.Errorf("the same order: %s", cmp.Diff(x, y))
		}
		for _, d := range []*Diff{&x, &z} {
			d.First, d.Worst, d.Want, d.Got, d.Message = nil, nil, "", "", ""
		}
		close := cmp.Comparer(func(p, q Number) bool {
			return p == q || p != p && q != q || math.Abs(float64(p-q)) <= 1e-9*math.Abs(float64(p))
		})
		if !cmp.Equal(x, z, close) {
			t.Errorf("shuffled: -before +after\n%s", cmp.Diff(x, z))
		}
	})
}

func shuffled(r *rng, a, b *tensor.Tensor) (pa, pb *tensor.Tensor) {
	pa, pb = a.Clone(), b.Clone()
	swap := func(t *tensor.Tensor, i, j int) {
		size := t.DType().Size()
		x, y := t.Bytes()[i*size:][:size], t.Bytes()[j*size:][:size]
		for k := range x {
			x[k], y[k] = y[k], x[k]
		}
	}
	for i := a.Len() - 1; i > 0; i-- {
		j := r.below(i + 1)
		swap(pa, i, j)
		swap(pb, i, j)
	}
	return pa, pb
}

// TestFastAgreesWithCare runs the two ways of measuring over the same blocks.
func TestFastAgreesWithCare(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		if !a.DType().IsFloat() {
			return
		}
		l := r.limit(a.DType())
		fast, care := newMeter(a.DType(), l.rule(), Options{}), newMeter(a.DType(), l.rule(), Options{})
		care.quick = false
		walk(a, b, fast)
		walk(a, b, care)
		x, y := fast.diff(a, b, a.Len()), care.diff(a, b, a.Len())
		near := cmp.Comparer(func(p, q Number) bool {
			return p == q || p != p && q != q || math.Abs(float64(p-q)) <= 1e-12*math.Abs(float64(p))
		})
		if !cmp.Equal(x, y, near) {
			t.Errorf("limit %v: -fast +care\n%s", l, cmp.Diff(x, y))
		}
	})
}

// TestExpandedViews compares tensors whose elements overlap in memory.
func TestExpandedViews(t *testing.T) {
	row := f32(1, 2, 3)
	a, _ := row.Expand(1000, 3)
	b := a.Clone()
	if d := Tensors(a, b, Exactly(""), Options{}); !d.OK || d.Total != 3000 {
		t.Errorf("an expanded row differs from its copy: %+v", d)
	}
	b.Set(2998, 7)
	d := Tensors(a, b, Exactly(""), Options{})
	if d.OK || d.Mismatches != 1 || !slices.Equal(d.Worst, []int{999, 1}) {
		t.Errorf("one element off: %+v", d)
	}
}

// FuzzTensors looks for panics, and for verdicts that contradict each other,
// over raw element bits, strides and limits.
func FuzzTensors(f *testing.F) {
	f.Add([]byte{8, 2, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 1e-3, 1e-5, 4.0)
	f.Add([]byte{12, 3, 0, 1, 1, 0, 255, 255, 255, 127, 255, 127, 0, 128}, 0.0, math.Inf(1), -1.0)
	f.Add([]byte("\"00\x00\x00\x000\x7f\xbc\xff0"), -1507.98, 100.0, -642510.0)
	f.Fuzz(func(t *testing.T, data []byte, rtol, atol, ulp float64) {
		if len(data) < 6 {
			return
		}
		want, got := fuzzTensor(data[:6], data[6:]), fuzzTensor(append([]byte{data[0]}, data[1:6]...), reversed(data[6:]))
		if want == nil || got == nil {
			return
		}
		l := Limit{Class: op.Pointwise, RTol: Number(rtol), ATol: Number(atol), ULP: Number(ulp)}
		d := Tensors(want, got, l, Options{})
		if d.OK != (d.WorstRatio <= 1) || d.OK != (d.Mismatches == 0) || d.Total != want.Len() {
			t.Errorf("contradiction: %+v", d)
		}
		sum := 0
		for _, n := range d.Hist {
			sum += n
		}
		if sum != d.Total {
			t.Errorf("the histogram holds %d of %d elements", sum, d.Total)
		}
		if c := Tensors(want.Clone(), got.Clone(), l, Options{}); !equalNaN(c, d) {
			t.Errorf("copies compare otherwise: %s", cmp.Diff(c, d))
		}
	})
}

// fuzzTensor makes a tensor from a dtype, two dimensions and two strides.
func fuzzTensor(head, bits []byte) *tensor.Tensor {
	d := tensor.DTypes[int(head[0])%len(tensor.DTypes)]
	storage := tensor.New(tensor.U8, max(16, len(bits)&^15)).Storage()
	copy(storage, bits)
	if d == tensor.Bool {
		for i := range storage {
			storage[i] &= 1
		}
	}
	t, err := tensor.FromBytes(d, []int{int(head[1] % 40), int(head[2] % 40)}, []int{int(int8(head[3])), int(int8(head[4]))}, int(head[5]), storage)
	if err != nil {
		return nil
	}
	return t
}

func reversed(b []byte) []byte {
	b = slices.Clone(b)
	slices.Reverse(b)
	return b
}

func equalNaN(a, b Diff) bool {
	return cmp.Equal(a, b, cmp.Comparer(func(p, q Number) bool { return p == q || p != p && q != q }))
}
